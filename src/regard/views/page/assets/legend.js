// The colour bar: which colour is which weight.

import { shadeOf } from "./colours.js";

export const LEGEND_HEIGHT = 44;

const LEGEND_TICKS = {
  linear: [
    [0, "0"],
    [0.25, "0.25"],
    [0.5, "0.5"],
    [0.75, "0.75"],
    [1, "1"],
  ],
  log: [
    [0, "10⁻⁴"],
    [0.25, "10⁻³"],
    [0.5, "0.01"],
    [0.75, "0.1"],
    [1, "1"],
  ],
};

/** A horizontal bar with its ticks below. */
export function drawLegend(surface, { x, y, width, inks, scale }) {
  const pieces = 64;
  for (let piece = 0; piece < pieces; piece += 1) {
    surface.rect(x + (piece * width) / pieces, y, width / pieces + 0.4, 6, shadeOf(inks.ramp, (piece + 0.5) / pieces));
  }
  for (const [tone, text] of LEGEND_TICKS[scale]) {
    const anchor = tone === 0 ? "start" : tone === 1 ? "end" : "middle";
    surface.text(x + tone * width, y + 16, text, { fill: inks.faint, size: 10, anchor });
  }
}
