/* Curves of several runs over one another. */

const MOST_COMPARED = 40;
let compared = null; /* run numbers; null until the page is opened */

function comparePage() {
  const asked = location.hash.split("-").slice(1).map(Number).filter((n) => n < all.runs.length);
  if (asked.length) compared = asked;
  compared ??= all.groups.slice(0, 6).map((group) => group.runs[0]);
  const view = newView();
  const body = h("div");
  function refresh() {
    history.replaceState(null, "", `#${["compare", ...compared].join("-")}`);
    view.charts.length = 0;
    const runs = comparedRuns();
    key.replaceChildren(...runs.map((run) => h("li", {}, h("a", { href: `#run-${run.n}` }, swatch(run), run.name))));
    body.replaceChildren(...(runs.length ? comparison(runs, view) : [card(null, {}, h("p", { class: "empty" }, "Choose runs above."))]));
  }
  const key = h("ul", { class: "legend key", "aria-label": "Runs" });
  const page = h("div", {}, picker(refresh), controls(view, key), body);
  refresh();
  return page;
}

/* Rows of experiments; a button per seed. */
function picker(refresh) {
  const choose = (runs, on) => {
    compared = on ? distinct([...compared, ...runs]).slice(0, MOST_COMPARED) : compared.filter((n) => !runs.includes(n));
    for (const button of box.querySelectorAll("[data-run]")) button.setAttribute("aria-pressed", String(compared.includes(Number(button.dataset.run))));
    count.textContent = `${compared.length} of ${counted(all.runs.length, "run")}`;
    refresh();
  };
  const seed = (n) => toggle(String(all.runs[n].seed), compared.includes(n), () => choose([n], !compared.includes(n)),
    { class: "seed-button", "data-run": n, title: all.runs[n].name, "aria-label": `${all.runs[n].name}, seed ${all.runs[n].seed}` });
  const where = (group) => `${group.benchmark}${group.buffer === null ? "" : `, buffer ${group.buffer}`}`;
  const rows = all.groups.map((group) => h("li", { "data-words": `${groupName(group)} ${where(group)}`.toLowerCase() },
    h("button", { type: "button", class: "group-button", "aria-label": `All or none of ${groupName(group)}`, onclick: () => choose(group.runs, !group.runs.every((n) => compared.includes(n))) },
      swatch(look(group)), h("span", {}, groupName(group)), h("small", {}, where(group))), h("span", { class: "seeds" }, group.runs.map(seed))));
  const find = h("input", { type: "search", id: "find", placeholder: "Filter: method, benchmark …", "aria-label": "Filter", oninput: () => {
    for (const row of rows) row.hidden = !find.value.toLowerCase().split(/\s+/u).every((word) => row.dataset.words.includes(word));
  } });
  const count = h("span", { class: "count", role: "status" }, `${compared.length} of ${counted(all.runs.length, "run")}`);
  const box = card("Compare runs", { id: "picker" }, h("div", { class: "bar" }, find,
    h("button", { type: "button", class: "button", onclick: () => choose(compared, false) }, "None"), count), h("ul", { class: "pick" }, rows));
  return box;
}

function controls(view, key) {
  const shown = h("output", {}, "0");
  const slider = h("input", { type: "range", id: "smooth", min: 0, max: 0.99, step: 0.01, value: view.smooth, "aria-label": "Smoothing",
    oninput: () => { shown.textContent = slider.value; change(view, { smooth: Number(slider.value) }); } });
  return h("div", { class: "bar controls" }, h("label", {}, "Smoothing ", slider, " ", shown),
    h("label", {}, h("input", { type: "checkbox", id: "log", onchange: (event) => change(view, { log: event.target.checked }) }), " logarithmic axes"),
    h("button", { type: "button", class: "button", id: "whole", onclick: () => change(view, { range: null }) }, "Whole training"),
    h("span", { class: "faint" }, "Drag in a chart to zoom all of them."), key);
}

function comparedRuns() {
  const ofGroup = (n) => compared.filter((k) => all.runs[k].group === all.runs[n].group);
  return compared.map((n) => {
    const base = look(all.groups[all.runs[n].group]);
    return { n, name: all.runs[n].name, data: detail(n), ...base, colour: shade(base.colour, ofGroup(n).indexOf(n), ofGroup(n).length) };
  });
}

/* Charts by quantity, a curve per run. */
function comparison(runs, view) {
  const style = ({ name, colour, dash, hollow }) => ({ name, colour, dash, hollow });
  const ends = runs.map((run) => run.data.ends.join()).every((text, _, texts) => text === texts[0]) ? runs[0].data.ends : [];
  const overSteps = (field, test, title) => {
    const found = distinct(runs.flatMap((run) => Object.keys(run.data[field]))).filter(test);
    return found.length > 0 && card(title, {}, h("div", { class: "stages" }, found.map((name) => h("div", {}, h("h4", {}, name.replace(/^lider\/[λc]\//u, "")),
      lineChart(runs.filter((run) => run.data[field][name]).map((run) => ({ ...run.data[field][name], ...style(run), dots: false })),
        { title: name, xLabel: "step", boundaries: ends, height: 220, legend: false, view })))));
  };
  const kind = (pattern) => (name) => pattern.test(name);
  return [accuracyComparison(runs, style),
    overSteps("terms", () => true, h("span", {}, term("Loss terms", "loss terms"))),
    overSteps("readings", kind(/^lider\/λ\//u), h("span", {}, "Lipschitz constants ", term("λ", "λ and c"), " by stage")),
    overSteps("readings", kind(/^lider\/c\//u), h("span", {}, "Targets ", term("c", "λ and c"), " by stage")),
    overSteps("readings", (name) => !/^lider\/[λc]\//u.test(name), "Other readings")].filter(Boolean);
}
function accuracyComparison(runs, style) {
  const setting = settingOf(runs.map((run) => all.groups[all.runs[run.n].group]));
  const matrices = runs.map((run) => ({ run, matrix: run.data.matrix[state.setting] }));
  const steps = (n) => range(n).map((t) => t + 1);
  const soFarOf = matrices.map(({ run, matrix }) => ({ ...style(run), x: steps(matrix.length), y: matrix.map(soFar) }));
  const last = (matrix) => matrix.findLast((row) => row.some((v) => v !== null)) ?? [];
  const perTask = matrices.map(({ run, matrix }) => ({ ...style(run), x: steps(matrix.length), y: steps(matrix.length).map((t) => last(matrix)[t - 1] ?? null) }));
  const shared = { yLabel: "accuracy (%)", whole: true, percent: true, legend: false, height: 260 };
  return h("div", { class: "grid" },
    card("Mean accuracy on the tasks seen so far", {}, lineChart(soFarOf, { ...shared, title: `Mean accuracy on the tasks seen so far, ${setting}`, xLabel: "tasks seen" })),
    card("Accuracy on each task at the end", {}, lineChart(perTask, { ...shared, title: `Accuracy on each task at the end, ${setting}`, xLabel: "task" })));
}
