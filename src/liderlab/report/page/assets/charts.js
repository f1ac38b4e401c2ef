/* The frame of every chart: width, legend, buttons, table, download. Scales and axes. */

const observer = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (Math.abs((target.drawnAt ?? -9) - target.clientWidth) < 2) continue;
    target.drawnAt = target.clientWidth;
    target.draw();
  }
});

/* options: title, tools (buttons), legend (() => [{name, colour, dash}]), below (element), table
   (() => rows, the first of them headings). draw(width) returns the SVG. */
function chartBox(options, draw) {
  const canvas = h("div");
  const box = h("div", { class: "chart" }, canvas, options.below);
  const svg = () => standaloneSvg(canvas.querySelector("svg"), options.title, options.legend?.() ?? []);
  box.append(h("div", { class: "tools" }, options.tools,
    h("button", { type: "button", class: "tool", "aria-label": `Download as SVG: ${options.title}`, onclick: () => download(options.title, "svg", svg()) }, "SVG"),
    csvButton(options.title, options.table)), tableBelow(options));
  box.draw = (width = box.clientWidth) => {
    const focused = canvas.contains(document.activeElement);
    box.drawnAt = width;
    canvas.replaceChildren(draw(Math.round(box.forced ?? (width || 520))));
    if (focused) canvas.querySelector("svg").focus({ preventScroll: true });
  };
  drawSoon(box);
  return box;
}
/* New charts are drawn once they are on the page: all widths first, so that it is laid out once. */
let waiting = [];
function drawSoon(box) {
  waiting.push(box);
  if (waiting.length > 1) return;
  queueMicrotask(() => {
    const boxes = waiting;
    waiting = [];
    const widths = boxes.map((one) => one.clientWidth);
    boxes.forEach((one, i) => { one.draw(widths[i]); observer.observe(one); });
  });
}
function tableBelow(options) {
  const place = h("details", { class: "data" }, h("summary", {}, "As a table"));
  place.addEventListener("toggle", () => {
    if (!place.open || place.childElementCount > 1) return;
    const [heads, ...rows] = options.table();
    const cell = (value) => (typeof value === "number" ? compact(value) : value ?? "");
    place.append(scroller(options.title, h("table", {}, h("caption", { class: "unseen" }, options.title),
      h("thead", {}, h("tr", {}, heads.map((text, i) => h("th", { scope: "col", class: i && "num" }, text)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, i) => h(i ? "td" : "th", { scope: i ? null : "row", class: i && "num" }, cell(value)))))))));
  });
  return place;
}
const svgRoot = (width, height, label) => s("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": label });
const text = (x, y, anchor, content, more) => s("text", { x, y, "text-anchor": anchor, ...more }, content);
const line = (x1, y1, x2, y2, more) => s("line", { x1, y1, x2, y2, ...more });

function ticks(low, high, wanted) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let k = first; k * step <= high + step * 1e-6; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}
function logTicks(low, high) {
  const powers = range(Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1).map((k) => k + Math.floor(Math.log10(low)));
  const within = (marks) => powers.flatMap((p) => marks.map((m) => Number((m * 10 ** p).toPrecision(3)))).filter((v) => v >= low * 0.999 && v <= high * 1.001);
  const found = [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]].map(within).find((marks) => marks.length >= 3);
  const thin = Math.ceil((found?.length ?? 0) / 7);
  return found ? found.filter((_, i) => i % thin === 0) : ticks(low, high, 3);
}
/* A scale from values to pixels. */
function scale(low, high, from, to, log = false) {
  const f = log ? Math.log10 : (v) => v;
  const size = f(high) - f(low);
  return (v) => (size ? from + ((f(v) - f(low)) / size) * (to - from) : (from + to) / 2);
}
/* The range to show: all of `core`, and as much of `outer` (bands, intervals) as leaves it room. */
function fitted(core, outer, log, extra = 0.75) {
  let [low, high] = bounds(core);
  if (!Number.isFinite(low)) return log ? [0.1, 1] : [0, 1];
  if (log) {
    if (low === high) [low, high] = [low / 2, high * 2];
    const room = (high / low) ** 0.05;
    return [low / room, high * room];
  }
  if (high === low) [low, high] = [low - (Math.abs(low) * 0.1 || 1), high + (Math.abs(high) * 0.1 || 1)];
  const [least, most] = bounds([...outer, low, high]);
  const span = high - low;
  [low, high] = [Math.max(least, low - extra * span), Math.min(most, high + extra * span)];
  const room = (high - low) * 0.05;
  return [least >= 0 && low < span * 0.25 ? 0 : low - room, high + room];
}
