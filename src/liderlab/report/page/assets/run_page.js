/* The page of one run: accuracies, forgetting, confusion, losses, Lipschitz constants. */

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
      confusionCard(data)),
    anytimeCard(data), lossCard(data), lipschitzCard(data), memoryCard(n, data), configCard(n, data), reproduceCard(data));
}

function runHeading(n, run, group) {
  const pick = h("select", { "aria-label": "Run", id: "pick-run", onchange: (event) => { location.hash = `run-${event.target.value}`; } },
    all.groups.map((g) => h("optgroup", { label: `${groupName(g)}, ${g.benchmark}, buffer ${bufferText(g)}` },
      g.runs.map((k) => h("option", { value: k, selected: k === n }, all.runs[k].name)))));
  const go = (k, text, id) => h("a", { class: "button", id, href: `#run-${(k + all.runs.length) % all.runs.length}` }, text);
  return h("div", { class: "heading" }, h("h2", {}, run.name), h("span", { class: `badge ${run.state}` }, run.state),
    pick, go(n - 1, "← previous", "previous"), go(n + 1, "next →", "next"),
    h("div", { class: "sub" }, `${groupName(group)} on ${group.benchmark}, ${group.tasks} tasks`,
      group.buffer === null ? "" : `, buffer ${group.buffer}`, `, ${settingOf([group])}, seed ${run.seed}, ${duration(run.seconds)}, scale `, scaleCell(group)));
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
  const title = "Accuracy on every task after every task, percent";
  const table = h("table", { class: `heat ${tasks > 7 ? "many" : ""}`, id: "matrix" },
    h("caption", { class: "unseen" }, title),
    h("thead", {}, h("tr", {}, h("td"), range(tasks).map((i) => h("th", { scope: "col" }, tasks > 7 ? i + 1 : `task ${i + 1}`)))),
    h("tbody", {}, matrix.map((row, t) => h("tr", {}, h("th", { scope: "row" }, `after ${t + 1}`), row.map((value, i) => cell(value, t, i))))));
  const rows = () => [["after task", ...range(tasks).map((i) => `task ${i + 1}`)], ...matrix.map((row, t) => [t + 1, ...row.map((v, i) => (i > t ? null : v))])];
  return [scroller(title, table), h("div", { class: "tools" }, csvButton(title, rows))];
}

const soFar = (row, t) => { const seen = row.slice(0, t + 1); return seen.some((v) => v === null) ? null : mean(seen); };
function accuracyOverTime(matrix) {
  const tasks = matrix.length;
  const x = range(tasks).map((t) => t + 1);
  const each = range(tasks).map((i) => ({ name: `task ${i + 1}`, x, y: matrix.map((row, t) => (t < i ? null : row[i])), colour: taskColour(i, tasks) }));
  const overall = { name: "mean so far", x, y: matrix.map(soFar), colour: "var(--ink)", width: 3.2, dash: "6 4" };
  return lineChart([overall, ...each], { title: "Accuracy on each task over time, percent", xLabel: "after task", yLabel: "accuracy (%)", whole: true, percent: true });
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
    lineChart([{ name: "mean forgetting", x, y, colour: "var(--bad)" }], { title: "Mean forgetting after each task", xLabel: "after task", yLabel: "points", whole: true, height: 170 }));
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
    ], { title: "Accuracy on memory and on test images, percent", xLabel: "after task", yLabel: "accuracy (%)", whole: true, percent: true }));
}

/* Classes or tasks, and the most frequent mistakes. */
function confusionCard(data) {
  const title = h("span", {}, term("Confusion", "confusion"), " at the end");
  if (!data.confusion) return card(title, { class: "wide" }, h("p", { class: "empty" }, "Known when the run has finished; left out of a report of very many runs."));
  const { classes, tasks, borders } = data.confusion;
  const place = h("div");
  const mistakes = h("ol", { class: "mistakes" });
  function show(unit) {
    const counts = (unit === "class" ? classes : tasks).map(unpacked);
    const names = unit === "class" ? data.classes : range(counts.length).map((t) => `task ${t + 1}`);
    const found = counts.flatMap((row, i) => row.map((v, j) => ({ v, i, j }))).filter((one) => one.i !== one.j && one.v).sort((a, b) => b.v - a.v).slice(0, 10);
    place.replaceChildren(confusionChart(counts, names, unit === "class" ? borders : [], { unit, title: `Confusion of ${unit === "class" ? "classes" : "tasks"}, percent of the true ${unit}` }));
    mistakes.replaceChildren(...found.map(({ v, i, j }) => h("li", {}, `${names[i]} taken for ${names[j]}: ${counted(v, "image")}`)));
    for (const button of choice.children) button.setAttribute("aria-pressed", String(button.dataset.unit === unit));
  }
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Confusion of" }, [classes && "class", tasks && "task"].filter(Boolean).map((unit) =>
    toggle(unit === "class" ? "classes" : "tasks", false, () => show(unit), { "data-unit": unit })));
  show(classes ? "class" : "task");
  return card(title, { id: "confusion", class: "wide" }, h("div", { class: "bar" }, choice),
    h("div", { class: "confusion" }, place, h("div", {}, h("h4", {}, "Most frequent mistakes"), mistakes)));
}

/* Only of runs that were evaluated during tasks. */
function anytimeCard(data) {
  if (!data.anytime) return null;
  const { curves, values } = data.anytime[state.setting];
  const found = Object.entries(all.anytime).filter(([metric]) => values[metric] !== null);
  return card(h("span", {}, term("Accuracy during training", "anytime accuracy")), { id: "anytime" },
    h("p", { class: "note" }, found.flatMap(([metric, fact], i) => [i ? ", " : "", term(fact.label, metric), ` ${number(values[metric])} %`])),
    lineChart(curves.map((curve, i) => ({ name: `task ${i + 1}`, ...curve, colour: taskColour(i, curves.length), dots: false })),
      { title: "Accuracy on each task during training, percent", xLabel: "step", yLabel: "accuracy (%)", boundaries: data.ends, percent: true }));
}

function lossCard(data) {
  const names = Object.keys(data.terms);
  const title = h("span", {}, term("Loss terms", "loss terms"), " over training");
  if (!names.length) return card(title, {}, h("p", { class: "empty" }, "No step has been logged."));
  return card(title, { id: "losses" }, h("div", { class: "stages" }, names.map((name, i) =>
    h("div", {}, h("h4", {}, name), lineChart([{ name, ...data.terms[name], colour: `var(--c${i % 8})`, dots: false }],
      { title: `Loss term ${name}`, xLabel: "step", boundaries: data.ends, height: 200 })))),
    h("p", { class: "note" }, "Dotted lines mark the end of a task. Drag sideways to zoom, click twice to see everything."));
}

function lipschitzCard(data) {
  const stages = [...new Set(Object.keys(data.readings).map((name) => /^lider\/(?:λ|c)\/(.*)$/su.exec(name)?.[1]).filter((stage) => stage !== undefined))];
  const others = Object.keys(data.readings).filter((name) => !/^lider\/(λ|c)\//u.test(name));
  if (!stages.length && !others.length) return null;
  const draw = (series, title) => lineChart(series.filter(Boolean), { title, xLabel: "step", boundaries: data.ends, height: 200 });
  const curve = (name, label, colour, dash) => data.readings[name] && { name: label, ...data.readings[name], colour, dash, dots: false };
  return card(stages.length ? h("span", {}, term("λ and target c", "λ and c"), " of every stage over training") : "Readings of the regularisers", { id: "lipschitz" },
    h("div", { class: "stages" },
      stages.map((stage) => h("div", {}, h("h4", {}, stage),
        draw([curve(`lider/λ/${stage}`, "λ", "var(--c0)"), curve(`lider/c/${stage}`, "c", "var(--c5)", "7 4")], `Lipschitz constant and target of stage ${stage}`))),
      others.map((name) => h("div", {}, h("h4", {}, name), draw([curve(name, name, "var(--c2)")], name)))),
    h("p", { class: "note" }, "Dotted lines mark the end of a task."));
}

