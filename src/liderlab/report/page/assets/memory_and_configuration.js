/* The memory, the configuration, and how to run it again. */

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
  const place = h("div");
  const others = range(all.runs.length).filter((k) => k !== n);
  const elsewhere = (field) => (all.varying[field] ?? []).filter(([value]) => value !== (data.config[field] ?? null))
    .map(([value, count]) => `${value ?? "–"} (${count})`).join(", ");
  function refresh() {
    const other = state.other === "" || Number(state.other) === n ? null : Number(state.other);
    const theirs = other === null ? null : detail(other).config;
    const fields = [...new Set([...Object.keys(data.config), ...(theirs ? Object.keys(theirs) : [])])].filter((field) => !field.startsWith("scale.changes."));
    const differs = (field) => (theirs ? data.config[field] !== theirs[field] : field in all.varying);
    const rows = fields.filter((field) => !state.only || differs(field));
    const table = h("table", { class: "config", id: "config" }, h("caption", { class: "unseen" }, "Configuration; rows that differ are marked"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "field"), h("th", { scope: "col" }, "this run"), h("th", { scope: "col" }, theirs ? all.runs[other].name : "in other runs"))),
      h("tbody", {}, rows.map((field) => h("tr", { class: differs(field) && "differs" }, h("th", { scope: "row" }, field, differs(field) && h("span", { class: "unseen" }, " (differs)")),
        h("td", {}, data.config[field] ?? "–"), h("td", { class: "others" }, theirs ? theirs[field] ?? "–" : elsewhere(field))))));
    place.replaceChildren(scroller("Configuration", table), h("div", { class: "tools" }, csvButton(`Configuration of ${all.runs[n].name}`, () => tableRows(table))), ...(rows.length ? [] : [h("p", { class: "empty" }, "Nothing differs.")]));
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

