// The pair under the crosshair: both tokens in their context, and the weight.

import { datum, make } from "/assets/page/elements.js";
import { term } from "/assets/page/explained.js";
import { say } from "/assets/page/languages.js";
import { numberText, quantityText } from "/assets/page/numbers.js";

const CONTEXT = 5;

/** A line about one pair. */
export class PairReadout {
  constructor() {
    this.root = make("div", { class: "pair-readout", role: "status", "aria-live": "polite" });
    this.clear();
  }

  clear() {
    for (const name of ["query", "key", "weight"]) delete this.root.dataset[name];
    this.root.replaceChildren(make("span", { class: "hint" }, say("map.hint")));
  }

  /**
   * `pair` is { query, key, weight, what, named, pairs, mean, entropy, received }; −1 means none. The weight, or what
   * is shown in its place, is null until it is known and NaN if it is masked.
   */
  show(pair, queryTokens, keyTokens) {
    const { query, key, weight, what, named } = pair;
    Object.assign(this.root.dataset, { query, key, weight: weight ?? "" });
    const parts = [];
    if (query >= 0) parts.push(inContext("query", queryTokens, query));
    if (query >= 0 && key >= 0) parts.push(make("span", { class: "arrow", "aria-hidden": "true" }, "→"));
    if (key >= 0) parts.push(inContext("key", keyTokens, key));
    const facts = [];
    const greatest = what === "weight" ? "map.greatest" : "map.furthest.n";
    if (query >= 0 && key >= 0) {
      if (what !== "weight") facts.push(make("small", { title: say(`${named}.about`) }, say(named)));
      facts.push(Number.isNaN(weight) ? term("masked", say("matrix.masked")) : datum(told(weight, what), "number"));
    }
    if (pair.pairs > 1) facts.push(make("small", {}, say(greatest, { count: pair.pairs.toLocaleString("en") })));
    if (pair.pairs > 1 && Number.isFinite(pair.mean))
      facts.push(make("small", {}, say("map.mean.here", { mean: quantityText(pair.mean, what) })));
    if (query >= 0 && Number.isFinite(pair.entropy))
      facts.push(make("small", {}, say("map.entropy.n", { value: numberText(pair.entropy, 2) })));
    if (key >= 0 && Number.isFinite(pair.received))
      facts.push(make("small", {}, say("map.received.n", { value: numberText(pair.received, 2) })));
    parts.push(make("span", { class: "facts-of-pair" }, ...facts));
    this.root.replaceChildren(...parts);
  }
}

function told(weight, what) {
  return weight === null ? "…" : quantityText(weight, what);
}

/** A token among its neighbours, with its number. */
function inContext(side, tokens, at) {
  const before = tokens.slice(Math.max(0, at - CONTEXT), at).join(" ");
  const after = tokens.slice(at + 1, at + 1 + CONTEXT).join(" ");
  return make(
    "span",
    { class: "in-context" },
    make("small", {}, term(side, say(`matrix.${side}`)), " ", datum(String(at))),
    make(
      "span",
      { class: "context", translate: "no" },
      make("bdi", { class: "before" }, before),
      make("bdi", { class: "token-text" }, tokens[at]),
      make("bdi", { class: "after" }, after),
    ),
  );
}
