import assert from "node:assert/strict";
import { test } from "node:test";
import { levelFor, middleFirst, tileRange } from "../../src/regard/views/page/assets/tile_places.js";
import { isFurther, TILE, Tiles } from "../../src/regard/views/page/assets/tiles.js";

test("a cell of a tile is at least one pixel", () => {
  assert.deepEqual(
    [72, 1, 0.51, 0.5, 0.26, 0.03].map((cell) => levelFor(cell)),
    [0, 0, 1, 1, 2, 6],
  );
  assert.equal(levelFor(0.001, 3), 3);
});

test("the tiles in sight cover what is in sight, and no more", () => {
  assert.deepEqual(tileRange({ top: 0, bottom: 64, left: 63, right: 65 }, 0, 64), {
    top: 0,
    bottom: 1,
    left: 0,
    right: 2,
  });
  assert.deepEqual(tileRange({ top: 130, bottom: 257, left: 0, right: 1 }, 1, 64), {
    top: 1,
    bottom: 3,
    left: 0,
    right: 1,
  });
});

test("the tiles in the middle come first, each once", () => {
  const places = middleFirst({ top: 2, bottom: 7, left: 1, right: 4 });
  assert.equal(places.length, 15);
  assert.equal(new Set(places.map(String)).size, 15);
  assert.deepEqual(places[0], [4, 2]);
  const far = places.map(([down, across]) => Math.hypot(down - 4, across - 2));
  assert.deepEqual(
    far,
    [...far].sort((a, b) => a - b),
  );
  assert.deepEqual(middleFirst({ top: 3, bottom: 3, left: 0, right: 9 }), []);
});

const [ROWS, COLUMNS] = [149, 211];
const weightAt = (row, column) => Math.fround(((row * 31 + column * 17) % 97) / 97);
const LOOK = {
  rows: { count: ROWS },
  columns: { count: COLUMNS },
  effort: 1e4,
  what: "weight",
  values: (_, top, bottom, left, right) =>
    Float32Array.from({ length: (bottom - top) * (right - left) }, (_, at) =>
      weightAt(top + Math.floor(at / (right - left)), left + (at % (right - left))),
    ),
};

const run = (steps) => {
  let [slices, next] = [0, steps.next()];
  for (; !next.done; next = steps.next()) slices += 1;
  return { slices, value: next.value };
};

test("a cell is the greatest weight of its block, also at the edge", () => {
  for (const level of [0, 1, 2]) {
    const tiles = new Tiles(LOOK, 0);
    run(tiles.fill(level, tileRange({ top: 0, bottom: ROWS, left: 0, right: COLUMNS }, level, TILE)));
    const step = 2 ** level;
    for (let row = 0; row < ROWS; row += step) {
      for (let column = 0; column < COLUMNS; column += step) {
        let greatest = 0;
        for (let i = row; i < Math.min(row + step, ROWS); i += 1) {
          for (let j = column; j < Math.min(column + step, COLUMNS); j += 1)
            greatest = Math.max(greatest, weightAt(i, j));
        }
        const [down, across] = [Math.floor(row / step / TILE), Math.floor(column / step / TILE)];
        const tile = tiles.get(level, down, across);
        assert.equal(tile.values[((row / step) % TILE) * tile.columns + ((column / step) % TILE)], greatest);
      }
    }
  }
});

test("long work is cut into slices, and tiles that are there are not computed again", () => {
  const tiles = new Tiles(LOOK, 0);
  const range = tileRange({ top: 0, bottom: ROWS, left: 0, right: COLUMNS }, 0, TILE);
  assert.ok(run(tiles.fill(0, range)).slices > 12);
  assert.equal(run(tiles.fill(0, range)).slices, 0);
});

test("the whole head in one tile", () => {
  const { value } = run(new Tiles(LOOK, 0).whole());
  assert.deepEqual([value.rows, value.columns], [Math.ceil(ROWS / 4), Math.ceil(COLUMNS / 4)]);
});

test("of a signed quantity a cell is what is furthest from 0, and NaN where all of it is masked", () => {
  const signed = (row, column) => (column > row ? Number.NaN : Math.fround(Math.sin(row * 3 + column)));
  const look = {
    ...LOOK,
    what: "gradient",
    values: (_, top, bottom, left, right) =>
      Float32Array.from({ length: (bottom - top) * (right - left) }, (_, at) =>
        signed(top + Math.floor(at / (right - left)), left + (at % (right - left))),
      ),
  };
  const tiles = new Tiles(look, 0);
  run(tiles.fill(1, tileRange({ top: 0, bottom: ROWS, left: 0, right: COLUMNS }, 1, TILE)));
  const tile = tiles.get(1, 0, 0);
  for (const [row, column] of [
    [0, 0],
    [5, 3],
    [63, 63],
  ]) {
    const block = [0, 1].flatMap((i) => [0, 1].map((j) => signed(2 * row + i, 2 * column + j)));
    const wanted = block.reduce((far, value) => (isFurther(value, far) ? value : far), Number.NaN);
    assert.equal(tile.values[row * tile.columns + column], wanted);
  }
  assert.ok(Number.isNaN(tile.values[3 * tile.columns + 9]));
  assert.ok(isFurther(-2, 1) && !isFurther(1, -2) && isFurther(0, Number.NaN) && !isFurther(Number.NaN, 0));
});
