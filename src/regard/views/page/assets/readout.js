// The line that says exactly what is under the pointer.

import { datum, make } from "./elements.js";
import { explainedTerm, term } from "./explained.js";
import { say } from "./languages.js";
import { quantityText, shareText } from "./numbers.js";

/** A line "query → key  weight", kept up to date by `show`. */
export class Readout {
  constructor(hint) {
    this.hint = hint;
    this.root = make("div", { class: "readout", role: "status", "aria-live": "polite" });
    this.clear();
  }

  clear() {
    delete this.root.dataset.weight;
    this.root.replaceChildren(make("span", { class: "hint" }, this.hint));
  }

  /** `pair` is { row, column, weight, masked, removed, note } of a look; column −1 shows the query alone. */
  show(look, pair) {
    const { root } = this;
    Object.assign(root.dataset, { query: pair.row, key: pair.column, weight: pair.column < 0 ? "" : pair.weight });
    const parts = [];
    if (pair.row >= 0) parts.push(named("matrix.query", pair.row, look.rowNames[pair.row]));
    if (pair.row >= 0 && pair.column >= 0) parts.push(make("span", { class: "arrow", "aria-hidden": "true" }, "→"));
    if (pair.column >= 0) parts.push(named("matrix.key", pair.column, look.columnNames[pair.column]));
    if (pair.row >= 0 && pair.column >= 0) {
      const { what, named: key } = look;
      const value = pair.masked
        ? term("masked", say("matrix.masked"))
        : datum(quantityText(pair.weight, what), "number");
      const name = what === "weight" ? term("weight", say(key)) : explainedTerm(key);
      parts.push(make("span", { class: "value" }, make("small", {}, name), value));
    }
    if (pair.note) parts.push(make("small", {}, pair.note));
    if (pair.removed > 0) parts.push(make("small", {}, say("removed.row", { share: shareText(pair.removed) })));
    root.replaceChildren(...parts);
  }
}

function named(key, number, token) {
  return make(
    "span",
    { class: "named" },
    make("small", {}, term(key.split(".").at(-1), say(key)), " ", datum(String(number))),
    datum(token, "token-text"),
  );
}
