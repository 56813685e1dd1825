// Which tiles are in sight, and in which order they are needed. Pure functions.

/** @typedef {import("./viewport.js").Range} Range */

/**
 * The level at which a cell of a tile is at least one pixel of the screen.
 * @param {number} cell the size of a pair, in pixels
 * @param {number} coarsest
 */
export function levelFor(cell, coarsest = Infinity) {
  return Math.min(coarsest, Math.max(0, Math.ceil(-Math.log2(cell) - 0.01)));
}

/**
 * The tiles of a level that hold some rows and columns; a tile has `side` × `side` cells of 2^level × 2^level pairs.
 * @param {Range} inSight
 * @param {number} level
 * @param {number} side
 * @returns {Range}
 */
export function tileRange({ top, bottom, left, right }, level, side) {
  const size = side * 2 ** level;
  return {
    top: Math.floor(top / size),
    bottom: Math.ceil(bottom / size),
    left: Math.floor(left / size),
    right: Math.ceil(right / size),
  };
}

/**
 * Every tile of a range, the middle first.
 * @param {Range} range
 * @returns {[down: number, across: number][]}
 */
export function middleFirst({ top, bottom, left, right }) {
  const [middleDown, middleAcross] = [(top + bottom - 1) / 2, (left + right - 1) / 2];
  const places = [];
  for (let down = top; down < bottom; down += 1) {
    for (let across = left; across < right; across += 1) {
      places.push({ far: Math.hypot(down - middleDown, across - middleAcross), down, across });
    }
  }
  return places
    .sort((one, other) => one.far - other.far)
    .map(({ down, across }) => /** @type {[number, number]} */ ([down, across]));
}
