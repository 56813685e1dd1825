// The tokens along the matrix: every one where there is room, else numbers of positions.

import { textWidth } from "./surface.js";

const LABEL_SIZE = 12;

/** Pixels of a cell from which every token is named; positions are numbered where cells are smaller. */
export const LEAST_ROOM = 12;
const TURN = -52;

/** Labels on the left and on top, at most `space` { left, top } pixels long; the marked pair in front. */
export function drawAxes(surface, { viewport, space, inks, look, marked }) {
  const { top, bottom, left, right } = viewport.inSight;
  const level =
    viewport.cellWidth < LEAST_ROOM ||
    widestLabel(look.columnNames.slice(left, Math.min(right, left + 40))) <= viewport.cellWidth - 6;
  drawAxis({
    names: look.rowNames,
    from: top,
    to: bottom,
    size: viewport.cellHeight,
    marked: marked?.row,
    inks,
    inside: (row) => viewport.y(row + 0.5) > viewport.top && viewport.y(row + 0.5) < viewport.top + viewport.height,
    label: (row, text, style) =>
      surface.text(viewport.left - 8, viewport.y(row + 0.5), text, { anchor: "end", limit: space.left, ...style }),
  });
  drawAxis({
    names: look.columnNames,
    from: left,
    to: right,
    size: viewport.cellWidth,
    marked: marked?.column,
    inks,
    inside: (column) =>
      viewport.x(column + 0.5) > viewport.left && viewport.x(column + 0.5) < viewport.left + viewport.width,
    label: (column, text, style) => {
      const placed = level ? { anchor: "middle" } : { turn: TURN };
      surface.text(viewport.x(column + 0.5), viewport.top - (level ? 12 : 8), text, {
        ...placed,
        limit: space.top,
        ...style,
      });
    },
  });
}

function drawAxis({ names, from, to, size, marked = -1, inks, inside, label }) {
  const crowded = size < LEAST_ROOM;
  const step = crowded ? niceStep(64 / size) : 1;
  for (let at = Math.ceil(from / step) * step; at < to; at += step) {
    const covered = marked >= 0 && Math.abs(at - marked) * size < (crowded ? 40 : LEAST_ROOM - 1);
    if (!covered && inside(at))
      label(at, crowded ? String(at) : names[at], { size: LABEL_SIZE, fill: crowded ? inks.faint : inks.soft });
  }
  if (marked >= from && marked < to) label(marked, names[marked], { size: LABEL_SIZE, fill: inks.accent, weight: 600 });
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
}

/** The width of the widest of some labels; only the longest can be it. */
export function widestLabel(names) {
  const longest = [...new Set(names)].sort((a, b) => b.length - a.length).slice(0, 12);
  return Math.max(0, ...longest.map((name) => textWidth(name, LABEL_SIZE)));
}
