/* Dots with intervals, bars, matrices. */

/* A row per experiment: the mean with its interval, and a dot per seed. An interval that leaves the
   plot is cut, with an arrow. rows: {name, mean, half, points ([label, value]), colour, dash?,
   hollow?, note, tone?}. options: title, xLabel, zero (differences, around a line at 0), percent. */
function dotPlot(rows, options) {
  const view = { full: false };
  const full = options.percent && toggle("0–100", false, () => { view.full = !view.full; full.setAttribute("aria-pressed", String(view.full)); box.draw(); }, { class: "tool full" });
  const table = () => [["row", "mean", "± (95 %)", ...range(Math.max(...rows.map((row) => row.points.length))).map((i) => `value ${i + 1}`)],
    ...rows.map((row) => [row.name, row.mean, row.half, ...row.points.map((p) => p[1])])];
  const box = chartBox({ title: options.title, tools: [full], table }, (width) => drawDots(rows, options, Math.max(260, width), view));
  return box;
}
function drawDots(rows, options, width, view) {
  const stacked = width < 430;
  const step = stacked ? 44 : 30;
  const height = 42 + step * rows.length;
  const left = stacked ? 8 : Math.min(width * 0.42, 14 + 6.6 * Math.max(...rows.map((row) => row.name.length)));
  const right = stacked ? 8 : 12 + 6.7 * Math.max(...rows.map((row) => row.note.length));
  const core = [...rows.flatMap((row) => [row.mean, ...row.points.map((p) => p[1])]), ...(options.zero ? [0] : [])];
  const ends = rows.filter((row) => row.half !== null).flatMap((row) => [row.mean - row.half, row.mean + row.half]);
  let [low, high] = view.full ? [0, 100] : fitted(core, ends, false, options.zero ? 0.5 : 0.35);
  if (options.percent && !view.full) high = Math.min(high, 101);
  if (options.zero) [low, high] = [Math.min(low, -0.1 * high), Math.max(high, -0.1 * low)];
  const X = scale(low, high, left + 10, width - right - 10);
  const root = svgRoot(width, height, `${options.title}. ${rows.map((row) => `${row.name}: ${row.note.replace("±", "plus or minus")}.`).join(" ")}`);
  for (const v of ticks(low, high, Math.max(3, Math.floor((width - left - right) / 80)))) {
    root.append(line(X(v), 4, X(v), height - 34, { class: options.zero && v === 0 ? "cross" : "gridline" }),
      text(X(v), height - 20, "middle", options.zero && v > 0 ? `+${compact(v)}` : compact(v)));
  }
  root.append(text((left + width - right) / 2, height - 4, "middle", options.xLabel));
  rows.forEach((row, i) => root.append(dotRow(row, { X, low, high, y: (stacked ? 30 : 18) + step * i, left, right, width, stacked })));
  return root;
}
function dotRow(row, { X, low, high, y, left, right, width, stacked }) {
  const room = Math.floor((stacked ? width - 9 * row.note.length : left) / 6.4);
  const name = row.name.length > room ? `${row.name.slice(0, Math.max(1, room - 1))}…` : row.name;
  const look = { stroke: row.colour, fill: row.hollow ? "var(--card)" : row.colour };
  const [a, b] = row.half === null ? [row.mean, row.mean] : [row.mean - row.half, row.mean + row.half];
  const arrow = (v, way) => s("path", { class: "clipped", d: `M${X(v)},${y}l${-7 * way},-5v10z`, style: { fill: row.colour } });
  const group = s("g", { class: "row", tabindex: -1 },
    s("rect", { x: 0, y: y - 15, width, height: 30, fill: "transparent" }),
    stacked ? text(left, y - 14, "start", name, { class: "name" }) : text(left, y + 4, "end", name, { class: "name" }),
    text(width - 4, stacked ? y - 14 : y + 4, "end", row.note, { class: row.tone ?? "value" }),
    row.half !== null && line(X(Math.max(a, low)), y, X(Math.min(b, high)), y, { class: "interval", "stroke-dasharray": row.dash, style: { stroke: row.colour } }),
    row.half !== null && a < low && arrow(low, -1), row.half !== null && b > high && arrow(high, 1),
    row.points.map(([, v]) => s("circle", { class: "seed", cx: X(v), cy: y, r: 3.2, style: { fill: row.colour } })),
    s("circle", { class: "mean", cx: X(row.mean), cy: y, r: 5.5, style: look }));
  group.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, h("b", {}, row.name), h("div", {}, row.note),
    ...row.points.map(([label, v]) => tipLine(row.colour, label, number(v)))));
  group.addEventListener("pointerleave", hideTip);
  return group;
}

function bars(labels, values, title) {
  const table = () => [["task", "value"], ...labels.map((label, i) => [label, values[i]])];
  return chartBox({ title, table }, (space) => {
    const width = Math.max(260, space);
    const height = 210;
    const there = values.filter((v) => v !== null);
    const marks = ticks(Math.min(0, ...there), Math.max(1, ...there), 4);
    const Y = scale(Math.min(0, ...there) * 1.25, Math.max(1, ...there), height - 40, 18); /* room for a number below */
    const X = (i) => 44 + ((i + 0.5) * (width - 54)) / values.length;
    const thick = Math.min(46, ((width - 54) / values.length) * 0.62);
    const root = svgRoot(width, height, `${title}. ${labels.map((label, i) => `${label}: ${number(values[i], 1)}.`).join(" ")}`);
    for (const v of marks) root.append(line(40, Y(v), width - 8, Y(v), { class: "gridline" }), text(34, Y(v) + 4, "end", compact(v)));
    values.forEach((v, i) => {
      root.append(text(X(i), height - 22, "middle", labels[i].replace("task ", "")));
      if (v === null) return;
      const top = Math.min(Y(v), Y(0));
      root.append(s("rect", { x: X(i) - thick / 2, y: top, width: thick, height: Math.max(1, Math.abs(Y(v) - Y(0))), rx: 3, style: { fill: taskColour(i, values.length + 1) } }));
      if (thick > 16) root.append(text(X(i), v < 0 ? Y(v) + 13 : top - 5, "middle", number(v, 1)));
    });
    root.append(line(40, Y(0), width - 8, Y(0), { class: "axis" }), text(width / 2, height - 5, "middle", "task"));
    return root;
  });
}

/* ---- Confusion ---------------------------------------------------------------------------------- */

/* Runs of zeros are stored as their length, negative. */
const unpacked = (row) => row.flatMap((v) => (v < 0 ? Array(-v).fill(0) : [v]));

/* counts[i][j]: test images of class (or task) i that were taken for j. borders: where tasks end. */
function confusionChart(counts, names, borders, options) {
  const share = counts.map((row) => { const sum = row.reduce((a, b) => a + b, 0); return row.map((v) => (sum ? v / sum : 0)); });
  const table = () => [[`true ${options.unit} \\ predicted`, ...names], ...counts.map((row, i) => [names[i], ...row])];
  return chartBox({ title: options.title, table }, (space) => {
    const n = counts.length;
    const labelled = n <= 20;
    const margin = labelled ? Math.min(110, 16 + 6.4 * Math.max(...names.map((name) => Math.min(14, name.length)))) : 30;
    const width = Math.min(Math.max(260, space), 620);
    const cell = (width - margin - 8) / n;
    const height = margin + cell * n + 8;
    const root = svgRoot(width, height, `${options.title}. ${n} by ${n} ${options.unit}s; rows are true, columns predicted. Diagonal: ${share.slice(0, 20).map((row, i) => `${names[i]} ${number(100 * row[i], 0)} percent`).join(", ")}.`);
    const at = (k) => margin + cell * k;
    root.append(s("rect", { x: margin, y: margin, width: cell * n, height: cell * n, style: { fill: "var(--heat-low)" } }), ...shares(share, at, cell));
    if (labelled) names.forEach((name, i) => root.append(text(margin - 6, at(i + 0.5) + 4, "end", clippedName(name)),
      text(at(i + 0.5), margin - 6, names.some((one) => one.length > 3) ? "start" : "middle", clippedName(name), { transform: names.some((one) => one.length > 3) ? `rotate(-50 ${at(i + 0.5)} ${margin - 6})` : null })));
    else root.append(text(margin + (cell * n) / 2, 16, "middle", `predicted ${options.unit}`), text(14, margin + (cell * n) / 2, "middle", `true ${options.unit}`, { transform: `rotate(-90 14 ${margin + (cell * n) / 2})` }));
    if (cell > 25) share.forEach((row, i) => row.forEach((v, j) => { if (counts[i][j]) root.append(text(at(j + 0.5), at(i + 0.5) + 4, "middle", number(100 * v, 0), { style: { fill: level(v) > 6 ? "var(--heat-high-ink)" : "var(--heat-low-ink)" } })); }));
    for (const k of borders) root.append(line(at(k), margin, at(k), at(n), { class: "border" }), line(margin, at(k), at(n), at(k), { class: "border" }));
    root.addEventListener("pointermove", (event) => {
      const box = root.getBoundingClientRect();
      const [j, i] = [event.clientX - box.left, event.clientY - box.top].map((p) => Math.floor((p * (width / box.width) - margin) / cell));
      if (!counts[i] || counts[i][j] === undefined) { hideTip(); return; }
      showTip(event.clientX, event.clientY, h("b", {}, `${names[i]} taken for ${names[j]}`), `${counted(counts[i][j], "image")}, ${number(100 * share[i][j], 1)} % of ${names[i]}`);
    });
    root.addEventListener("pointerleave", hideTip);
    return root;
  });
}
const clippedName = (name) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);
/* Square-root levels, so that rare mistakes show. One path per level draws any matrix quickly. */
const LEVELS = 12;
const level = (v) => Math.ceil(Math.sqrt(v) * LEVELS);
function shares(share, at, cell) {
  const paths = Array(LEVELS + 1).fill("");
  share.forEach((row, i) => row.forEach((v, j) => { if (v > 0) paths[level(v)] += `M${at(j).toFixed(2)},${at(i).toFixed(2)}h${cell.toFixed(2)}v${cell.toFixed(2)}h${(-cell).toFixed(2)}z`; }));
  return paths.map((d, k) => d && s("path", { d, style: { fill: `color-mix(in oklab, var(--heat-high) ${Math.round((100 * k) / LEVELS)}%, var(--heat-low))` } })).filter(Boolean);
}
