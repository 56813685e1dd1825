// A vector as a row of small bars around zero; a click shows its numbers.

import { fitCanvas, make } from "./elements.js";
import { say } from "./languages.js";
import { numberText } from "./numbers.js";
import { CanvasSurface } from "./surface.js";

/** Bars of a vector; `greatest` fixes the height of the tallest, so that vectors can be compared. */
export function drawVector(surface, vector, { x, y, width, height, greatest, inks }) {
  const step = width / Math.max(vector.length, 1);
  const middle = y + height / 2;
  surface.line(x, middle, x + width, middle, inks.hair);
  vector.forEach((value, channel) => {
    const tall = Math.min(1, Math.abs(value) / (greatest || 1)) * (height / 2 - 1);
    const top = value > 0 ? middle - tall : middle;
    const wide = Math.max(0.6, step - (step > 3 ? 1 : 0.25));
    surface.rect(x + channel * step, top, wide, Math.max(0.4, tall), value > 0 ? inks.positive : inks.negative);
  });
}

/** A canvas of a fixed size with the bars of a vector. */
export function vectorCanvas(vector, width, height, greatest, inks) {
  const canvas = make("canvas", { class: "vector", "aria-hidden": "true" });
  drawVector(new CanvasSurface(fitCanvas(canvas, width, height)), vector, {
    x: 0,
    y: 0,
    width,
    height,
    greatest,
    inks,
  });
  return canvas;
}

/** The numbers of a vector, folded. */
function vectorNumbers(vector, name) {
  const cells = Array.from(vector, (value, channel) =>
    make("li", {}, make("small", {}, String(channel)), numberText(value)),
  );
  return make(
    "details",
    { class: "vector-numbers" },
    make("summary", {}, say("steps.numbers.of", { name })),
    make("ol", { translate: "no" }, ...cells),
  );
}

/** The greatest size of any number of some vectors. */
export function greatestSize(vectors) {
  let greatest = 0;
  for (const vector of vectors) for (const value of vector) greatest = Math.max(greatest, Math.abs(value));
  return greatest;
}

/** A vector across the page: its bars, and its numbers folded under its name. */
export function vectorRow(vector, name, inks) {
  const canvas = vectorCanvas(vector, 640, 64, greatestSize([vector]), inks);
  return make("div", { class: "vector-row" }, canvas, vectorNumbers(vector, name));
}
