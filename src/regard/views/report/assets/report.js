// Sorts the table of heads by the column whose name is chosen: first greatest first, then least first.
for (const table of document.querySelectorAll("table.heads")) {
  const body = table.tBodies[0];
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const cell = button.parentElement;
    const down = cell.getAttribute("aria-sort") !== "descending";
    for (const other of cell.parentElement.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...body.rows].sort((a, b) => compare(value(a, cell), value(b, cell), down));
    body.append(...sorted);
  });
}

function value(row, cell) {
  const found = row.cells[cell.cellIndex];
  const text = found.dataset.value ?? found.textContent;
  if (text === "–") return null;
  return Number.isNaN(Number(text)) ? text : Number(text);
}

// What has no value comes last, whatever the order.
function compare(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "string" ? String(a).localeCompare(String(b), document.documentElement.lang) : a - b;
  return down ? -order : order;
}
