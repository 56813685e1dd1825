// The steps behind the heads: all heads side by side, what they add through W_O, and the residual.

import { make } from "../elements.js";
import { say } from "../languages.js";
import { vectorRow } from "../vector.js";
import { chapter } from "./chapter.js";

/** The steps as values: { title, formula, lines: [{ name, vector, sign, fact }] }, the last maybe { note }; nothing
 * where the page has no W_O. */
export function layerSteps(call, query, head) {
  const layer = call.layerOutput(query);
  if (!layer) return [];
  const number = call.heads[head];
  const joined = Float32Array.from(layer.outputs.flatMap((output) => [...output]));
  return [
    { title: say("steps.joined"), formula: `o0 … o${call.heads.at(-1)}`, lines: [{ vector: joined, sign: "o" }] },
    {
      title: say("steps.projected"),
      formula: layer.bias ? "y = Σ o · W_O + b" : "y = Σ o · W_O",
      lines: [
        { name: say("steps.part", { head: number }), vector: layer.parts[head], sign: `o${number} W_O` },
        { name: say("steps.sum"), vector: layer.total, sign: layer.bias ? "Σ" : "y", fact: "sum" },
        ...(layer.bias ? [{ name: say("steps.biased"), vector: layer.added, sign: "y", fact: "added" }] : []),
      ],
    },
    layer.before
      ? {
          title: say("steps.residual"),
          formula: "x + y",
          lines: [
            { name: say("steps.residual.before"), vector: layer.before, sign: "x", fact: "before" },
            { name: say("steps.residual.after"), vector: layer.after, sign: "x + y", fact: "after" },
          ],
        }
      : { note: say(call.residualFound ? "steps.residual.large" : "steps.residual.unknown") },
  ];
}

/** The steps on the page, from chapter 4 on. */
export function layerChapters(call, query, head, inks) {
  const line = ({ name, vector, sign, fact }) => {
    if (!name) return vectorRow(vector, sign, inks);
    const row = make("div", { class: "layer-part" }, make("small", {}, name), vectorRow(vector, sign, inks));
    if (fact) row.dataset[fact] = vector.join(" ");
    return row;
  };
  return layerSteps(call, query, head).map(({ title, formula, lines, note }, at) =>
    note
      ? make("p", { class: "hint" }, note)
      : chapter(4 + at, title, formula, make("div", {}, ...lines.map((one) => line(one)))),
  );
}
