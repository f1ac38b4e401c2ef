/* Sweeps and searches: a metric against the fields that vary. */

const fieldValues = (f) => distinct(all.groups.map((group) => group.fields[f]).filter((v) => v !== null));
const isNumeric = (f) => fieldValues(f).every((v) => typeof v === "number") && fieldValues(f).length > 1;
const shortName = (field) => field.replace(/^(regularizers|training)\./u, "").replace(/\.name$/u, "");
const shownValue = (f, v) => (typeof v === "number" ? compact(v) : v === null && /^regularizers\.[^.]*$/u.test(all.fields[f]) ? "off" : String(v ?? "–"));
/* The method, the regularisers, and the fields that vary within one method; those that say the same
   as another only once. */
function searchedFields(groups) {
  const seen = new Set();
  const labels = distinct(groups.map((group) => group.label));
  return range(all.fields.length).filter((f) => {
    const values = groups.map((group) => JSON.stringify(group.fields[f]));
    const ranks = values.map((v) => values.indexOf(v)).join();
    const within = labels.some((label) => new Set(values.filter((_, g) => groups[g].label === label)).size > 1);
    const switched = all.fields[f] === "method.name" || /^regularizers\.[^.]*$/u.test(all.fields[f]);
    return new Set(values).size > 1 && (within || switched) && !seen.has(ranks) && seen.add(ranks);
  });
}
const hasSearch = searchedFields(all.groups).some(isNumeric);

function searchPage() {
  const body = h("div");
  const [bar, count] = filterBar(refresh);
  const choose = h("select", { id: "goal", "aria-label": "Metric", onchange: (event) => { state.metric = event.target.value; refresh(); } },
    definedMetrics().map(([metric, one]) => h("option", { value: metric, selected: metric === state.metric }, `${one.label}: ${one.name}`)));
  bar.prepend(choose);
  function refresh() {
    const groups = chosenGroups().filter((g) => g.values[state.setting][state.metric]);
    count.textContent = `${groups.length} of ${counted(all.groups.length, "experiment")}`;
    const fields = searchedFields(groups);
    body.replaceChildren(fields.length ? h("div", {}, parallelCard(groups, fields), h("div", { class: "grid" }, fields.map((f) => fieldCard(groups, f))), trialsCard(groups, fields))
      : card(null, {}, h("p", { class: "empty" }, "No field varies between the chosen experiments.")));
  }
  refresh();
  return h("div", {}, bar, body);
}
const goal = (group) => group.values[state.setting][state.metric].mean;
const isLog = (values) => { const [low, high] = bounds(values); return low > 0 && high / low >= 8; };

/* ---- Parallel coordinates ------------------------------------------------------------------------ */

function parallelCard(groups, fields) {
  const fact = all.metrics[state.metric];
  const columns = [...fields.map((f) => ({ name: shortName(all.fields[f]), of: (group) => group.fields[f], numeric: isNumeric(f), show: (v) => shownValue(f, v) })),
    { name: `${fact.label} (%)`, of: goal, numeric: true, show: compact }];
  const brushes = new Map();
  const title = `${fact.label} and the fields that vary, an experiment per line`;
  const table = () => [["experiment", ...columns.map((c) => c.name)], ...groups.map((g) => [groupName(g), ...columns.map((c) => c.of(g))])];
  const box = chartBox({ title, table }, (space) => drawParallel(groups, columns, brushes, Math.max(space, 84 * columns.length + 40), () => box.draw()));
  box.firstChild.classList.add("sideways");
  return card(title, { id: "parallel" }, h("p", { class: "note" }, "The colour is the metric: ", h("span", { class: "rampkey" }), " low to high. Drag along an axis to keep a part of it; click the axis to keep everything."), box);
}
/* Where a column's values lie: numbers on a scale, with a place for "none" below; else evenly spaced. */
function columnScale(column, groups, top, bottom) {
  const values = distinct(groups.map(column.of));
  const numbers = values.filter((v) => v !== null);
  if (column.numeric && numbers.length) {
    const log = isLog(numbers);
    const [low, high] = bounds(numbers);
    const Y = scale(low, high, values.includes(null) ? bottom - 26 : bottom, top, log);
    const marks = numbers.length <= 5 ? numbers : log ? logTicks(low, high) : ticks(low, high, 5);
    return { place: (v) => (v === null ? bottom : Y(v)), marks: [...marks, ...(values.includes(null) ? [null] : [])] };
  }
  const sorted = [...values].sort((a, b) => String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true }));
  return { place: (v) => (sorted.length > 1 ? bottom - (sorted.indexOf(v) / (sorted.length - 1)) * (bottom - top) : (top + bottom) / 2), marks: sorted };
}
/* Lines through one value lie side by side, ordered by the metric. */
function apart(group, column, groups) {
  const same = groups.filter((other) => column.of(other) === column.of(group)).sort((a, b) => goal(b) - goal(a));
  return same.length > 1 ? Math.min(16, 3 * same.length) * (same.indexOf(group) / (same.length - 1) - 0.5) : 0;
}
function drawParallel(groups, columns, brushes, width, redraw) {
  const [height, top, bottom] = [340, 44, 316];
  const scales = columns.map((column) => columnScale(column, groups, top, bottom));
  const left = 22 + 6.4 * Math.min(12, Math.max(...scales[0].marks.map((v) => columns[0].show(v).length)));
  const X = (k) => left + (k * (width - left - 54)) / (columns.length - 1);
  const places = groups.map((group) => columns.map((column, k) => scales[k].place(column.of(group)) + apart(group, column, groups)));
  const kept = places.map((ys) => [...brushes].every(([k, [a, b]]) => ys[k] >= a - 1 && ys[k] <= b + 1));
  const [low, high] = bounds(groups.map(goal));
  const root = svgRoot(width, height, `${groups.length} experiments over ${columns.map((c) => c.name).join(", ")}; ${kept.filter(Boolean).length} kept.`);
  root.style.setProperty("min-width", `${width}px`);
  const curves = groups.map((group, g) => s("path", { class: kept[g] ? "trial" : "trial away", style: { stroke: ramp(high > low ? (goal(group) - low) / (high - low) : 1) },
    d: `M${places[g].map((y, k) => `${X(k).toFixed(1)},${y.toFixed(1)}`).join("L")}` }));
  root.append(...range(groups.length).sort((a, b) => goal(groups[a]) - goal(groups[b])).map((g) => curves[g]));
  columns.forEach((column, k) => root.append(columnAxis(column, scales[k], X(k), k, { top, bottom, brushes, redraw, last: k === columns.length - 1 })));
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top].map((p) => (p * width) / box.width);
    const k = Math.max(0, Math.min(columns.length - 2, Math.floor((px - X(0)) / (X(1) - X(0)))));
    const part = Math.max(0, Math.min(1, (px - X(k)) / (X(1) - X(0))));
    const away = (g) => (kept[g] ? Math.abs(places[g][k] + part * (places[g][k + 1] - places[g][k]) - py) : Infinity);
    const best = range(groups.length).reduce((a, b) => (away(b) < away(a) ? b : a), 0);
    const hit = away(best) < 12;
    curves.forEach((curve, g) => curve.classList.toggle("near", hit && g === best));
    if (hit) showTip(event.clientX, event.clientY, h("b", {}, groupName(groups[best])), ...columns.map((c) => tipLine("transparent", c.name, c.show(c.of(groups[best])))));
    else hideTip();
  });
  root.addEventListener("pointerleave", () => { hideTip(); for (const curve of curves) curve.classList.remove("near"); });
  return root;
}
function columnAxis(column, { place, marks }, x, k, { top, bottom, brushes, redraw, last }) {
  const brush = brushes.get(k);
  const zone = s("rect", { class: "brush-zone", x: x - 16, y: top - 10, width: 32, height: bottom - top + 20, "data-axis": k });
  let from = null;
  const at = (event) => { const box = zone.getBoundingClientRect(); return top - 10 + ((event.clientY - box.top) / box.height) * (bottom - top + 20); };
  zone.addEventListener("pointerdown", (event) => { from = at(event); zone.setPointerCapture(event.pointerId); });
  zone.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [a, b] = [from, at(event)].sort((p, q) => p - q);
    from = null;
    if (b - a > 5) brushes.set(k, [a, b]);
    else brushes.delete(k);
    redraw();
  });
  const short = (v) => { const shown = column.show(v); return shown.length > 12 ? `${shown.slice(0, 11)}…` : shown; };
  return s("g", {}, line(x, top, x, bottom, { class: "column" }), brush && s("rect", { class: "brush", x: x - 7, y: brush[0], width: 14, height: brush[1] - brush[0], rx: 3 }),
    text(x, top - (k % 2 ? 28 : 14), "middle", column.name, { class: "name" }),
    marks.map((v) => text(x + (last ? 9 : -7), place(v) + 4, last ? "start" : "end", short(v), { class: "halo" })), zone);
}

/* ---- One field at a time -------------------------------------------------------------------------- */

/* A number: the metric over it, a dot per run, the line through the means. Else: a row per value. */
function fieldCard(groups, f) {
  const fact = all.metrics[state.metric];
  const name = shortName(all.fields[f]);
  const runValues = (group) => group.runs.map((n) => all.runs[n].values[state.setting][state.metric]).filter((v) => v !== null);
  const title = `${fact.label} over ${name}`;
  if (isNumeric(f)) {
    const having = groups.filter((g) => g.fields[f] !== null);
    const kinds = distinct(having.map((g) => g.label));
    const series = kinds.map((label) => {
      const mine = having.filter((g) => g.label === label);
      const x = distinct(mine.map((g) => g.fields[f])).sort((a, b) => a - b);
      const first = all.groups.find((g) => g.label === label);
      return { name: label, x, y: x.map((v) => mean(mine.filter((g) => g.fields[f] === v).map(goal))), points: mine.flatMap((g) => runValues(g).map((v) => [g.fields[f], v])), ...look(first) };
    });
    return card(title, {}, lineChart(series, { title, xLabel: name, yLabel: `${fact.label} (%)`, percent: state.metric === "faa" || state.metric === "aia", logX: isLog(having.map((g) => g.fields[f])), xMarks: distinct(having.map((g) => g.fields[f])) }));
  }
  const values = distinct(groups.map((g) => g.fields[f]));
  const rows = values.map((value) => {
    const mine = groups.filter((g) => g.fields[f] === value);
    const m = mean(mine.map(goal));
    const colour = all.fields[f] === "method.name" ? look(mine[0]).colour : "var(--accent)";
    return { name: shownValue(f, value), mean: m, half: null, points: mine.flatMap((g) => runValues(g).map((v) => [groupName(g), v])), colour, note: number(m, 1) };
  });
  return card(title, {}, dotPlot(rows, { title, xLabel: `${fact.name} (%)`, percent: state.metric === "faa" || state.metric === "aia" }));
}

function trialsCard(groups, fields) {
  const fact = all.metrics[state.metric];
  const columns = [
    { label: "Experiment", value: (g) => g.label, cell: (g) => h("a", { href: `#run-${g.runs[0]}` }, g.label) },
    ...fields.map((f) => ({ label: shortName(all.fields[f]), numeric: isNumeric(f), value: (g) => g.fields[f], cell: (g) => shownValue(f, g.fields[f]) })),
    { label: `${fact.label} ${fact.better > 0 ? "↑" : "↓"}`, numeric: true, downFirst: fact.better > 0, value: goal, cell: (g) => valueCell(g, state.metric) },
    { label: "Seeds", numeric: true, value: (g) => g.seeds, cell: (g) => String(g.seeds) },
  ];
  const best = [...groups].sort((a, b) => fact.better * (goal(b) - goal(a)));
  return card("Experiments, the best first", { class: "long" }, sortable(`trials-${fields.length}`, "Experiments and their fields", columns, best));
}
