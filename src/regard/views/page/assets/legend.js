// The colour bar: which colour is which number.

import { fitCanvas, make } from "./elements.js";
import { say } from "./languages.js";
import { CanvasSurface, textWidth } from "./surface.js";

const LEGEND_HEIGHT = 44;
const AXES_LINE = 22; // pixels of a second line
const WIDEST_BAR = 220;
const BETWEEN = 24; // pixels between the parts of a caption
const SWATCH = 28; // a hatched area and the space after it

const ALL_TICKS = 140; // pixels that the marks of a logarithmic scale need
const BAR_WIDTH = 240;
const BAR_HEIGHT = 26;

/** A horizontal bar with its ticks below. */
function drawLegend(surface, { x, y, width, inks, shading }) {
  const pieces = 64;
  for (let piece = 0; piece < pieces; piece += 1) {
    // Each continues below the next ones: edges inside a pixel would let the paper show through.
    const from = (piece * width) / pieces;
    surface.rect(x + from, y, Math.min(width / pieces + 1.5, width - from), 6, shading.colour((piece + 0.5) / pieces));
  }
  // A short bar has no room for all of them.
  const ticks = width < ALL_TICKS ? shading.ticks.filter(([place]) => [0, 0.5, 1].includes(place)) : shading.ticks;
  for (const [place, text] of ticks) {
    const anchor = place === 0 ? "start" : place === 1 ? "end" : "middle";
    surface.text(x + place * width, y + 16, text, { fill: inks.faint, size: 10, anchor });
  }
}

/** The width of the hatched area with its word. */
function maskedWidth() {
  return SWATCH + textWidth(say("matrix.masked"), 12) + BETWEEN;
}

/** What is below a matrix that begins at `left`: one line, or two. */
export function captionPlan(call, left, width) {
  const bar = Math.max(80, Math.min(WIDEST_BAR, width - left - BETWEEN - maskedWidth()));
  const whole = say(call.kind === "cross" ? "matrix.axes.cross" : "matrix.axes");
  const below = left + bar + BETWEEN + maskedWidth() + textWidth(whole, 12) > width;
  const axes = textWidth(whole, 12) <= width ? whole : say("matrix.axes.short");
  return { bar, axes, below, height: LEGEND_HEIGHT + (below ? AXES_LINE : 0) };
}

/** How wide the line below a matrix is. */
export function captionWidth({ bar, axes }, masked) {
  return bar + BETWEEN + (masked ? maskedWidth() : 0) + textWidth(axes, 12);
}

/** Below a matrix: the colours, what is hatched, and which axis is which. `width` is that of the whole stage. */
export function drawCaption(surface, { x, y, width, plan, masked, inks, shading }) {
  const { bar, axes, below } = plan;
  drawLegend(surface, { x, y, width: bar, inks, shading });
  const swatch = x + bar + BETWEEN;
  if (masked) {
    surface.hatch([[swatch, y - 3, SWATCH - 6, 12]], inks.hatch);
    surface.text(swatch + SWATCH, y + 4, say("matrix.masked"), { fill: inks.soft, size: 12 });
  }
  const beside = swatch + (masked ? maskedWidth() : 0);
  const at = below ? Math.max(0, Math.min(x, width - textWidth(axes, 12))) : beside;
  surface.text(at, below ? y + 36 : y + 4, axes, { fill: inks.soft, size: 12, limit: width - at });
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
