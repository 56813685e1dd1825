// The tokens along the matrix: every one where there is room, else numbers of positions.

import { textWidth } from "./surface.js";

export const LABEL_SIZE = 12;

const LEAST_ROOM = 12;
const TURN = -52;

/** Labels on the left and on top, the marked ones in front. */
export function drawAxes(surface, { viewport, margin, inks, look, marked }) {
  const { top, bottom, left, right } = viewport.inSight;
  const down = { from: top, to: bottom, size: viewport.cellHeight, at: (row) => margin.top + viewport.y(row + 0.5), end: margin.top + viewport.shown.height };
  const across = { from: left, to: right, size: viewport.cellWidth, at: (column) => margin.left + viewport.x(column + 0.5), end: margin.left + viewport.shown.width };
  const level = viewport.cellWidth < LEAST_ROOM || widestLabel(look.columnNames, left, right) <= viewport.cellWidth - 6;
  const rowLabel = (row, text, options) =>
    surface.text(margin.left - 8, down.at(row), text, { size: LABEL_SIZE, anchor: "end", limit: margin.left - 12, ...options });
  const columnLabel = (column, text, options) =>
    level
      ? surface.text(across.at(column), margin.top - 10, text, { size: LABEL_SIZE, anchor: "middle", ...options })
      : surface.text(across.at(column), margin.top - 8, text, { size: LABEL_SIZE, turn: TURN, limit: (margin.top - 12) / 0.8, ...options });
  drawAxis(down, margin.top, look.rowNames, marked ? marked.row : -1, inks, rowLabel);
  drawAxis(across, margin.left, look.columnNames, marked ? marked.column : -1, inks, columnLabel);
}

function drawAxis(axis, begin, names, marked, inks, label) {
  const inside = (at) => at >= begin - 1 && at <= axis.end + 1;
  const crowded = axis.size < LEAST_ROOM;
  const step = crowded ? niceStep(64 / axis.size) : 1;
  for (let at = Math.ceil(axis.from / step) * step; at < axis.to; at += step) {
    const close = marked >= 0 && at !== marked && Math.abs(at - marked) * axis.size < LABEL_SIZE + 2;
    if (at === marked || close || !inside(axis.at(at))) continue;
    label(at, crowded ? String(at) : names[at], { fill: crowded ? inks.faint : inks.soft });
  }
  if (marked >= axis.from && marked < axis.to) label(marked, names[marked], { fill: inks.accent, weight: 600 });
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
}

function widestLabel(names, from, to) {
  let widest = 0;
  if (to - from > 40) return Infinity;
  for (let at = from; at < to; at += 1) widest = Math.max(widest, textWidth(names[at], LABEL_SIZE));
  return widest;
}
