"use strict";
/* The report's only script. Reads the JSON blocks of this page, draws with SVG, and requests
   nothing. All text goes through textContent: names and labels are never taken for HTML. */
(() => {
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const all = read("overview");
const details = new Map();
const detail = (n) => details.get(n) ?? details.set(n, read(`run-${n}`)).get(n);
const SETTINGS = { class_incremental: "class-incremental", task_incremental: "task-incremental" };
const state = { setting: "class_incremental", words: "", benchmark: "", buffer: "", other: "", only: false };
const byId = (id) => document.getElementById(id);

/* ---- Elements ------------------------------------------------------------------------------ */

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const number = (value, digits = 2) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(?=[0.]*$)/u, "").replace("-", "−");
const signed = (value, digits = 2) => (value > 0 ? "+" : "") + number(value, digits);
const compact = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  return text.replace("-", "−");
};
const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
};
const range = (n) => [...Array(n).keys()];
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const palette = (i) => `var(--c${i % 8})`;
const dashes = ["", "7 4", "2 3", "10 3 2 3"];
const taskColour = (i, n) => `color-mix(in oklch increasing hue, var(--last) ${n > 1 ? (100 * i) / (n - 1) : 100}%, var(--first))`;

/* ---- Tooltips with definitions, on hover and on focus --------------------------------------- */

const tip = byId("tip");
function showTip(x, y, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth - 8 ? x - 14 - box.width : x + 14;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - box.width - 8))}px`;
  tip.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - box.height - 8))}px`;
}
const hideTip = () => { tip.hidden = true; };
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

function explained(element, title, text) {
  const below = () => {
    const box = element.getBoundingClientRect();
    showTip(box.left - 14, box.bottom - 8, h("b", {}, title), text);
    element.setAttribute("aria-describedby", "tip");
  };
  const away = () => { hideTip(); element.removeAttribute("aria-describedby"); };
  for (const [on, off] of [["mouseenter", "mouseleave"], ["focus", "blur"]]) {
    element.addEventListener(on, below);
    element.addEventListener(off, away);
  }
  return element;
}
function term(text, key = text) {
  const metric = all.metrics[key];
  const element = h("span", { class: "term", tabindex: 0 }, text);
  return explained(element, metric ? `${metric.label}: ${metric.name}` : key, metric ? metric.definition : all.terms[key]);
}

/* ---- Tables that sort ----------------------------------------------------------------------- */

const sorting = {};
function sortable(id, caption, columns, rows) {
  const order = (sorting[id] ??= { column: null, down: false });
  const body = h("tbody");
  const heads = columns.map((column, i) => {
    const button = h("button", { type: "button", onclick: () => {
      order.down = order.column === i ? !order.down : Boolean(column.downFirst);
      order.column = i;
      refill();
    } }, column.label);
    if (column.explain) explained(button, column.explain[0], column.explain[1]);
    return h("th", { scope: "col", class: column.numeric && "num", "aria-sort": "none" }, button);
  });
  function refill() {
    const sorted = [...rows];
    if (order.column !== null) {
      const value = columns[order.column].value;
      sorted.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const way = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
        return order.down ? -way : way;
      });
    }
    heads.forEach((head, i) =>
      head.setAttribute("aria-sort", i !== order.column ? "none" : order.down ? "descending" : "ascending"));
    body.replaceChildren(...sorted.map((row) =>
      h("tr", {}, columns.map((column, i) =>
        h(i ? "td" : "th", { scope: i ? null : "row", class: column.numeric && "num" }, column.cell(row))))));
  }
  refill();
  return h("div", { class: "scroll" },
    h("table", { id }, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, heads)), body));
}

/* ---- Charts ---------------------------------------------------------------------------------- */

function ticks(low, high, wanted) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let k = first; k * step <= high + step * 1e-6; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/* series: {name, x, y, low?, high?, colour, dash?, width?, dots?}. options: title, xLabel, yLabel,
   from, to (of y), whole (x in whole numbers), boundaries ([x]), height, show (how many at first),
   percent, legend, atMost (of y). */
function lineChart(series, options) {
  const box = h("div", { class: "chart" });
  const shown = series.map((_, i) => i < (options.show ?? 99));
  const format = options.percent ? (v) => number(v, 1) : compact;
  const xs = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  if (!series.some((one) => one.y.some((v) => v !== null))) return h("p", { class: "empty" }, "Nothing to draw yet.");
  let at = null;
  let move = () => {};

  function draw() {
    const width = Math.max(260, Math.round(box.forced ?? (box.clientWidth || 520)));
    const height = options.height ?? Math.round(Math.min(330, Math.max(200, width * 0.52)));
    const visible = series.filter((_, i) => shown[i]);
    const values = visible.flatMap((one) => [...one.y, ...(one.low ?? []), ...(one.high ?? [])]).filter((v) => v !== null);
    let low = options.from ?? Math.min(...values, Infinity);
    let high = options.to ?? Math.max(...values, -Infinity);
    if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = [0, 1];
    if (high === low) [low, high] = [low - (Math.abs(low) * 0.1 || 1), high + (Math.abs(high) * 0.1 || 1)];
    const room = (high - low) * 0.05;
    if (options.from === undefined) low = low >= 0 && low < (high - low) * 0.6 ? 0 : low - room;
    if (options.to === undefined) high = Math.min(options.atMost ?? Infinity, high + room);
    const marks = ticks(low, high, Math.max(3, Math.round(height / 55)));
    const left = 16 + 6.6 * Math.max(...marks.map((v) => compact(v).length)) + (options.yLabel ? 14 : 0);
    const plot = { l: left, r: width - 12, t: 10, b: height - 38 };
    const [x0, x1] = [xs[0], xs[xs.length - 1]];
    const X = (x) => (x1 === x0 ? (plot.l + plot.r) / 2 : plot.l + ((x - x0) / (x1 - x0)) * (plot.r - plot.l));
    const Y = (y) => plot.b - ((y - low) / (high - low)) * (plot.b - plot.t);
    const P = (x, y) => `${X(x).toFixed(1)},${Y(y).toFixed(1)}`;
    const every = Math.ceil(xs.length / Math.max(2, Math.floor((plot.r - plot.l) / 34)));
    const xMarks = options.whole ? xs.filter((_, i) => i % every === 0) : ticks(x0, x1, Math.max(2, Math.floor(width / 110)));

    const root = s("svg", {
      viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img",
      "aria-label": `${options.title}. ${summary(visible, format)} Arrow keys read the values.`,
    });
    for (const v of marks) {
      root.append(s("line", { class: "gridline", x1: plot.l, x2: plot.r, y1: Y(v), y2: Y(v) }),
        s("text", { x: plot.l - 7, y: Y(v) + 4, "text-anchor": "end" }, compact(v)));
    }
    for (const v of options.boundaries ?? []) {
      if (v > x0 && v < x1) root.append(s("line", { class: "boundary", x1: X(v), x2: X(v), y1: plot.t, y2: plot.b }));
    }
    root.append(s("line", { class: "axis", x1: plot.l, x2: plot.r, y1: plot.b, y2: plot.b }));
    for (const v of xMarks) root.append(s("text", { x: X(v), y: plot.b + 16, "text-anchor": "middle" }, compact(v)));
    root.append(s("text", { x: (plot.l + plot.r) / 2, y: height - 5, "text-anchor": "middle" }, options.xLabel));
    if (options.yLabel) {
      const middle = (plot.t + plot.b) / 2;
      root.append(s("text", { x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` }, options.yLabel));
    }
    for (const one of visible) {
      if (!one.low) continue;
      const there = range(one.x.length).filter((i) => one.low[i] !== null && one.high[i] !== null);
      const edge = [...there.map((i) => P(one.x[i], Math.min(high, one.high[i]))),
        ...there.reverse().map((i) => P(one.x[i], Math.max(low, one.low[i])))];
      if (edge.length) root.append(s("path", { class: "band", d: `M${edge.join("L")}Z`, style: { fill: one.colour } }));
    }
    for (const one of visible) {
      let pen = "M";
      let d = "";
      one.x.forEach((x, i) => {
        if (one.y[i] === null) { pen = "M"; return; }
        d += pen + P(x, one.y[i]);
        pen = "L";
      });
      root.append(s("path", { class: "curve", d, "stroke-dasharray": one.dash, style: { stroke: one.colour, ...(one.width && { "stroke-width": one.width }) } }));
      if (one.dots !== false && one.x.length <= 40) {
        one.x.forEach((x, i) => {
          if (one.y[i] !== null) root.append(s("circle", { cx: X(x), cy: Y(one.y[i]), r: one.width > 2 ? 4 : 3, style: { fill: one.colour } }));
        });
      }
    }
    const cross = s("g", { "aria-hidden": "true" });
    root.append(cross);

    move = (index, point) => {
      at = Math.max(0, Math.min(xs.length - 1, index));
      const x = xs[at];
      const found = visible.map((one) => {
        const i = one.x.indexOf(x);
        return { one, y: i < 0 ? null : one.y[i] };
      }).filter((hit) => hit.y !== null);
      cross.replaceChildren(s("line", { class: "cross", x1: X(x), x2: X(x), y1: plot.t, y2: plot.b }),
        ...found.map((hit) => s("circle", { cx: X(x), cy: Y(hit.y), r: 4.5, style: { fill: hit.one.colour } })));
      found.sort((a, b) => b.y - a.y);
      const frame = root.getBoundingClientRect();
      const where = point ?? [frame.left + (X(x) * frame.width) / width, frame.top + 20];
      const heading = `${options.xLabel} ${compact(x)}`;
      showTip(where[0], where[1], h("b", {}, heading), ...found.slice(0, 14).map((hit) =>
        h("div", { class: "line" }, h("span", { class: "swatch", style: { background: hit.one.colour } }),
          h("span", {}, hit.one.name), h("span", {}, format(hit.y)))));
      return `${heading}: ${found.map((hit) => `${hit.one.name} ${format(hit.y)}`).join(", ")}`;
    };
    const leave = () => { cross.replaceChildren(); hideTip(); };
    root.addEventListener("pointermove", (event) => {
      const frame = root.getBoundingClientRect();
      const px = ((event.clientX - frame.left) / frame.width) * width;
      let best = 0;
      xs.forEach((x, i) => { if (Math.abs(X(x) - px) < Math.abs(X(xs[best]) - px)) best = i; });
      move(best, [event.clientX, event.clientY]);
    });
    root.addEventListener("pointerleave", leave);
    root.addEventListener("blur", leave);
    root.addEventListener("keydown", (event) => {
      const jump = { ArrowLeft: -1, ArrowRight: 1, Home: -xs.length, End: xs.length }[event.key];
      if (!jump) return;
      event.preventDefault();
      byId("live").textContent = move(at === null ? (jump > 0 ? 0 : xs.length - 1) : at + jump);
    });
    canvas.replaceChildren(root);
  }

  const canvas = h("div");
  box.append(canvas);
  if (options.legend !== false && series.length > 1) {
    box.append(h("ul", { class: "legend", "aria-label": "Curves" }, series.map((one, i) => {
      const button = h("button", { type: "button", "aria-pressed": String(shown[i]), onclick: () => {
        shown[i] = !shown[i];
        button.setAttribute("aria-pressed", String(shown[i]));
        draw();
      } }, key(one), one.name);
      return h("li", {}, button);
    })));
  }
  box.append(dataTable(xs, series, options, format));
  watchWidth(box, draw);
  return box;
}
const key = (one) => s("svg", { width: 22, height: 10, "aria-hidden": "true" },
  s("line", { x1: 1, x2: 21, y1: 5, y2: 5, "stroke-dasharray": one.dash, style: { stroke: one.colour, "stroke-width": one.width ?? 2.5 } }));
const summary = (visible, format) => visible.slice(0, 8).map((one) => {
  const last = one.y.filter((v) => v !== null).at(-1);
  return last === undefined ? "" : `${one.name}: ends at ${format(last)}.`;
}).join(" ");
function dataTable(xs, series, options, format) {
  const details = h("details", { class: "data" }, h("summary", {}, "As a table"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "unseen" }, options.title),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, options.xLabel), series.map((one) => h("th", { scope: "col", class: "num" }, one.name)))),
      h("tbody", {}, xs.map((x) => h("tr", {}, h("th", { scope: "row" }, compact(x)), series.map((one) => {
        const i = one.x.indexOf(x);
        return h("td", { class: "num" }, i < 0 ? "" : format(one.y[i]));
      })))))));
  });
  return details;
}
const observer = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const { target } = entry;
    if (Math.abs((target.drawnAt ?? -9) - target.clientWidth) < 2) continue;
    target.drawnAt = target.clientWidth;
    target.draw();
  }
});
function watchWidth(box, draw) {
  box.draw = () => {
    const focused = document.activeElement?.closest(".chart") === box && document.activeElement.matches("svg");
    draw();
    if (focused) box.querySelector("svg[role]").focus({ preventScroll: true });
  };
  draw();
  observer.observe(box);
}

/* Mean and interval per row, around a line at zero. rows: {name, mean, half, colour}. */
function forest(rows, title, better) {
  const box = h("div", { class: "chart" });
  const draw = () => {
    const width = Math.max(280, box.forced ?? (box.clientWidth || 520));
    const height = 34 + 30 * rows.length;
    const left = Math.min(width * 0.5, 18 + 6.2 * Math.max(...rows.map((row) => row.name.length)));
    const reach = Math.max(...rows.map((row) => Math.abs(row.mean) + (row.half ?? 0)), 0.5) * 1.1;
    const X = (v) => left + 10 + ((v + reach) / (2 * reach)) * (width - left - 84);
    const root = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label":
      `${title}. ${rows.map((row) => `${row.name}: ${signed(row.mean)}${row.half === null ? "" : ` plus or minus ${number(row.half)}`}.`).join(" ")}` });
    for (const v of ticks(-reach, reach, Math.max(3, Math.floor(width / 130)))) {
      root.append(s("line", { class: v === 0 ? "cross" : "gridline", x1: X(v), x2: X(v), y1: 4, y2: height - 24 }),
        s("text", { x: X(v), y: height - 8, "text-anchor": "middle" }, v > 0 ? `+${compact(v)}` : compact(v)));
    }
    rows.forEach((row, i) => {
      const y = 20 + 30 * i;
      const clear = row.half !== null && Math.abs(row.mean) > row.half;
      const colour = !clear ? "var(--soft)" : row.mean * better > 0 ? "var(--good)" : "var(--bad)";
      const name = row.name.length * 6.2 > left ? `${row.name.slice(0, Math.floor(left / 6.2) - 1)}…` : row.name;
      root.append(s("text", { x: left, y: y + 4, "text-anchor": "end" }, name));
      if (row.half !== null) root.append(s("line", { x1: X(row.mean - row.half), x2: X(row.mean + row.half), y1: y, y2: y, style: { stroke: colour, "stroke-width": 3, "stroke-linecap": "round", opacity: 0.55 } }));
      root.append(s("circle", { cx: X(row.mean), cy: y, r: 5.5, style: { fill: colour } }),
        s("text", { x: width - 4, y: y + 4, "text-anchor": "end", style: { fill: colour, "font-weight": 600 } }, signed(row.mean)));
    });
    box.replaceChildren(root);
  };
  watchWidth(box, draw);
  return box;
}

function bars(labels, values, title) {
  const box = h("div", { class: "chart" });
  const draw = () => {
    const width = Math.max(260, box.forced ?? (box.clientWidth || 520));
    const height = 210;
    const there = values.filter((v) => v !== null);
    const marks = ticks(Math.min(0, ...there), Math.max(1, ...there), 4);
    const [low, high] = [Math.min(0, ...there) * 1.25, Math.max(1, ...there)]; /* room for a number below */
    const X = (i) => 44 + ((i + 0.5) * (width - 54)) / values.length;
    const Y = (v) => 18 + ((high - v) / (high - low)) * (height - 58);
    const thick = Math.min(46, ((width - 54) / values.length) * 0.62);
    const root = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label":
      `${title}. ${labels.map((label, i) => `${label}: ${number(values[i], 1)}.`).join(" ")}` });
    for (const v of marks) root.append(s("line", { class: "gridline", x1: 40, x2: width - 8, y1: Y(v), y2: Y(v) }), s("text", { x: 34, y: Y(v) + 4, "text-anchor": "end" }, compact(v)));
    values.forEach((v, i) => {
      root.append(s("text", { x: X(i), y: height - 22, "text-anchor": "middle" }, labels[i].replace("task ", "")));
      if (v === null) return;
      const top = Math.min(Y(v), Y(0));
      root.append(s("rect", { x: X(i) - thick / 2, y: top, width: thick, height: Math.max(1, Math.abs(Y(v) - Y(0))), rx: 3, style: { fill: taskColour(i, values.length + 1) } }));
      if (thick > 16) root.append(s("text", { x: X(i), y: (v < 0 ? Y(v) + 13 : top - 5), "text-anchor": "middle" }, number(v, 1)));
    });
    root.append(s("line", { class: "axis", x1: 40, x2: width - 8, y1: Y(0), y2: Y(0) }), s("text", { x: width / 2, y: height - 5, "text-anchor": "middle" }, "task"));
    box.replaceChildren(root);
  };
  watchWidth(box, draw);
  return box;
}

/* ---- The overview ------------------------------------------------------------------------------ */

const card = (title, attributes, ...children) =>
  h("section", { ...attributes, class: `card ${attributes?.class ?? ""}` }, title && h("h2", {}, title), children);
const streamName = (group) => `${group.benchmark}, ${group.tasks} tasks`;
const groupName = (group) => group.label + (group.note ? ` (${group.note})` : "");
const bufferText = (group) => (group.buffer === null ? "–" : String(group.buffer));
const wordsIn = (text) => state.words.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
function chosenGroups() {
  return all.groups.filter((group) =>
    (!state.benchmark || group.benchmark === state.benchmark) &&
    (!state.buffer || bufferText(group) === state.buffer || group.buffer === null) &&
    (wordsIn(`${groupName(group)} ${group.benchmark} ${bufferText(group)} ${group.scale}`) ||
      group.runs.some((n) => wordsIn(`${groupName(group)} ${group.benchmark} ${all.runs[n].name}`))));
}

function filterBar(refresh) {
  const distinct = (values) => [...new Set(values)].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const count = h("span", { class: "count", role: "status" });
  const select = (label, field, values) => values.length > 1 && h("select", { "aria-label": label, id: `filter-${field}`, onchange: (event) => { state[field] = event.target.value; refresh(); } },
    h("option", { value: "" }, `${label}: all`), values.map((v) => h("option", { value: v, selected: state[field] === v }, v)));
  const bar = h("div", { class: "bar", role: "search" },
    h("input", { type: "search", id: "filter", placeholder: "Filter: method, benchmark, run …", "aria-label": "Filter", value: state.words,
      oninput: (event) => { state.words = event.target.value; refresh(); } }),
    select("Benchmark", "benchmark", distinct(all.groups.map((g) => g.benchmark))),
    select("Buffer", "buffer", distinct(all.groups.filter((g) => g.buffer !== null).map(bufferText))), count);
  return [bar, count];
}

function valueCell(group, metric) {
  const value = group.values[state.setting][metric];
  if (!value) return h("span", { class: "faint" }, "–");
  const best = group.best[state.setting].includes(metric);
  return [h("span", { class: best && "best", title: best && "best of its setting" }, number(value.mean)),
    value.std !== null && h("span", { class: "std" }, ` ± ${number(value.std)}`)];
}
function gainCell(group) {
  const gain = group.gain[state.setting];
  if (!gain) return h("span", { class: "faint" }, "–");
  const clear = gain.half !== null && Math.abs(gain.mean) > gain.half;
  const text = signed(gain.mean) + (gain.half === null ? "" : ` ± ${number(gain.half)}`);
  const why = [gain.n ? `Over ${gain.n} common seed${gain.n === 1 ? "" : "s"}.` : "Difference of the means: the runs have no common seed.",
    gain.n < 2 && "An interval needs two common seeds.",
    group.also.length && `LiDER is not the only difference: the runs also differ in ${group.also.join(", ")}.`].filter(Boolean).join(" ");
  return explained(h("span", { class: `term ${clear ? (gain.mean > 0 ? "up" : "down") : "faint"}`, tabindex: 0 }, text, group.also.length > 0 && " *"), "LiDER's gain", why);
}
function scaleCell(group) {
  const badge = h("span", { class: "badge", tabindex: group.changes.length ? 0 : null }, group.scale);
  return group.changes.length ? explained(badge, `scale ${group.scale}`, group.changes.join("; ")) : badge;
}

const definedMetrics = () => Object.entries(all.metrics).filter(([metric]) => all.groups.some((g) => g.values[state.setting][metric]));
function overviewTable(groups) {
  const metrics = definedMetrics().map(([metric, fact]) => ({
    label: `${fact.label} ${fact.better > 0 ? "↑" : "↓"}`, numeric: true, downFirst: fact.better > 0,
    explain: [`${fact.label}: ${fact.name}`, fact.definition],
    value: (group) => group.values[state.setting][metric]?.mean ?? null,
    cell: (group) => valueCell(group, metric),
  }));
  const several = (f) => new Set(all.groups.map(f)).size > 1;
  const explain = (word) => [word, all.terms[word]];
  const columns = [
    { label: "Method", value: groupName, cell: (group) => [h("a", { href: `#run-${group.runs[0]}` }, group.label), group.note && h("span", { class: "sub-label" }, group.note)] },
    several((g) => g.benchmark) && { label: "Benchmark", value: (g) => g.benchmark, cell: (g) => g.benchmark },
    { label: "Buffer", numeric: true, explain: explain("buffer"), value: (g) => g.buffer, cell: bufferText },
    ...metrics,
    all.groups.some((g) => g.gain.class_incremental) &&
      { label: "LiDER's gain (FAA)", numeric: true, downFirst: true, explain: explain("LiDER's gain"), value: (g) => g.gain[state.setting]?.mean ?? null, cell: gainCell },
    all.groups.some((g) => Object.keys(g.paper).length) &&
      { label: "Paper (FAA, FF)", numeric: true, explain: explain("paper"), value: (g) => g.paper.faa ?? null, cell: (g) => paperCell(g) },
    all.groups.some((g) => g.ledger.n) &&
      { label: "Ledger (FAA)", numeric: true, explain: explain("ledger"), value: (g) => g.ledger.mean ?? null, cell: (g) => ledgerCell(g) },
    { label: "Scale", explain: explain("scale"), value: (g) => g.scale, cell: scaleCell },
    { label: "Seeds", numeric: true, explain: explain("seeds"), value: (g) => g.seeds, cell: (g) => String(g.seeds) },
  ].filter(Boolean);
  return sortable("methods", "Methods and their metrics", columns, groups);
}
function paperCell(group) {
  if (state.setting !== "class_incremental" || group.paper.faa === undefined) return h("span", { class: "faint" }, "–");
  return [number(group.paper.faa), group.paper.ff !== undefined && h("span", { class: "std" }, `, ${number(group.paper.ff)}`)];
}
function ledgerCell(group) {
  if (state.setting !== "class_incremental" || !group.ledger.n) return h("span", { class: "faint" }, "–");
  const std = group.ledger.std === null ? "" : ` ± ${number(group.ledger.std)}`;
  return [number(group.ledger.mean), h("span", { class: "std" }, `${std} (${group.ledger.n})`)];
}

function overviewPage() {
  const body = h("div");
  const [bar, count] = filterBar(refresh);
  function refresh() {
    const groups = chosenGroups();
    count.textContent = `${groups.length} of ${all.groups.length} rows`;
    if (!groups.length) {
      body.replaceChildren(card(null, {}, h("p", { class: "empty" }, "Nothing matches the filter.")));
      return;
    }
    const gains = groups.filter((g) => g.gain[state.setting]);
    const streams = [...new Set(groups.map(streamName))];
    const buffers = (stream) => new Set(groups.filter((g) => streamName(g) === stream && g.buffer !== null).map(bufferText)).size > 1;
    const where = (g) => (buffers(streamName(g)) && g.buffer !== null ? `, buffer ${g.buffer}` : "");
    const curves = (stream) => groups.filter((g) => streamName(g) === stream).map((group, i) => {
      const { mean: y, std } = group.curve[state.setting];
      const band = std.some((v) => v !== null) && { low: y.map((v, t) => (v === null || std[t] === null ? null : v - std[t])), high: y.map((v, t) => (v === null || std[t] === null ? null : v + std[t])) };
      return { name: groupName(group) + where(group), x: range(y.length).map((t) => t + 1), y, ...band, colour: palette(i), dash: dashes[Math.floor(i / 8) % 4], group };
    }).filter((one) => one.x.length);
    body.replaceChildren(
      card(h("span", {}, "Methods, ", term(SETTINGS[state.setting]), ", ", term("mean ± std"), ", ", term("best"), " ★"), { class: "long" }, overviewTable(groups)),
      h("div", { class: "grid" },
        streams.map((stream) => card(`Mean accuracy on the tasks seen so far: ${stream}`, { class: streams.length + (gains.length > 0) > 1 ? "" : "wide" },
          lineChart(curves(stream), { title: `Mean accuracy on the tasks seen so far, ${stream}, percent`, xLabel: "tasks seen", yLabel: "accuracy (%)", from: 0, atMost: 100, whole: true, show: 8, percent: true }))),
        gains.length > 0 && card(h("span", {}, term("LiDER's gain"), " in FAA, with 95 % interval"), {},
          forest(gains.map((g) => ({ name: groupName(g) + (streams.length > 1 ? `, ${g.benchmark}` : "") + where(g), ...g.gain[state.setting] })), "Gain in FAA with LiDER", 1),
          h("p", { class: "note" }, "In points of final average accuracy. Grey: the interval contains 0, or there are too few seeds for an interval."))));
  }
  refresh();
  return h("div", {}, tiles(), bar, body);
}
function tiles() {
  const finished = all.runs.filter((run) => run.state === "finished").length;
  const one = (big, small) => h("div", { class: "tile" }, h("span", { class: "big" }, big), h("span", { class: "small" }, small));
  const time = all.runs.reduce((sum, run) => sum + (run.seconds ?? 0), 0);
  const plural = (n, word) => `${word}${n === 1 ? "" : "s"}`;
  const benchmarks = new Set(all.groups.map((g) => g.benchmark)).size;
  return h("div", { class: "tiles" },
    one(String(all.runs.length), `${plural(all.runs.length, "run")}, ${finished} finished`),
    one(String(all.groups.length), `${plural(all.groups.length, "row")}: one per experiment, over its seeds`),
    one(String(benchmarks), benchmarks === 1 ? `benchmark: ${all.groups[0].benchmark}` : "benchmarks"),
    one(duration(time), "run time of all runs together"));
}

/* ---- The list of runs --------------------------------------------------------------------------- */

function runsPage() {
  const body = h("div");
  const [bar, count] = filterBar(refresh);
  function refresh() {
    const rows = range(all.runs.length).filter((n) => {
      const group = all.groups[all.runs[n].group];
      return (!state.benchmark || group.benchmark === state.benchmark) && (!state.buffer || bufferText(group) === state.buffer) &&
        wordsIn(`${all.runs[n].name} ${groupName(group)} ${group.benchmark} ${all.runs[n].state}`);
    });
    count.textContent = `${rows.length} of ${all.runs.length} runs`;
    const group = (n) => all.groups[all.runs[n].group];
    const columns = [
      { label: "Run", value: (n) => all.runs[n].name, cell: (n) => h("a", { href: `#run-${n}` }, all.runs[n].name) },
      { label: "Method", value: (n) => groupName(group(n)), cell: (n) => groupName(group(n)) },
      { label: "Benchmark", value: (n) => group(n).benchmark, cell: (n) => group(n).benchmark },
      { label: "Buffer", numeric: true, value: (n) => group(n).buffer, cell: (n) => bufferText(group(n)) },
      { label: "Seed", numeric: true, value: (n) => all.runs[n].seed, cell: (n) => String(all.runs[n].seed) },
      ...definedMetrics().map(([metric, fact]) => ({
        label: `${fact.label} ${fact.better > 0 ? "↑" : "↓"}`, numeric: true, downFirst: fact.better > 0, explain: [`${fact.label}: ${fact.name}`, fact.definition],
        value: (n) => all.runs[n].values[state.setting][metric], cell: (n) => number(all.runs[n].values[state.setting][metric]),
      })),
      { label: "Time", numeric: true, value: (n) => all.runs[n].seconds, cell: (n) => duration(all.runs[n].seconds) },
      { label: "State", value: (n) => all.runs[n].state, cell: (n) => h("span", { class: `badge ${all.runs[n].state}` }, all.runs[n].state) },
    ];
    body.replaceChildren(rows.length ? card(`Runs, ${SETTINGS[state.setting]}, percent`, { class: "long" }, sortable("runs-table", "All runs", columns, rows))
      : card(null, {}, h("p", { class: "empty" }, "Nothing matches the filter.")));
  }
  refresh();
  return h("div", {}, bar, body);
}

/* ---- One run ------------------------------------------------------------------------------------ */

function runPage(n) {
  const run = all.runs[n];
  const group = all.groups[run.group];
  const data = detail(n);
  const matrix = data.matrix[state.setting];
  return h("div", {}, runHeading(n, run, group), runTiles(run),
    h("div", { class: "grid" },
      card(h("span", {}, term("Accuracy matrix", "accuracy matrix")), {}, heatMap(matrix)),
      card("Accuracy on each task over time", {}, accuracyOverTime(matrix)),
      forgettingCard(matrix),
      gapCard(data),
      lossCard(data)),
    lipschitzCard(data), memoryCard(n, data), configCard(n, data), reproduceCard(data));
}

function runHeading(n, run, group) {
  const pick = h("select", { "aria-label": "Run", id: "pick-run", onchange: (event) => { location.hash = `run-${event.target.value}`; } },
    all.groups.map((g) => h("optgroup", { label: `${groupName(g)}, ${g.benchmark}, buffer ${bufferText(g)}` },
      g.runs.map((k) => h("option", { value: k, selected: k === n }, all.runs[k].name)))));
  const go = (k, text, id) => h("a", { class: "button", id, href: `#run-${(k + all.runs.length) % all.runs.length}` }, text);
  return h("div", { class: "heading" }, h("h2", {}, run.name), h("span", { class: `badge ${run.state}` }, run.state),
    pick, go(n - 1, "← previous", "previous"), go(n + 1, "next →", "next"),
    h("div", { class: "sub" }, `${groupName(group)} on ${group.benchmark}, ${group.tasks} tasks`,
      group.buffer === null ? "" : `, buffer ${group.buffer}`, `, seed ${run.seed}, ${duration(run.seconds)}, scale `, scaleCell(group)));
}
function runTiles(run) {
  return h("div", { class: "tiles" }, Object.entries(all.metrics).map(([metric, fact]) =>
    h("div", { class: "tile" }, h("span", { class: "big" }, number(run.values[state.setting][metric])),
      h("span", { class: "small" }, term(fact.label, metric), ` ${fact.better > 0 ? "↑" : "↓"} ${fact.name}`))));
}

function heatMap(matrix) {
  const tasks = matrix.length;
  const cell = (value, t, i) => {
    if (value === null || i > t) return h("td", { "aria-label": "not measured" });
    return h("td", { style: { background: `color-mix(in oklab, var(--heat-high) ${value}%, var(--heat-low))`, color: value > 52 ? "var(--heat-high-ink)" : "var(--heat-low-ink)" } },
      explained(h("span", {}, number(value, tasks > 12 ? 0 : 1)), `${number(value)} %`, `on task ${i + 1} after training task ${t + 1}`));
  };
  return h("div", { class: "scroll" }, h("table", { class: `heat ${tasks > 7 ? "many" : ""}`, id: "matrix" },
    h("caption", { class: "unseen" }, "Accuracy on every task after every task, percent"),
    h("thead", {}, h("tr", {}, h("td"), range(tasks).map((i) => h("th", { scope: "col" }, tasks > 7 ? i + 1 : `task ${i + 1}`)))),
    h("tbody", {}, matrix.map((row, t) => h("tr", {}, h("th", { scope: "row" }, `after ${t + 1}`), row.map((value, i) => cell(value, t, i)))))));
}

const soFar = (row, t) => { const seen = row.slice(0, t + 1); return seen.some((v) => v === null) ? null : mean(seen); };
function accuracyOverTime(matrix) {
  const tasks = matrix.length;
  const x = range(tasks).map((t) => t + 1);
  const each = range(tasks).map((i) => ({ name: `task ${i + 1}`, x, y: matrix.map((row, t) => (t < i ? null : row[i])), colour: taskColour(i, tasks) }));
  const overall = { name: "mean so far", x, y: matrix.map(soFar), colour: "var(--ink)", width: 3.2, dash: "6 4" };
  return lineChart([overall, ...each], { title: "Accuracy on each task over time, percent", xLabel: "after task", yLabel: "accuracy (%)", from: 0, atMost: 100, whole: true, percent: true });
}

function forgettingCard(matrix) {
  const forgotten = (t, i) => {
    const before = range(t).slice(i).map((k) => matrix[k][i]).filter((v) => v !== null);
    return before.length && matrix[t][i] !== null ? Math.max(...before) - matrix[t][i] : null;
  };
  const last = matrix.length - 1;
  const end = range(last).map((i) => forgotten(last, i));
  if (!end.some((v) => v !== null)) {
    return card(h("span", {}, term("Forgetting", "forgetting")), {}, h("p", { class: "empty" }, "Not defined: a task must be measured after two different tasks."));
  }
  const x = range(matrix.length).map((t) => t + 1).slice(1);
  const y = x.map((t) => { const v = range(t - 1).map((i) => forgotten(t - 1, i)); return v.some((w) => w === null) ? null : mean(v); });
  return card(h("span", {}, term("Forgetting", "forgetting"), " per task at the end, and its mean over time"), {}, bars(end.map((_, i) => `task ${i + 1}`), end, "Forgetting at the end, points of accuracy"),
    lineChart([{ name: "mean forgetting", x, y, colour: "var(--bad)" }], { title: "Mean forgetting after each task", xLabel: "after task", atMost: 100, whole: true, height: 150, percent: true }));
}

function gapCard(data) {
  const title = h("span", {}, term("Buffer-vs-test gap", "buffer-vs-test gap"));
  const text = !data.keepsMemory ? "This method keeps no memory." : "This run did not measure its accuracy on the memory.";
  if (!data.onMemory) return card(title, {}, h("p", { class: "empty" }, text));
  const x = range(data.onMemory.length).map((t) => t + 1);
  const known = (row, t) => { const seen = row.slice(0, t + 1).filter((v) => v !== null); return seen.length ? mean(seen) : null; };
  const inside = data.onMemory.map(known);
  const outside = data.matrix.class_incremental.map(soFar);
  const end = range(x.length).filter((t) => inside[t] !== null && outside[t] !== null).at(-1);
  const gap = end === undefined ? null : inside[end] - outside[end];
  return card(title, { id: "gap" },
    h("p", { class: "note" }, gap === null ? "" : `After task ${end + 1}, the network is ${number(Math.abs(gap), 1)} points ${gap < 0 ? "worse" : "better"} on its memory than on test images.`),
    lineChart([
      { name: "on memory", x, y: inside, colour: "var(--c1)", low: outside.map((v, t) => (inside[t] === null ? null : v)), high: inside },
      { name: "on test images", x, y: outside, colour: "var(--c0)" },
    ], { title: "Accuracy on memory and on test images, percent", xLabel: "after task", yLabel: "accuracy (%)", from: 0, atMost: 100, whole: true, percent: true }));
}

function lossCard(data) {
  const names = Object.keys(data.terms);
  const title = h("span", {}, term("Loss terms", "loss terms"), " over training");
  if (!names.length) return card(title, { class: "wide" }, h("p", { class: "empty" }, "No step has been logged."));
  return card(title, { class: "wide", id: "losses" }, h("div", { class: "stages" }, names.map((name, i) =>
    h("div", {}, h("h4", {}, name), lineChart([{ name, ...data.terms[name], colour: palette(i), dots: false }],
      { title: `Loss term ${name}`, xLabel: "step", boundaries: data.ends, height: 190 })))),
    h("p", { class: "note" }, "Dotted lines mark the end of a task."));
}

function lipschitzCard(data) {
  const stages = [...new Set(Object.keys(data.readings).map((name) => /^lider\/(?:λ|c)\/(.*)$/su.exec(name)?.[1]).filter((stage) => stage !== undefined))];
  const others = Object.keys(data.readings).filter((name) => !/^lider\/(λ|c)\//u.test(name));
  if (!stages.length && !others.length) return null;
  const draw = (series, title) => lineChart(series.filter(Boolean), { title, xLabel: "step", boundaries: data.ends, height: 190 });
  const curve = (name, label, colour, dash) => data.readings[name] && { name: label, ...data.readings[name], colour, dash, dots: false };
  return card(stages.length ? h("span", {}, term("λ and target c", "λ and c"), " of every stage over training") : "Readings of the regularisers", { id: "lipschitz" },
    h("div", { class: "stages" },
      stages.map((stage) => h("div", {}, h("h4", {}, stage),
        draw([curve(`lider/λ/${stage}`, "λ", "var(--c0)"), curve(`lider/c/${stage}`, "c", "var(--c5)", "7 4")], `Lipschitz constant and target of stage ${stage}`))),
      others.map((name) => h("div", {}, h("h4", {}, name), draw([curve(name, name, "var(--c2)")], name)))),
    h("p", { class: "note" }, "Dotted lines mark the end of a task."));
}

/* ---- The memory --------------------------------------------------------------------------------- */

function memoryCard(n, data) {
  if (!data.keepsMemory) return null;
  const title = h("span", {}, term("Memory", "memory"));
  const m = data.memory;
  if (!m) return card(title, { id: "memory" }, h("p", { class: "empty" }, "No images: the report was written without them, or no checkpoint holds them."));
  const size = m.label.length;
  const scale = Math.max(1, Math.round(44 / m.width));
  const rows = Math.ceil(size / m.columns);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`.sheet-${n} { background-image: url("${m.picture}"); }`);
  document.adoptedStyleSheets = [sheet];
  const frame = { "--shown-w": `${m.width * scale}px`, "--shown-h": `${m.height * scale}px`,
    "--sheet-w": `${m.columns * m.width * scale}px`, "--sheet-h": `${rows * m.height * scale}px` };
  const name = (label) => data.classes[label] ?? String(label);
  const picture = (i) => {
    const marks = [`stored label ${name(m.label[i])}`, `task ${m.task[i] + 1}`,
      m.poisoned?.[i] && "poisoned: the label is wrong", m.edits?.[i] && `edited ${m.edits[i]} time${m.edits[i] === 1 ? "" : "s"}`].filter(Boolean);
    const x = (i % m.columns) * m.width * scale;
    const y = Math.floor(i / m.columns) * m.height * scale;
    return h("li", {}, explained(h("span", { class: `picture sheet-${n} ${m.poisoned?.[i] ? "poisoned" : ""}`, role: "img", "aria-label": marks.join(", "),
      style: { "background-position": `-${x}px -${y}px` } }, m.poisoned?.[i] ? h("i", {}, "✕") : m.edits?.[i] ? h("i", {}, String(m.edits[i])) : null), name(m.label[i]), marks.join(", ")));
  };
  const tasks = [...new Set(m.task)].sort((a, b) => a - b);
  const total = (field) => m[field]?.filter((v) => v > 0).length ?? 0;
  const facts = [size < m.total ? `Showing ${size} of ${m.total} images, spread evenly over the classes.` : `${m.total} images.`];
  return card(title, { id: "memory", class: "long" },
    h("p", { class: "note" }, facts.join(" "), m.poisoned && [` ${total("poisoned")} of them `, term("poisoned"), " (✕, framed)."], m.edits && [` ${total("edits")} of them `, term("edited"), " (the number says how often)."]),
    h("div", { style: frame }, tasks.map((task, k) => {
      const mine = range(size).filter((i) => m.task[i] === task);
      const labels = [...new Set(mine.map((i) => m.label[i]))].sort((a, b) => a - b);
      const box = h("details", { class: "task" }, h("summary", {}, `Task ${task + 1}: ${mine.length} image${mine.length === 1 ? "" : "s"} of ${labels.length} class${labels.length === 1 ? "" : "es"}`));
      const show = () => {
        if (box.childElementCount > 1) return;
        box.append(...labels.map((label) => {
          const those = mine.filter((i) => m.label[i] === label);
          return h("div", { class: "memory-class" }, h("div", { class: "name" }, name(label), h("small", {}, `${those.length} image${those.length === 1 ? "" : "s"}`)), h("ul", { class: "pictures" }, those.map(picture)));
        }));
      };
      box.addEventListener("toggle", () => { if (box.open) show(); });
      if (k === 0 || size <= 400) { box.open = true; show(); }
      return box;
    })));
}

/* ---- Configuration ------------------------------------------------------------------------------ */

function configCard(n, data) {
  const place = h("div", { class: "scroll" });
  const others = range(all.runs.length).filter((k) => k !== n);
  const elsewhere = (field) => (all.varying[field] ?? []).filter(([value]) => value !== (data.config[field] ?? null))
    .map(([value, count]) => `${value ?? "–"} (${count})`).join(", ");
  function refresh() {
    const other = state.other === "" || Number(state.other) === n ? null : Number(state.other);
    const theirs = other === null ? null : detail(other).config;
    const fields = [...new Set([...Object.keys(data.config), ...(theirs ? Object.keys(theirs) : [])])].filter((field) => !field.startsWith("scale.changes."));
    const differs = (field) => (theirs ? data.config[field] !== theirs[field] : field in all.varying);
    const rows = fields.filter((field) => !state.only || differs(field));
    place.replaceChildren(h("table", { class: "config", id: "config" }, h("caption", { class: "unseen" }, "Configuration; rows that differ are marked"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "field"), h("th", { scope: "col" }, "this run"), h("th", { scope: "col" }, theirs ? all.runs[other].name : "in other runs"))),
      h("tbody", {}, rows.map((field) => h("tr", { class: differs(field) && "differs" }, h("th", { scope: "row" }, field, differs(field) && h("span", { class: "unseen" }, " (differs)")),
        h("td", {}, data.config[field] ?? "–"), h("td", { class: "others" }, theirs ? theirs[field] ?? "–" : elsewhere(field))))),
      ), ...(rows.length ? [] : [h("p", { class: "empty" }, "Nothing differs.")]));
  }
  refresh();
  return card("Configuration", { class: "long" },
    h("p", { class: "note" }, "Marked fields differ from the run chosen here or, without a choice, between the runs of this report."),
    h("div", { class: "bar" },
      others.length > 0 && h("select", { id: "other", "aria-label": "Compare with", onchange: (event) => { state.other = event.target.value; refresh(); } },
        h("option", { value: "" }, "Compare with …"), others.map((k) => h("option", { value: k, selected: String(k) === state.other }, all.runs[k].name))),
      h("label", {}, h("input", { type: "checkbox", id: "only", checked: state.only, onchange: (event) => { state.only = event.target.checked; refresh(); } }), " differences only")), place);
}

function reproduceCard(data) {
  const copyable = (text, label) => {
    const button = h("button", { type: "button", class: "button", "aria-label": `Copy ${label}`, onclick: async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Cannot copy"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } }, "Copy");
    return h("div", { class: "copyable" }, h("pre", { tabindex: 0 }, text), button);
  };
  return card("Run it again", { id: "again" }, h("p", { class: "note" }, "On the same machine and with the same versions, this gives the same numbers to the bit."), copyable(data.command, "the command"),
    h("details", { class: "data" }, h("summary", {}, "config.yaml"), copyable(data.yaml, "config.yaml")),
    Object.keys(data.versions).length > 0 && [h("h3", {}, "Versions"), h("dl", { class: "words" }, Object.entries(data.versions).map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]))]);
}

/* ---- Glossary, theme, printing, navigation ------------------------------------------------------ */

function glossaryPage() {
  const words = [...Object.values(all.metrics).map((m) => [`${m.label}: ${m.name}`, m.definition]), ...Object.entries(all.terms)];
  return card("Glossary", {}, h("dl", { class: "words" }, words.map(([word, text]) => [h("dt", {}, word), h("dd", {}, text)])));
}

function theme(choice) {
  const dark = choice === "dark" || (choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
let chosenTheme = "auto";
try { chosenTheme = localStorage.getItem("liderlab-theme") ?? "auto"; } catch { /* storage is blocked: start with auto */ }
theme(chosenTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(chosenTheme));
function redraw(width) { /* on paper, charts stand in pairs */
  for (const box of document.querySelectorAll(".chart")) {
    box.forced = width && (box.parentElement.classList.contains("wide") ? 720 : width);
    box.draw();
  }
}
addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; redraw(350); });
addEventListener("afterprint", () => { theme(chosenTheme); redraw(undefined); });

function header() {
  const page = location.hash.slice(1) || "overview";
  const link = (id, text, here = page === id) => h("a", { href: `#${id}`, "aria-current": here && "page" }, text);
  const choice = (label, values, current, choose) => h("div", { class: "choice", role: "group", "aria-label": label },
    Object.entries(values).map(([value, text]) => h("button", { type: "button", "data-value": value, "aria-pressed": String(value === current), onclick: () => choose(value) }, text)));
  const run = /^run-\d+$/u.test(page) ? page : "run-0";
  byId("top").replaceChildren(h("h1", {}, all.title),
    h("nav", { "aria-label": "Pages" }, link("overview", "Overview"), link("runs", "Runs"), link(run, "One run"), link("words", "Glossary")),
    h("div", { class: "push" },
      choice("Setting", SETTINGS, state.setting, (value) => { state.setting = value; render(false, value); }),
      choice("Theme", { auto: "Auto", light: "Light", dark: "Dark" }, chosenTheme, (value) => {
        chosenTheme = value;
        try { localStorage.setItem("liderlab-theme", value); } catch { /* storage is blocked: not remembered */ }
        theme(value);
        header();
        byId("top").querySelector(`[data-value="${value}"]`).focus();
      })));
}

function render(moved, focus) {
  hideTip();
  observer.disconnect();
  const page = location.hash.slice(1);
  const match = /^run-(\d+)$/u.exec(page);
  const n = match ? Number(match[1]) : -1;
  const content = n >= 0 && n < all.runs.length ? () => runPage(n) : { runs: runsPage, words: glossaryPage }[page] ?? overviewPage;
  header();
  byId("main").replaceChildren(content());
  document.title = n >= 0 && n < all.runs.length ? `${all.runs[n].name} · ${all.title}` : all.title;
  if (moved) { scrollTo({ top: 0, behavior: "instant" }); byId("main").focus({ preventScroll: true }); }
  if (focus) byId("top").querySelector(`[data-value="${focus}"]`).focus();
}
addEventListener("hashchange", () => render(true));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
byId("foot").append(`Written by liderlab ${all.version}. This file is complete and opens offline.`);
render(false);
document.documentElement.dataset.ready = "true";
})();
