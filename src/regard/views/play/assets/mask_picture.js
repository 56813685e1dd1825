// A mask drawn: a square for every pair, queries from top to bottom, keys from left to right.

import { fitCanvas, make } from "../../page/assets/elements.js";

/** The least and most pixels of a cell. */
const SMALLEST_CELL = 3;
const LARGEST_CELL = 30;

/**
 * The picture of rows of truth values. `pointed(i, j)` is told what the pointer is on, or null; arrow keys move too.
 * @param {boolean[][]} rows
 * @param {{ label: string, room: number, inks: any, pointed: (pair: number[] | null) => void }} options
 */
export function maskPicture(rows, { label, room, inks, pointed }) {
  const [queries, keys] = [rows.length, rows[0]?.length ?? 0];
  const size = Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, Math.floor(room / Math.max(queries, keys))));
  const canvas = make("canvas", { class: "mask-picture", role: "img", tabindex: 0, "aria-label": label });
  const state = { at: null };
  const paint = () => {
    const context = fitCanvas(canvas, keys * size + 1, queries * size + 1);
    const gap = size > 6 ? 1 : 0;
    rows.forEach((row, i) => {
      row.forEach((allowed, j) => {
        const beside = state.at && (state.at[0] === i || state.at[1] === j);
        context.fillStyle = allowed ? inks.accent : inks.hair;
        context.globalAlpha = allowed ? (state.at && !beside ? 0.55 : 1) : beside ? 0.9 : 0.45;
        context.fillRect(j * size + gap, i * size + gap, size - gap, size - gap);
      });
    });
    context.globalAlpha = 1;
    if (state.at) {
      context.strokeStyle = inks.ink;
      context.lineWidth = 2;
      context.strokeRect(state.at[1] * size + 0.5, state.at[0] * size + 0.5, size, size);
    }
  };
  const point = (at) => {
    if (String(at) === String(state.at)) return;
    state.at = at;
    paint();
    pointed(at);
  };
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const [i, j] = [event.clientY - box.top, event.clientX - box.left].map((way) => Math.floor(way / size));
    return i >= 0 && j >= 0 && i < queries && j < keys ? [i, j] : null;
  };
  canvas.addEventListener("pointermove", (event) => point(under(event)));
  canvas.addEventListener("pointerdown", (event) => point(under(event)));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [i, j] = state.at ?? [0, 0];
    const inside = (at, most) => Math.max(0, Math.min(most - 1, at));
    point(state.at ? [inside(i + way[0], queries), inside(j + way[1], keys)] : [0, 0]);
  });
  paint();
  return canvas;
}
