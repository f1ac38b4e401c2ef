/* Tables that sort, scroll with a cue, and download. */

/* A box that scrolls sideways: shadows show that there is more, and the keyboard can scroll it. */
function scroller(label, ...children) {
  const inner = h("div", { class: "scroll" }, children);
  const outer = h("div", { class: "scroller" }, inner);
  const update = () => {
    const hidden = inner.scrollWidth - inner.clientWidth;
    outer.classList.toggle("more-left", inner.scrollLeft > 2);
    outer.classList.toggle("more-right", inner.scrollLeft < hidden - 2);
    for (const [name, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": `${label} (scrolls sideways)` })) {
      if (hidden > 2) inner.setAttribute(name, value);
      else inner.removeAttribute(name);
    }
  };
  inner.addEventListener("scroll", update, { passive: true });
  inner.draw = update;
  observer.observe(inner);
  return outer;
}

const sorting = {};
/* columns: {label, value(row), cell(row), numeric?, downFirst?, explain?, csv?(row)}. csv gives
   several named values instead of one. */
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
  function sorted() {
    if (order.column === null || !columns[order.column]) return rows;
    const { value } = columns[order.column];
    return [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      const way = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
      return order.down ? -way : way;
    });
  }
  function refill() {
    heads.forEach((head, i) =>
      head.setAttribute("aria-sort", i !== order.column ? "none" : order.down ? "descending" : "ascending"));
    body.replaceChildren(...sorted().map((row) =>
      h("tr", {}, columns.map((column, i) =>
        h(i ? "td" : "th", { scope: i ? null : "row", class: column.numeric && "num" }, column.cell(row))))));
  }
  function asRows() {
    const cells = (row) => Object.assign({}, ...columns.map((c) => c.csv?.(row) ?? { [c.label.replace(/ [↑↓]$/u, "")]: c.value(row) }));
    const found = sorted().map(cells);
    const names = distinct(found.flatMap(Object.keys));
    return [names, ...found.map((row) => names.map((name) => row[name]))];
  }
  refill();
  return h("div", {}, scroller(caption, h("table", { id }, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, heads)), body)),
    h("div", { class: "tools" }, csvButton(caption, asRows)));
}

/* The rows of a table element as text. */
const tableRows = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.replace(/^−(?=[\d.])/u, "-").replace(/ \(differs\)$/u, "")))
  .map((row) => row.map((text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : text)));
