/* Glossary, theme, printing, navigation. */

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

/* Domains share their classes, so that there is nothing to choose. */
function settingChoice(choice) {
  const names = Object.fromEntries(SETTINGS.map((setting) => [setting, settingOf(all.groups, setting)]));
  if (new Set(Object.values(names)).size === 1) return h("span", { class: "badge", id: "setting" }, names[state.setting]);
  return choice("Setting", names, state.setting, (value) => { state.setting = value; render(false, value); });
}

const SYMBOLS = { light: "☀", dark: "☾" };
function header() {
  const page = location.hash.slice(1) || "overview";
  const link = (id, text, here = page === id) => h("a", { href: `#${id}`, "aria-current": here && "page" }, text);
  const choice = (label, values, current, choose) => h("div", { class: "choice", role: "group", "aria-label": label },
    Object.entries(values).map(([value, name]) => toggle(SYMBOLS[value] ?? name, value === current, () => choose(value), { "data-value": value, title: name, "aria-label": name })));
  const run = /^run-\d+$/u.test(page) ? page : "run-0";
  byId("top").replaceChildren(h("h1", {}, all.title),
    h("nav", { "aria-label": "Pages" }, link("overview", "Overview"), link("compare", "Compare", page.startsWith("compare")), hasSearch && link("search", "Hyperparameters"),
      link("runs", "Runs"), link(run, "One run"), link("words", "Glossary")),
    h("div", { class: "push" },
      settingChoice(choice),
      choice("Theme", { auto: "Auto", light: "Light", dark: "Dark" }, chosenTheme, (value) => {
        chosenTheme = value;
        try { localStorage.setItem("liderlab-theme", value); } catch { /* storage is blocked: not remembered */ }
        theme(value);
        header();
        byId("top").querySelector(`[data-value="${value}"]`).focus();
      })));
  byId("top").draw = () => document.documentElement.style.setProperty("--top", `${byId("top").offsetHeight}px`);
  observer.observe(byId("top"));
}

function render(moved, focus) {
  hideTip();
  observer.disconnect();
  const page = location.hash.slice(1);
  const match = /^run-(\d+)$/u.exec(page);
  const n = match ? Number(match[1]) : -1;
  const pages = { runs: runsPage, words: glossaryPage, search: hasSearch && searchPage, compare: comparePage };
  const content = n >= 0 && n < all.runs.length ? () => runPage(n) : pages[page.split("-")[0]] || overviewPage;
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
