// The matrix in tiles. A tile of level L holds 64 × 64 cells, and a cell is the greatest weight of
// 2^L × 2^L pairs, so that a strong weight is seen at every zoom; of other quantities, the one furthest from 0.

import { middleFirst } from "./tile_places.js";

export const TILE = 64;

const MOST_TILES = 1500;
// Multiplications between two looks at the clock: a few milliseconds on a slow machine.
const STRIP = 600_000;

/** The computed tiles of one head, and how to compute more. */
export class Tiles {
  constructor(look, head) {
    this.look = look;
    this.head = head;
    this.kept = new Map();
  }

  key(level, down, across) {
    return `${level}/${down}/${across}`;
  }

  /** A tile { rows, columns, values } or undefined. */
  get(level, down, across) {
    return this.kept.get(this.key(level, down, across));
  }

  /** Computes one tile, pausing every few milliseconds. */
  *compute(level, down, across) {
    const { look, head } = this;
    const [step, size] = [2 ** level, TILE * 2 ** level];
    const [top, left] = [down * size, across * size];
    const [bottom, right] = [Math.min(top + size, look.rows.count), Math.min(left + size, look.columns.count)];
    const tile = { rows: Math.ceil((bottom - top) / step), columns: Math.ceil((right - left) / step) };
    tile.values = new Float32Array(tile.rows * tile.columns).fill(look.what === "weight" ? 0 : Number.NaN);
    const strip = Math.max(1, Math.floor(STRIP / (look.effort * (right - left))));
    for (let from = top; from < bottom; from += strip) {
      const to = Math.min(from + strip, bottom);
      const weights = look.values(head, from, to, left, right);
      for (let row = from; row < to; row += 1) {
        const into = ((row - top) >> level) * tile.columns;
        keepGreatest(tile.values, into, weights, (row - from) * (right - left), right - left, level);
      }
      yield;
    }
    if (this.kept.size >= MOST_TILES) this.kept.delete(this.kept.keys().next().value);
    this.kept.set(this.key(level, down, across), tile);
  }

  /** Computes every missing tile of a range, the middle first. */
  *fill(level, range) {
    for (const [down, across] of middleFirst(range)) {
      if (!this.get(level, down, across)) yield* this.compute(level, down, across);
    }
  }

  /** The greatest weights of the whole head in one tile. */
  *whole() {
    const level = Math.max(0, Math.ceil(Math.log2(Math.max(this.look.rows.count, this.look.columns.count, 1) / TILE)));
    yield* this.compute(level, 0, 0);
    return this.get(level, 0, 0);
  }
}

/**
 * Whether a number is further from 0 than another one; NaN is not a number, and is further than nothing.
 * @param {number} value
 * @param {number} other
 */
export function isFurther(value, other) {
  return Math.abs(value) > Math.abs(other) || (Number.isNaN(other) && !Number.isNaN(value));
}

function keepGreatest(into, at, weights, from, count, level) {
  for (let i = 0; i < count; i += 1) {
    const cell = at + (i >> level);
    if (isFurther(weights[from + i], into[cell])) into[cell] = weights[from + i];
  }
}
