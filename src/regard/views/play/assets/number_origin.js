// Where a number comes from, written out: the rule as a formula, then the same with the numbers themselves.

import { make } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { cellNumber } from "./cell_grid.js";

const inBrackets = (value) => (value < 0 ? `(${cellNumber(value)})` : cellNumber(value));

/** Numbers and signs, each in its own element, so that long sums wrap between terms. */
function written(parts) {
  return parts.map((part) => make("span", { class: "term" }, part));
}

const RULES = {
  given: () => [say("sentence.origin.given")],
  sum: ({ terms }) => terms.map(([a, b], at) => `${at ? "+ " : ""}${inBrackets(a)} × ${inBrackets(b)}`),
  copied: () => [say("sentence.origin.copied")],
  turned: ({ terms, angle }) => [
    ...terms.map(
      ([a, b], at) =>
        `${at ? "+ " : ""}${inBrackets(a)} × ${at ? "sin" : "cos"} ${cellNumber(angle)} (${cellNumber(b)})`,
    ),
  ],
  wave: ({ position, channel }) => [
    `${channel % 2 ? "cos" : "sin"}(${position} / 10000^(${channel - (channel % 2)}/4))`,
  ],
  plus: ({ parts }) => [`${cellNumber(parts[0])} + ${inBrackets(parts[1])}`],
  scaled: ({ dot, channels }) => [
    `${cellNumber(dot)} / √${channels}`,
    `= ${cellNumber(dot)} / ${cellNumber(Math.sqrt(channels))}`,
  ],
  hidden: () => [say("sentence.origin.hidden")],
  seen: () => [say("sentence.origin.seen")],
  lse: ({ scores }) => ["log(", ...scores.map((score, at) => `${at ? "+ " : ""}exp ${inBrackets(score)}`), ")"],
  weight: ({ score, lse }) => [`exp(${cellNumber(score)} − ${inBrackets(lse)})`],
};

/** The line below a number that is pointed at. */
export function originLine(title, rule, origin) {
  const parts = written(RULES[origin.rule](origin));
  return make(
    "div",
    { class: "origin-line" },
    make("span", { class: "origin-title" }, title, " ", rule),
    make(
      "span",
      { class: "origin-terms" },
      ...parts,
      make("span", { class: "term result" }, "= ", make("b", {}, cellNumber(origin.value))),
    ),
  );
}
