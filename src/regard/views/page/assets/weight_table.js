// One row of the matrix as a table: for keyboards and screen readers, and for anyone who wants the numbers.

import { datum, make } from "./elements.js";
import { say } from "./languages.js";
import { quantityText } from "./numbers.js";
import { greatestPlaces } from "./text_weights.js";

const MOST_ROWS = 100;

/** A table behind a switch, built when it is open. */
export class WeightTable {
  constructor() {
    this.body = make("div", { class: "row-table-body scroll", tabindex: "0", role: "group" });
    this.root = make(
      "details",
      { class: "row-table", on: { toggle: () => this.fill() } },
      make("summary", {}, say("matrix.table")),
      this.body,
    );
    this.shown = null;
  }

  /** The row to show: a look, a head and the row's number, or −1. */
  show(look, head, row) {
    this.shown = { look, head, row };
    this.fill();
  }

  fill() {
    if (!this.root.open || !this.shown) return;
    const { look, head, row } = this.shown;
    this.body.setAttribute("aria-label", say("matrix.table"));
    if (row < 0) {
      this.body.replaceChildren(make("p", { class: "hint" }, say("matrix.table.none")));
      return;
    }
    const weights = look.row(head, row);
    const cells = greatestPlaces(weights, MOST_ROWS).map((column) =>
      make(
        "tr",
        {},
        make("td", {}, datum(String(column))),
        make("th", { scope: "row", class: "text" }, datum(look.columnNames[column])),
        make("td", {}, datum(quantityText(weights[column], look.what))),
      ),
    );
    const name = (key) => make("th", { scope: "col" }, say(key));
    this.body.replaceChildren(
      make(
        "table",
        { class: "numbers" },
        make("caption", {}, say("matrix.table.of", { row }), " ", datum(look.rowNames[row], "token-text")),
        make("thead", {}, make("tr", {}, name("matrix.position"), name("matrix.key"), name(look.named))),
        make("tbody", {}, ...cells),
      ),
    );
  }
}
