/* Curves over steps or tasks: hover, arrow keys, zoom, logarithm, smoothing. */

/* Charts with one view zoom together, share their cross-hair, smoothing and logarithm. */
const newView = () => ({ range: null, at: null, log: false, full: false, smooth: 0, charts: [] });
function change(view, values) {
  Object.assign(view, values);
  for (const chart of view.charts) chart.refresh();
}

/* yᵢ' = Σⱼ wⁱ⁻ʲ yⱼ / Σⱼ wⁱ⁻ʲ over the points so far: a moving average that starts without bias. */
function smoothed(values, w) {
  let [sum, weight] = [0, 0];
  return values.map((v) => {
    if (v === null) return null;
    [sum, weight] = [w * sum + v, w * weight + 1];
    return sum / weight;
  });
}

/* series: {name, x, y, low?, high?, points? ([x, y] of single seeds), colour, dash?, width?, dots?}.
   options: title, xLabel, yLabel, whole (x in whole numbers), logX, xMarks, boundaries ([x]), height, show
   (how many at first), percent, legend, view. */
function lineChart(series, options) {
  if (!series.some((one) => one.y.some((v) => v !== null))) return h("p", { class: "empty" }, "Nothing to draw yet.");
  const view = options.view ?? newView();
  const chart = { series, options, view, shown: series.map((_, i) => i < (options.show ?? 99)),
    xs: distinct(series.flatMap((one) => one.x)).sort((a, b) => a - b), format: options.percent ? (v) => number(v, 1) : compact };
  const reset = h("button", { type: "button", class: "tool reset", hidden: true, onclick: () => change(view, { range: null }) }, "Reset zoom");
  const full = options.percent && toggle("0–100", view.full, () => change(view, { full: !view.full }), { class: "tool full" });
  const log = !options.percent && !options.view && toggle("log", view.log, () => change(view, { log: !view.log }), { class: "tool log" });
  const box = chartBox({ title: options.title, tools: [reset, full, log], below: options.legend !== false && series.length > 1 && legendOf(chart),
    legend: () => (series.length > 1 ? chart.series.filter((_, i) => chart.shown[i]) : []), table: () => curveRows(chart) }, (width) => drawCurves(chart, width));
  chart.refresh = () => {
    reset.hidden = !view.range;
    if (full) full.setAttribute("aria-pressed", String(view.full));
    if (log) log.setAttribute("aria-pressed", String(view.log));
    box.draw();
  };
  view.charts.push(chart);
  return box;
}

function legendOf(chart) {
  const { series, shown } = chart;
  const buttons = series.map((one, i) => toggle([swatch(one), one.name], shown[i], () => { shown[i] = !shown[i]; update(); },
    { onmouseenter: () => chart.emphasise?.(one), onmouseleave: () => chart.emphasise?.(null) }));
  const update = () => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(shown[i])));
    chart.refresh();
  };
  const every = series.length > 8 && h("li", {}, h("button", { type: "button", onclick: () => {
    const some = shown.every(Boolean);
    shown.forEach((_, i) => { shown[i] = !some; });
    update();
  } }, "all / none"));
  return h("ul", { class: "legend", "aria-label": "Curves" }, buttons.map((button) => h("li", {}, button)), every);
}
const curveRows = ({ series, xs, options }) => [[options.xLabel, ...series.map((one) => one.name)],
  ...xs.map((x) => [x, ...series.map((one) => one.y[one.x.indexOf(x)] ?? null)])];

function drawCurves(chart, space) {
  const { options, view, xs } = chart;
  const width = Math.max(260, space);
  const height = options.height ?? Math.round(Math.min(340, Math.max(210, width * 0.52)));
  const [x0, x1] = view.range && !options.whole ? view.range : [xs[0], xs.at(-1)];
  const usable = (v) => v !== null && v !== undefined && (!view.log || v > 0);
  const drawn = chart.series.filter((_, i) => chart.shown[i]).map((one) => ({ ...one, raw: one.y, y: view.smooth ? smoothed(one.y, view.smooth) : one.y, self: one }));
  const inside = (one, values) => values.filter((v, i) => usable(v) && one.x[i] >= x0 && one.x[i] <= x1);
  const core = drawn.flatMap((one) => [...inside(one, one.y), ...(drawn.length > 4 ? [] : one.points ?? []).map((p) => p[1])]);
  const outer = drawn.flatMap((one) => (one.low && !view.smooth ? [...inside(one, one.low), ...inside(one, one.high)] : []));
  let [low, high] = view.full && options.percent ? [0, 100] : fitted(core, outer, view.log);
  if (options.percent && !view.full) [low, high] = [Math.max(low, Math.min(0, ...core)), Math.min(high, 101)];
  const marks = view.log ? logTicks(low, high) : ticks(low, high, Math.max(3, Math.round(height / 55)));
  const left = 16 + 6.6 * Math.max(...marks.map((v) => compact(v).length)) + (options.yLabel ? 14 : 0);
  const plot = { l: left, r: width - 12, t: 12, b: height - 40, low, high };
  const pad = options.whole ? Math.min(18, (plot.r - plot.l) * 0.04) : 0;
  const X = scale(x0, x1, plot.l + pad, plot.r - pad, options.logX);
  const Y = scale(low, high, plot.b, plot.t, view.log);
  const root = svgRoot(width, height, `${options.title}. ${summary(drawn, chart.format)} Arrow keys read the values${options.whole ? "" : ", plus and minus zoom, 0 shows all"}.`);
  const clip = `clip-${(drawCurves.count = (drawCurves.count ?? 0) + 1)}`;
  root.append(s("clipPath", { id: clip }, s("rect", { x: plot.l - 5, y: plot.t - 5, width: plot.r - plot.l + 10, height: plot.b - plot.t + 10 })),
    ...axes(chart, plot, { X, Y, x0, x1, marks, width, height }));
  root.classList.toggle("many", drawn.length > 4); /* bands and seeds of so many curves: of one at a time */
  const frame = { plot, X, Y, usable, width, drawn, x0, x1, root };
  root.append(s("g", { "clip-path": `url(#${clip})` }, drawn.map((one) => band(one, frame, view)), drawn.map((one) => curve(one, frame, view))),
    s("g", {}, drawn.map((one) => clippedMarks(one, frame, view))));
  interact(chart, frame);
  return root;
}
const summary = (visible, format) => visible.slice(0, 8).map((one) => {
  const last = one.y.filter((v) => v !== null).at(-1);
  return last === undefined ? "" : `${one.name}: ends at ${format(last)}.`;
}).join(" ");

function axes({ options, xs }, plot, { X, Y, x0, x1, marks, width, height }) {
  const every = Math.ceil(xs.length / Math.max(2, Math.floor((plot.r - plot.l) / 34)));
  const xMarks = options.xMarks?.length < 8 ? options.xMarks.filter((v) => v >= x0 && v <= x1) : options.whole ? xs.filter((_, i) => i % every === 0) : options.logX ? logTicks(x0, x1) : ticks(x0, x1, Math.max(3, Math.floor(width / 90)));
  const middle = (plot.t + plot.b) / 2;
  return [
    marks.map((v) => [line(plot.l, Y(v), plot.r, Y(v), { class: "gridline" }), text(plot.l - 7, Y(v) + 4, "end", compact(v))]),
    (options.boundaries ?? []).filter((v) => v > x0 && v < x1).map((v) => line(X(v), plot.t, X(v), plot.b, { class: "boundary" })),
    line(plot.l, plot.b, plot.r, plot.b, { class: "axis" }),
    xMarks.map((v) => text(X(v), plot.b + 17, "middle", compact(v))),
    text((plot.l + plot.r) / 2, height - 5, "middle", options.xLabel),
    options.yLabel && text(11, middle, "middle", options.yLabel, { transform: `rotate(-90 11 ${middle})` }),
  ].flat(3).filter(Boolean);
}
function pathOf(one, values, { X, Y, usable }) {
  let pen = "M";
  return one.x.map((x, i) => {
    if (!usable(values[i])) { pen = "M"; return ""; }
    const part = `${pen}${X(x).toFixed(1)},${Y(values[i]).toFixed(1)}`;
    pen = "L";
    return part;
  }).join("");
}
function band(one, { X, Y, usable }, view) {
  if (!one.low || view.smooth) return null;
  const there = range(one.x.length).filter((i) => usable(one.low[i]) && usable(one.high[i]));
  const edge = [...there.map((i) => `${X(one.x[i]).toFixed(1)},${Y(one.high[i]).toFixed(1)}`), ...there.reverse().map((i) => `${X(one.x[i]).toFixed(1)},${Y(one.low[i]).toFixed(1)}`)];
  one.self.area = edge.length > 0 && s("path", { class: "band", d: `M${edge.join("L")}Z`, style: { fill: one.colour } });
  return one.self.area;
}
function curve(one, frame, view) {
  const { X, Y, usable } = frame;
  const stroke = { stroke: one.colour, ...(one.width && { "stroke-width": one.width }) };
  const main = s("path", { class: "curve", d: pathOf(one, one.y, frame), "stroke-dasharray": one.dash, style: stroke });
  one.self.path = main;
  const many = one.dots === false || one.x.length > 40;
  return [view.smooth > 0 && s("path", { class: "curve raw", d: pathOf(one, one.raw, frame), style: stroke }), main,
    (one.points ?? []).filter((p) => usable(p[1])).map(([x, y]) => s("circle", { class: "seed", cx: X(x), cy: Y(y), r: 2.2, style: { fill: one.colour } })),
    !many && one.x.map((x, i) => usable(one.y[i]) && s("circle", { class: "point", cx: X(x), cy: Y(one.y[i]), r: one.width > 2 ? 4 : 3.4, style: { fill: one.hollow ? "var(--card)" : one.colour, stroke: one.colour } }))];
}
/* A small triangle at the edge where a band of few points leaves the plot. */
function clippedMarks(one, { plot, X, usable, drawn }, view) {
  if (!one.low || view.smooth || one.x.length > 40 || drawn.length > 4) return null;
  const mark = (x, y, way) => s("path", { class: "clipped", d: `M${x - 4},${y}h8l-4,${-5 * way}z`, style: { fill: one.colour } });
  return one.x.map((x, i) => [usable(one.high[i]) && one.high[i] > plot.high && mark(X(x), plot.t, 1), usable(one.low[i]) && one.low[i] < plot.low && mark(X(x), plot.b, -1)]);
}

/* ---- Pointer and keyboard ----------------------------------------------------------------------- */

const nearest = (values, x) => values.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(values[best] - x) ? i : best), 0);
function hits({ drawn, usable }, x, whole) {
  return drawn.map((one) => {
    const i = whole ? one.x.indexOf(x) : x >= one.x[0] - 1e-9 && x <= one.x.at(-1) + 1e-9 ? nearest(one.x, x) : -1;
    return { one, x: one.x[i], y: i < 0 || !usable(one.y[i]) ? null : one.y[i] };
  }).filter((hit) => hit.y !== null);
}
function interact(chart, frame) {
  const { options, view, xs } = chart;
  const { plot, X, Y, width, root } = frame;
  const within = options.whole ? xs : xs.filter((x) => x >= frame.x0 && x <= frame.x1);
  const cross = s("g", { "aria-hidden": "true" });
  root.append(cross);
  chart.emphasise = (one) => {
    root.classList.toggle("quiet", Boolean(one) && frame.drawn.length > 1);
    for (const { self } of frame.drawn) for (const part of [self.path, self.area]) part?.classList?.toggle("near", self === one);
  };
  chart.point = (x) => {
    const found = x === null ? [] : hits(frame, x, options.whole);
    cross.replaceChildren(...(x === null ? [] : [line(X(x), plot.t, X(x), plot.b, { class: "cross" })]),
      ...found.map((hit) => s("circle", { cx: X(hit.x), cy: Y(hit.y), r: 4.5, style: { fill: hit.one.colour } })));
    return found;
  };
  const showAt = (x, where, py) => {
    view.at = x;
    for (const other of view.charts) if (other !== chart) other.point?.(x);
    const found = chart.point(x).sort((a, b) => b.y - a.y);
    const near = py === undefined ? null : found.reduce((best, hit) => (!best || Math.abs(Y(hit.y) - py) < Math.abs(Y(best.y) - py) ? hit : best), null);
    if (frame.drawn.length > 4) chart.emphasise(near && Math.abs(Y(near.y) - py) < 14 ? near.one.self : null);
    const heading = `${options.xLabel} ${compact(x)}`;
    const first = Math.max(0, Math.min(found.indexOf(near) - 6, found.length - 14));
    showTip(where[0], where[1], h("b", {}, heading), ...found.slice(first, first + 14).map((hit) => tipLine(hit.one.colour, hit.one.name, chart.format(hit.y), hit === near)));
    return `${heading}: ${found.map((hit) => `${hit.one.name} ${chart.format(hit.y)}`).join(", ")}`;
  };
  const leave = () => { for (const other of view.charts) other.point?.(null); chart.emphasise(null); hideTip(); };
  const place = (event) => { const box = root.getBoundingClientRect(); return [((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.width) * width]; };
  const valueAt = (px) => { const part = (Math.max(plot.l, Math.min(plot.r, px)) - plot.l) / (plot.r - plot.l); return options.logX ? frame.x0 * (frame.x1 / frame.x0) ** part : frame.x0 + part * (frame.x1 - frame.x0); };
  root.addEventListener("pointermove", (event) => {
    const [px, py] = place(event);
    if (within.length) showAt(within[nearest(within.map(X), px)], [event.clientX, event.clientY], py);
  });
  root.addEventListener("pointerleave", leave);
  root.addEventListener("blur", leave);
  root.addEventListener("keydown", (event) => {
    const jump = { ArrowLeft: -1, ArrowRight: 1, Home: -xs.length, End: xs.length }[event.key];
    const factor = { "+": 0.5, "-": 2, 0: Infinity }[event.key];
    if (factor && !options.whole) change(view, { range: zoomed(frame, xs, view.at, factor) });
    if (!jump || !within.length) return;
    event.preventDefault();
    const now = view.at === null ? (jump > 0 ? -1 : within.length) : nearest(within, view.at);
    const x = within[Math.max(0, Math.min(within.length - 1, now + jump))];
    const box = root.getBoundingClientRect();
    byId("live").textContent = showAt(x, [box.left + (X(x) * box.width) / width, box.top + 20]);
  });
  if (!options.whole) zoomByDragging(root, plot, place, (from, to) => change(view, { range: from === null ? null : [valueAt(from), valueAt(to)] }));
}
function zoomed(frame, xs, at, factor) {
  const middle = at ?? (frame.x0 + frame.x1) / 2;
  const [low, high] = [middle - (middle - frame.x0) * factor, middle + (frame.x1 - middle) * factor];
  return low <= xs[0] && high >= xs.at(-1) ? null : [Math.max(xs[0], low), Math.min(xs.at(-1), high)];
}
/* Drag sideways to choose a range, click twice to see everything. */
function zoomByDragging(root, plot, place, choose) {
  const chosen = s("rect", { class: "chosen", y: plot.t, height: plot.b - plot.t, width: 0 });
  let from = null;
  root.classList.add("zooms");
  root.append(chosen);
  const span = (event) => [from, place(event)[0]].map((px) => Math.max(plot.l, Math.min(plot.r, px))).sort((a, b) => a - b);
  root.addEventListener("pointerdown", (event) => { if (event.button === 0) { [from] = place(event); root.setPointerCapture(event.pointerId); } });
  root.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const [a, b] = span(event);
    fill(chosen, { x: a, width: b - a }, []);
  });
  root.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [a, b] = span(event);
    from = null;
    if (b - a > 8) choose(a, b);
    else chosen.setAttribute("width", 0);
  });
  root.addEventListener("pointercancel", () => { from = null; chosen.setAttribute("width", 0); });
  root.addEventListener("dblclick", () => choose(null));
}
