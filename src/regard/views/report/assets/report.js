// Sorts the table of heads by the column whose name is chosen: greatest first, then least first.
for (const table of /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll("table.heads"))) {
  const body = table.tBodies[0];
  table.tHead.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (!button) return;
    const cell = /** @type {HTMLTableCellElement} */ (button.parentElement);
    const down = cell.getAttribute("aria-sort") !== "descending";
    for (const other of cell.parentElement.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...body.rows].sort((a, b) => compare(value(a, cell), value(b, cell), down));
    body.append(...sorted);
  });
}

/**
 * What a row has in a column: a number, a text, or null.
 * @param {HTMLTableRowElement} row
 * @param {HTMLTableCellElement} cell
 */
function value(row, cell) {
  const found = row.cells[cell.cellIndex];
  const text = found.dataset.value ?? found.textContent;
  if (text === "–") return null;
  return Number.isNaN(Number(text)) ? text : Number(text);
}

/**
 * The order of two values. Rows without a value come last in either order.
 * @param {number | string | null} a
 * @param {number | string | null} b
 * @param {boolean} down greatest first
 */
function compare(a, b, down) {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order =
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), document.documentElement.lang);
  return down ? -order : order;
}
