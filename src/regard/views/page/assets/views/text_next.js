// What the model expected: the likeliest tokens after the one in focus, and each token's own probability as a colour.

import { PROBABLE, surprise } from "../data/next_tokens.js";
import { datum, make } from "../elements.js";
import { say } from "../languages.js";
import { shareText } from "../numbers.js";

/** The side of the text that a model wrote or might have written, and how its units are counted; null without one. */
export function writtenSide(view) {
  const { recording, state } = view.app;
  const { next } = recording;
  const { call } = state;
  if (!next || (call.kind === "encoder" && recording.calls.some((one) => one.kind === "cross"))) return null;
  // Rows of cross-attention are named by what they write, one position later.
  if (call.kind === "cross") return call.queries === next.positions ? { side: "query", later: 1 } : null;
  return call.keys === next.positions ? { side: "key", later: 0 } : null;
}

/** What was expected at the token in focus, in parts; nothing where that is not known. */
export function nextParts(view, here) {
  const written = writtenSide(view);
  if (!written || here?.side !== written.side) return [];
  const { next } = view.app.recording;
  const { units, tokens } = view.blocks[here.side];
  const position = units.last[here.unit] - 1;
  const found = next.after(position);
  if (!found.length) return [];
  const actual = written.later ? tokens[position] : tokens[position + 1];
  const items = found.map(({ token, probability }) =>
    make(
      "li",
      { class: token === actual ? "actual" : null },
      datum(token, "pair-token"),
      " ",
      datum(shareText(probability), "number"),
    ),
  );
  const own = next.probability(units.first[here.unit] + written.later);
  const itself = own === null ? [] : [make("small", {}, say("text.likely", { share: shareText(own) }))];
  const title = say(written.later ? "text.next.here" : "text.next");
  return [make("span", { class: "where" }, title), make("ol", { "aria-label": title }, ...items), ...itself];
}

/** Gives every token the class of its probability, for the colours that a switch shows. */
export function markProbabilities(view) {
  const written = writtenSide(view);
  if (!written) return;
  const { next } = view.app.recording;
  const { units, elements } = view.blocks[written.side];
  elements.forEach((element, unit) => {
    const position = units.first[unit] + written.later;
    if (next.counts(position)) element.classList.add(`likely-${surprise(next.probability(position))}`);
  });
}

/** Which colour is which probability. */
export function probabilityLegend() {
  const texts = PROBABLE.map((least) => `≥ ${shareText(least)}`);
  texts.push(`< ${shareText(PROBABLE.at(-1))}`);
  return make(
    "span",
    { class: "likely-legend" },
    ...texts.map((text, step) => make("span", { class: `likely-${step}` }, text)),
  );
}
