/* Data, elements, numbers as text, colours, tooltips and downloads. */

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const all = read("overview");
const details = new Map();
const detail = (n) => details.get(n) ?? details.set(n, read(`run-${n}`)).get(n);
const SETTINGS = ["class_incremental", "task_incremental"];
const state = { setting: "class_incremental", metric: "faa", words: "", benchmark: "", buffer: "", other: "", only: false };
const byId = (id) => document.getElementById(id);

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
const card = (title, attributes, ...children) =>
  h("section", { ...attributes, class: `card ${attributes?.class ?? ""}` }, title && h("h2", {}, title), children);
const toggle = (text, pressed, onclick, attributes) =>
  h("button", { type: "button", "aria-pressed": String(pressed), onclick, ...attributes }, text);

/* ---- Numbers ---------------------------------------------------------------------------------- */

const number = (value, digits = 2) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(?=[0.]*$)/u, "").replace("-", "−");
const signed = (value, digits = 2) => (value > 0 ? "+" : "") + number(value, digits);
const compact = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2).replace(/\.?0+e/u, "e") : String(Number(value.toPrecision(4)));
  return text.replace("-", "−");
};
const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
};
const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const range = (n) => [...Array(n).keys()];
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const distinct = (values) => [...new Set(values)];
const bounds = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

/* The settings that the shown accuracies of some groups were measured in. */
const settingsOf = (groups, setting = state.setting) => distinct(groups.map((group) => group.settings[setting]));
const settingOf = (groups, setting = state.setting) => settingsOf(groups, setting).join(", ");

/* ---- One hue per method, dashes for regularisers, shades for the rest --------------------------- */

const DASHES = ["7 4", "2 3", "10 3 2 3", "1 4"];
const additions = distinct(all.groups.map((group) => group.additions.join(" + "))).filter(Boolean)
  .sort((a, b) => (b === "lider") - (a === "lider"));
const alike = (group) => all.groups.filter((other) => other.method === group.method && other.additions.join() === group.additions.join());
function look(group) {
  const same = alike(group);
  const hue = group.hue < 0 ? (group.method === "joint" ? "var(--ink)" : "var(--soft)") : `var(--c${group.hue})`;
  return {
    colour: shade(hue, same.indexOf(group), same.length),
    dash: group.additions.length ? DASHES[additions.indexOf(group.additions.join(" + ")) % DASHES.length] : "",
    hollow: group.additions.length > 0,
  };
}
/* Shade number k of n: from the colour itself towards the ink. */
const shade = (colour, k, n) => (k ? `color-mix(in oklab, var(--ink) ${Math.round((60 * k) / n)}%, ${colour})` : colour);
const ramp = (part) => `color-mix(in oklch increasing hue, var(--last) ${(100 * part).toFixed(0)}%, var(--first))`;
const taskColour = (i, n) => ramp(n > 1 ? i / (n - 1) : 1);
const swatch = (one) => s("svg", { width: 26, height: 10, "aria-hidden": "true" },
  s("line", { x1: 1, x2: 25, y1: 5, y2: 5, "stroke-dasharray": one.dash, style: { stroke: one.colour, "stroke-width": one.width ?? 2.5 } }));

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
const tipLine = (colour, name, value, near) => h("div", { class: near ? "line near" : "line" },
  h("span", { class: "swatch", style: { background: colour } }), h("span", {}, name), h("span", {}, value));
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
  const metric = all.metrics[key] ?? all.anytime[key];
  const element = h("span", { class: "term", tabindex: 0 }, text);
  return explained(element, metric ? `${metric.label}: ${metric.name}` : key, metric ? metric.definition : all.terms[key]);
}

/* ---- Downloads ---------------------------------------------------------------------------------- */

function download(title, kind, text) {
  const name = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/gu, "").slice(0, 80);
  const type = kind === "svg" ? "image/svg+xml" : "text/csv";
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  h("a", { href: url, download: `${name || "report"}.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
/* A cell that a spreadsheet would take for a formula is quoted by an apostrophe. */
const csvCell = (value) => {
  const text = value === null || value === undefined ? "" : typeof value === "number" ? String(value) : String(value).replace(/^(?=[=+\-@\t\r])/u, "'");
  return /[",\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csv = (rows) => rows.map((row) => row.map(csvCell).join(",") + "\n").join("");
const csvButton = (title, rows) => h("button", { type: "button", class: "tool", "aria-label": `Download as CSV: ${title}`, onclick: () => download(title, "csv", csv(rows())) }, "CSV");

/* An SVG that needs no style sheet: computed colours and fonts, title above, legend below. */
const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
function plainColour(colour) {
  if (!/^[a-z-]+\(/u.test(colour)) return colour;
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
  return a === 0 ? "none" : `#${[r, g, b].map((v) => v.toString(16).padStart(2, "0")).join("")}`;
}
function inlined(element) {
  const copy = element.cloneNode(false);
  if (element.nodeType !== Node.ELEMENT_NODE) return copy;
  const style = getComputedStyle(element);
  for (const name of ["class", "style", "tabindex"]) copy.removeAttribute(name);
  for (const name of ["fill", "stroke"]) copy.setAttribute(name, plainColour(style.getPropertyValue(name)));
  for (const name of ["stroke-width", "opacity", "font-size", "font-weight"]) copy.setAttribute(name, style.getPropertyValue(name));
  copy.append(...[...element.childNodes].map(inlined));
  return copy;
}
function standaloneSvg(root, title, legend) {
  const [, , width, height] = root.getAttribute("viewBox").split(" ").map(Number);
  const probe = h("i", { hidden: true });
  document.body.append(probe);
  const colour = (css) => { probe.style.color = css; return plainColour(getComputedStyle(probe).color); };
  const font = { "font-family": "system-ui, sans-serif", fill: colour("var(--ink)"), "font-size": 12 };
  pixel.font = "12px system-ui, sans-serif";
  let [x, y] = [10, height + 46];
  const keys = legend.map((one) => {
    const wide = 38 + pixel.measureText(one.name).width;
    if (x > 10 && x + wide > width) [x, y] = [10, y + 18];
    const made = [s("line", { x1: x, x2: x + 24, y1: y - 4, y2: y - 4, "stroke-dasharray": one.dash, stroke: colour(one.colour), "stroke-width": 2.5 }),
      s("text", { x: x + 30, y, ...font }, one.name)];
    x += wide + 12;
    return made;
  });
  const whole = legend.length ? y + 12 : height + 30;
  const copy = inlined(root);
  const made = new XMLSerializer().serializeToString(s("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${whole}`, width, height: whole },
    s("title", {}, title), s("rect", { width, height: whole, fill: colour("var(--card)") }),
    s("text", { x: 10, y: 20, ...font, "font-size": 13, "font-weight": 600 }, title),
    s("g", { transform: "translate(0 28)", "font-family": "system-ui, sans-serif" }, [...copy.childNodes]), keys));
  probe.remove();
  return made;
}
