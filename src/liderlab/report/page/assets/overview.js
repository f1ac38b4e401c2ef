/* The overview, and the list of runs. */

const streamName = (group) => `${group.benchmark}, ${group.tasks} tasks`;
const groupName = (group) => group.label + (group.note ? ` (${group.note})` : "");
const bufferText = (group) => (group.buffer === null ? "–" : String(group.buffer));
const wordsIn = (text) => state.words.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
/* Method by method, by buffer, without a regulariser before with one. */
const METHODS = distinct(all.groups.map((group) => group.method));
const ordered = (groups) => [...groups].sort((a, b) => METHODS.indexOf(a.method) - METHODS.indexOf(b.method) || (a.buffer ?? 0) - (b.buffer ?? 0) || a.additions.length - b.additions.length);
function chosenGroups() {
  return ordered(all.groups).filter((group) =>
    (!state.benchmark || group.benchmark === state.benchmark) &&
    (!state.buffer || bufferText(group) === state.buffer || group.buffer === null) &&
    (wordsIn(`${groupName(group)} ${group.benchmark} ${settingOf([group])} ${bufferText(group)} ${group.scale}`) ||
      group.runs.some((n) => wordsIn(`${groupName(group)} ${group.benchmark} ${all.runs[n].name}`))));
}

function filterBar(refresh) {
  const sorted = (values) => distinct(values).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const count = h("span", { class: "count", role: "status" });
  const select = (label, field, values) => values.length > 1 && h("select", { "aria-label": label, id: `filter-${field}`, onchange: (event) => { state[field] = event.target.value; refresh(); } },
    h("option", { value: "" }, `${label}: all`), values.map((v) => h("option", { value: v, selected: state[field] === v }, v)));
  const bar = h("div", { class: "bar", role: "search" },
    h("input", { type: "search", id: "filter", placeholder: "Filter: method, benchmark, run …", "aria-label": "Filter", value: state.words,
      oninput: (event) => { state.words = event.target.value; refresh(); } }),
    select("Benchmark", "benchmark", sorted(all.groups.map((g) => g.benchmark))),
    select("Buffer", "buffer", sorted(all.groups.filter((g) => g.buffer !== null).map(bufferText))), count);
  return [bar, count];
}

function valueCell(group, metric) {
  const value = group.values[state.setting][metric];
  if (!value) return h("span", { class: "faint" }, "–");
  const best = group.best[state.setting].includes(metric);
  return [h("span", { class: best && "best", title: best && "distinguishable from all others of its setting" }, number(value.mean)),
    value.std !== null && h("span", { class: "std" }, ` ± ${number(value.std)}`)];
}
/* The gains of some groups in the shown setting: one for every group to compare with. */
const gainsOf = (groups) => groups.flatMap((group) => group.gains.map((gain) => ({ ...gain, group, ...gain.values[state.setting] })).filter((gain) => gain.values[state.setting]));
const GAINERS = distinct(all.groups.flatMap((group) => group.gains.map((gain) => gain.name)));
const clear = (gain) => gain.half !== null && Math.abs(gain.mean) > gain.half;
const tone = (gain) => (clear(gain) ? (gain.mean > 0 ? "up" : "down") : "faint");
const gainText = (gain) => signed(gain.mean) + (gain.half === null ? "" : ` ± ${number(gain.half)}`);
function gainCell(group) {
  const gains = gainsOf([group]);
  if (!gains.length) return h("span", { class: "faint" }, "–");
  return gains.map((gain) => {
    const why = [`Compared with ${gain.over}.`, gain.n ? `Over ${counted(gain.n, "common seed")}.` : "Difference of the means: the runs have no common seed.",
      gain.n < 2 && "An interval needs two common seeds.",
      gain.also.length && `${gain.name} is not the only difference: the runs also differ in ${gain.also.join(", ")}.`].filter(Boolean).join(" ");
    const value = explained(h("span", { class: `term ${tone(gain)}`, tabindex: 0 }, gainText(gain), gain.also.length > 0 && " *"), `${gain.name}'s gain`, why);
    return h("div", {}, GAINERS.length > 1 && h("span", { class: "std" }, `${gain.name} `), value);
  });
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
    csv: (group) => { const v = group.values[state.setting][metric]; return { [fact.label]: v?.mean, [`${fact.label} std`]: v?.std, [`${fact.label} ± 95 %`]: v?.half }; },
  }));
  const several = (f) => new Set(all.groups.map(f)).size > 1;
  const explain = (word) => [word, all.terms[word]];
  const columns = [
    { label: "Method", value: groupName, cell: (group) => [h("a", { href: `#run-${group.runs[0]}` }, group.label), group.note && h("span", { class: "sub-label" }, group.note)] },
    several((g) => g.benchmark) && { label: "Benchmark", value: (g) => g.benchmark, cell: (g) => g.benchmark },
    several((g) => settingOf([g])) && { label: "Setting", value: (g) => settingOf([g]), cell: (g) => term(settingOf([g])) },
    { label: "Buffer", numeric: true, explain: explain("buffer"), value: (g) => g.buffer, cell: bufferText },
    ...metrics,
    GAINERS.length > 0 &&
      { label: GAINERS.length > 1 ? "Gain (FAA)" : `${GAINERS[0]}'s gain (FAA)`, numeric: true, downFirst: true, explain: explain("gain"), value: (g) => gainsOf([g])[0]?.mean ?? null, cell: gainCell,
        csv: (g) => Object.assign({}, ...gainsOf([g]).map((v) => ({ [`${v.name}'s gain (FAA)`]: v.mean, [`${v.name}'s gain ± 95 %`]: v.half, [`${v.name}'s gain p`]: v.p, [`${v.name}: over`]: v.over, [`${v.name}: common seeds`]: v.n }))) },
    all.groups.some((g) => Object.keys(g.paper).length) &&
      { label: "Paper (FAA, FF)", numeric: true, explain: explain("paper"), value: (g) => g.paper.faa ?? null, cell: (g) => paperCell(g),
        csv: (g) => ({ "paper FAA": g.paper.faa, "paper FF": g.paper.ff }) },
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
  const [words, body] = [h("div"), h("div")];
  const [bar, count] = filterBar(refresh);
  function refresh() {
    const groups = chosenGroups();
    count.textContent = `${groups.length} of ${all.groups.length} rows`;
    words.replaceChildren(headline(groups) ?? "");
    if (!groups.length) {
      body.replaceChildren(card(null, {}, h("p", { class: "empty" }, "Nothing matches the filter.")));
      return;
    }
    const streams = distinct(groups.map(streamName));
    const gains = gainsOf(groups);
    body.replaceChildren(
      card(h("span", {}, "Methods, ", settingsOf(groups).map((setting) => [term(setting), ", "]), term("mean ± std"), ", ", term("best"), " ★"), { class: "long" }, overviewTable(groups)),
      h("div", { class: "grid" }, streams.map((stream) => [accuracyCard, finalCard].map((made) => made(stream, groups.filter((g) => streamName(g) === stream)))),
        gains.length > 0 && gainCard(gains)));
  }
  refresh();
  const figure = all.figure && card(null, {}, h("img", { src: all.figure, alt: `The figure of ${all.title}`, class: "figure" }));
  return h("div", {}, words, figure, tiles(), bar, body);
}
/* A row's name among others: method, note, benchmark and buffer, without the parts that all share. */
function nameAmong(group, groups) {
  const varies = (f) => new Set(groups.map(f)).size > 1;
  const rivals = groups.filter((g) => g.buffer !== null);
  const parts = [(varies((g) => g.label) || !group.note) && group.label, group.note, varies(streamName) && group.benchmark,
    group.buffer !== null && new Set(rivals.map(bufferText)).size > 1 && `buffer ${group.buffer}`];
  return parts.filter(Boolean).join(", ");
}

/* The findings in words: what regularisers bring, the distinguishable gains first, and who leads. */
function headline(groups) {
  const gains = gainsOf(groups).sort((a, b) => clear(b) - clear(a));
  const leads = groups.filter((g) => g.leads[state.setting]);
  if (!gains.length && !leads.length) return null;
  const item = (group, sentence, kind) => h("li", { class: kind }, swatch(look(group)), h("span", {}, sentence));
  const items = [...gains.map((gain) => item(gain.group, gain.sentences[state.setting], clear(gain) ? tone(gain) : "open")),
    ...leads.map((g) => item(g, g.leads[state.setting], "lead"))];
  const [shown, rest] = items.length > 5 ? [items.slice(0, 4), items.slice(4)] : [items, []];
  return card("In words", { id: "headline" }, distinct(gains.map((gain) => gain.name)).map((name) => inTotal(name, gains)),
    h("ul", { class: "words-list" }, shown),
    rest.length > 0 && h("details", { class: "data" }, h("summary", {}, `${rest.length} more`), h("ul", { class: "words-list" }, rest)));
}
/* A count for a regulariser with many comparisons. */
function inTotal(name, gains) {
  const own = gains.filter((gain) => gain.name === name);
  const ups = own.filter((gain) => tone(gain) === "up").length;
  const downs = own.filter((gain) => tone(gain) === "down").length;
  return own.length > 3 && h("p", { class: "total" }, `${name} in ${own.length} comparisons: a distinguishable gain in ${ups}, a distinguishable loss in ${downs}, neither in ${own.length - ups - downs}.`);
}

/* The setting of some groups, where a report has several. */
const ownSetting = (groups) => (settingsOf(all.groups).length > 1 ? `, ${settingOf(groups)}` : "");
function accuracyCard(stream, groups) {
  const curves = groups.map((group) => {
    const { mean: y, std, runs } = group.curve[state.setting];
    const edge = (way) => y.map((v, t) => (v === null || std[t] === null ? null : v + way * std[t]));
    const points = runs.length > 1 ? runs.flatMap((run) => run.map((v, t) => [t + 1, v])).filter((p) => p[1] !== null) : [];
    return { name: nameAmong(group, groups), x: range(y.length).map((t) => t + 1), y, ...(std.some((v) => v !== null) && { low: edge(-1), high: edge(1) }), points, ...look(group) };
  }).filter((one) => one.x.length);
  return card(`Mean accuracy on the tasks seen so far: ${stream}${ownSetting(groups)}`, {},
    lineChart(curves, { title: `Mean accuracy on the tasks seen so far, ${stream}, ${settingOf(groups)}`, xLabel: "tasks seen", yLabel: "accuracy (%)", whole: true, show: 8, percent: true }),
    h("p", { class: "note" }, "One hue per method; dashed, hollow: with a regulariser. Band: ± one standard deviation; a small dot per seed."));
}

const MOST_ROWS = 60;
function finalCard(stream, groups) {
  const fact = all.metrics[state.metric];
  const known = groups.filter((g) => g.values[state.setting][state.metric]);
  const rows = known.slice(0, MOST_ROWS).map((g) => {
    const { mean: m, half } = g.values[state.setting][state.metric];
    const points = g.runs.map((n) => [`seed ${all.runs[n].seed}`, all.runs[n].values[state.setting][state.metric]]).filter((p) => p[1] !== null);
    return { name: nameAmong(g, groups), mean: m, half, points, ...look(g), note: number(m, 1) + (half === null ? "" : ` ± ${number(half, 1)}`) };
  });
  const choose = h("select", { "aria-label": "Metric", class: "metric", onchange: (event) => { state.metric = event.target.value; render(false); } },
    definedMetrics().map(([metric, one]) => h("option", { value: metric, selected: metric === state.metric, title: one.name }, one.label)));
  const title = `${fact.label} of every experiment, ${stream}, ${settingOf(groups)}`;
  return card(h("span", { class: "with-choice" }, choose, ` of every seed, with 95 % interval: ${stream}${ownSetting(groups)}`), {},
    rows.length ? dotPlot(rows, { title, xLabel: `${fact.name} (%) ${fact.better > 0 ? "→ better" : "← better"}`, percent: state.metric === "faa" || state.metric === "aia" }) : h("p", { class: "empty" }, "Not measured."),
    h("p", { class: "note" }, "A dot per seed; large: their mean. An arrow: the interval of few seeds is wider than the plot.",
      known.length > MOST_ROWS && ` The first ${MOST_ROWS} of ${known.length} rows: filter to see others.`));
}

function gainCard(gains) {
  const groups = gains.map((gain) => gain.group);
  const several = (gain) => gain.group.gains.length > 1;
  const rows = gains.slice(0, MOST_ROWS).map((gain) => ({
    name: nameAmong(gain.group, groups) + (several(gain) ? ` (gain of ${gain.name})` : ""), mean: gain.mean, half: gain.half, p: gain.p, n: gain.n,
    points: gain.points.map(([seed, v]) => [`seed ${seed}`, v]), colour: look(gain.group).colour, hollow: !clear(gain), note: gainText(gain), tone: tone(gain) }));
  const names = distinct(gains.map((gain) => gain.name));
  const whose = names.length > 3 ? "regularisers" : names.join(", ");
  return card(h("span", {}, term("Gain", "gain"), ` in FAA with ${whose}, with 95 % interval`), { id: "gains", class: "wide" },
    dotPlot(rows, { title: `Gain in FAA with ${whose}, ${settingOf(groups)}`, xLabel: "points of final average accuracy", zero: true }),
    h("p", { class: "note" }, "Paired by seed, a dot each. Filled: the interval excludes 0. Hollow: it contains 0, or there are too few seeds for one."));
}
function tiles() {
  const finished = all.runs.filter((run) => run.state === "finished").length;
  const one = (big, small) => h("div", { class: "tile" }, h("span", { class: "big" }, big), h("span", { class: "small" }, small));
  const time = all.runs.reduce((sum, run) => sum + (run.seconds ?? 0), 0);
  const benchmarks = new Set(all.groups.map((g) => g.benchmark)).size;
  return h("div", { class: "tiles" },
    one(String(all.runs.length), `${all.runs.length === 1 ? "run" : "runs"}, ${finished} finished`),
    one(String(all.groups.length), `${all.groups.length === 1 ? "experiment" : "experiments"}, over their seeds`),
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
    body.replaceChildren(rows.length ? card(`Runs, ${settingOf(all.groups)}, percent`, { class: "long" }, sortable("runs-table", "All runs", columns, rows))
      : card(null, {}, h("p", { class: "empty" }, "Nothing matches the filter.")));
  }
  refresh();
  return h("div", {}, bar, body);
}

