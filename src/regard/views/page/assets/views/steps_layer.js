// The steps behind the heads: all heads side by side, what they add through W_O, and the residual.

import { make } from "../elements.js";
import { say } from "../languages.js";
import { vectorRow } from "../vector.js";
import { chapter } from "./chapter.js";

/** Nothing where the page has no W_O. */
export function layerChapters(call, query, head, inks) {
  const layer = call.layerOutput(query);
  if (!layer) return [];
  const line = (name, vector, sign, fact) => {
    const row = make("div", { class: "layer-part" }, make("small", {}, name), vectorRow(vector, sign, inks));
    if (fact) row.dataset[fact] = vector.join(" ");
    return row;
  };
  const number = call.heads[head];
  const joined = vectorRow(Float32Array.from(layer.outputs.flatMap((output) => [...output])), "o", inks);
  const projected = [
    line(say("steps.part", { head: number }), layer.parts[head], `o${number} W_O`),
    line(say("steps.sum"), layer.total, layer.bias ? "Σ" : "y", "sum"),
    ...(layer.bias ? [line(say("steps.biased"), layer.added, "y", "added")] : []),
  ];
  const formula = layer.bias ? "y = Σ o · W_O + b" : "y = Σ o · W_O";
  return [
    chapter(4, say("steps.joined"), `o0 … o${call.heads.at(-1)}`, joined),
    chapter(5, say("steps.projected"), formula, make("div", {}, ...projected)),
    layer.before
      ? chapter(
          6,
          say("steps.residual"),
          "x + y",
          make(
            "div",
            {},
            line(say("steps.residual.before"), layer.before, "x", "before"),
            line(say("steps.residual.after"), layer.after, "x + y", "after"),
          ),
        )
      : make("p", { class: "hint" }, say(call.residualFound ? "steps.residual.large" : "steps.residual.unknown")),
  ];
}
