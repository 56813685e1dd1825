// The lines between source and target of a translation: from each target token to the source token that it attends
// to most.

import { fitCanvas, make } from "../elements.js";
import { greatestPlaces } from "../text_weights.js";

const WEAKEST_LINK = 0.1; // weaker links are left out
const MOST_LINKS = 400;

/** A canvas behind the text; `fit` makes it as large as the book. */
export function linksLayer() {
  const canvas = make("canvas", { class: "links", "aria-hidden": "true" });
  return Object.assign(canvas, { fit: (book) => fitCanvas(canvas, book.clientWidth, book.scrollHeight) });
}

/** Draws the strongest link of every target token, those of the token in focus strongly. */
export function drawLinks(view, seen, surface) {
  const { inks } = view.app;
  const from = view.book.getBoundingClientRect();
  const { query, key } = view.blocks;
  for (const { target, source, weight } of strongestLinks(view)) {
    const mine = seen?.here && (seen.here.side === "query" ? seen.here.unit === target : seen.here.unit === source);
    if (seen?.here && !mine) link(surface, from, key.elements[source], query.elements[target], inks.hair, 1, 0.9);
    else
      link(
        surface,
        from,
        key.elements[source],
        query.elements[target],
        inks.accent,
        0.8 + 2.6 * weight,
        0.35 + 0.6 * weight,
      );
  }
  if (!seen?.here || seen.here.side === "key" || seen.shading.what !== "weight") return;
  for (const source of greatestPlaces(seen.shown, 3)) {
    const weight = seen.shown[source];
    if (weight >= WEAKEST_LINK)
      link(
        surface,
        from,
        key.elements[source],
        query.elements[seen.here.unit],
        inks.accent,
        0.8 + 2.6 * weight,
        0.35 + 0.6 * weight,
      );
  }
}

/** For every target token the source token that it attends to most, sinks left out. */
function strongestLinks(view) {
  const { query } = view.blocks;
  const { now } = view.app.state;
  const name = `${now.call} ${now.head} ${now.group} ${now.quiet} ${now.special} ${now.words} ${now.sinks}`;
  if (view.linksOf?.name === name) return view.linksOf.found;
  const resting = now.quiet === "on" ? view.resting() : [];
  const found = [];
  for (let target = 0; target < Math.min(query.units.count, MOST_LINKS); target += 1) {
    if (query.marks[query.units.first[target]]) continue;
    // By weight, whatever is shown: the lines say where a word looks.
    const { weights } = view.weightsFrom({ side: "query", unit: target }, "weight");
    const [source] = greatestPlaces(weights, 1, (unit) => !resting[unit]);
    if (source !== undefined && weights[source] >= WEAKEST_LINK)
      found.push({ target, source, weight: weights[source] });
  }
  view.linksOf = { name, found };
  return found;
}

function link(surface, from, source, target, stroke, width, opacity) {
  const [above, below] = [source.getBoundingClientRect(), target.getBoundingClientRect()];
  const [x1, y1] = [(above.left + above.right) / 2 - from.left, above.bottom - from.top + 2];
  const [x2, y2] = [(below.left + below.right) / 2 - from.left, below.top - from.top - 2];
  surface.stroked(stroke, width, opacity, null, (context) => {
    const middle = (y1 + y2) / 2;
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1, middle, x2, middle, x2, y2);
  });
}
