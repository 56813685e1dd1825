// The colour bar: which colour is which number.

import { fitCanvas, make } from "./elements.js";
import { say } from "./languages.js";
import { CanvasSurface } from "./surface.js";

export const LEGEND_HEIGHT = 44;

const BAR_WIDTH = 240;
const BAR_HEIGHT = 26;

/** A horizontal bar with its ticks below. */
export function drawLegend(surface, { x, y, width, inks, shading }) {
  const pieces = 64;
  for (let piece = 0; piece < pieces; piece += 1) {
    // Each goes on below the next ones: edges inside of a pixel would let the paper through.
    const from = (piece * width) / pieces;
    surface.rect(x + from, y, Math.min(width / pieces + 1.5, width - from), 6, shading.colour((piece + 0.5) / pieces));
  }
  for (const [place, text] of shading.ticks) {
    const anchor = place === 0 ? "start" : place === 1 ? "end" : "middle";
    surface.text(x + place * width, y + 16, text, { fill: inks.faint, size: 10, anchor });
  }
}

/** The colour bar as an element, for views that are not drawn on one canvas; nothing for weights. */
export function legendElement(shading, inks) {
  if (shading.what === "weight") return null;
  const canvas = make("canvas", { class: "legend", role: "img", "aria-label": legendSaid(shading) });
  canvas.title = legendSaid(shading);
  drawLegend(new CanvasSurface(fitCanvas(canvas, BAR_WIDTH, BAR_HEIGHT)), {
    x: 1,
    y: 2,
    width: BAR_WIDTH - 2,
    inks,
    shading,
  });
  return canvas;
}

/** The colour bar in words. */
function legendSaid(shading) {
  const [[, low], [, high]] = [shading.ticks[0], shading.ticks.at(-1)];
  return say(shading.signed ? "legend.signed" : "legend.sizes", { what: say(shading.named), low, high });
}
