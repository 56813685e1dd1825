import assert from "node:assert/strict";
import { test } from "node:test";
import { Viewport } from "../../src/regard/views/page/assets/viewport.js";

const AREA = { left: 40, top: 30, width: 600, height: 400 };

test("a small matrix fits, with cells that are not larger than 56 pixels", () => {
  const all = new Viewport(3, 5, AREA, null);
  assert.deepEqual([all.cellWidth, all.cellHeight], [56, 56]);
  assert.equal(all.zoom, null);
  assert.deepEqual(all.inSight, { top: 0, bottom: 3, left: 0, right: 5 });
  assert.equal(all.left, 40 + (600 - 5 * 56) / 2);
});

test("a large matrix fits into the area", () => {
  const all = new Viewport(1009, 997, AREA, null);
  assert.ok(1009 * all.cellHeight <= 400 + 1e-9);
  assert.ok(997 * all.cellWidth <= 600 + 1e-9);
  assert.equal(all.cellWidth, all.cellHeight);
});

test("cells are at most three times as long as wide where there are many more keys than queries", () => {
  const wide = new Viewport(7, 211, AREA, null);
  assert.ok(wide.cellHeight > wide.cellWidth);
  assert.ok(wide.cellHeight <= 3 * wide.cellWidth + 1e-9);
});

test("zooming keeps the point under the pointer", () => {
  const near = new Viewport(1009, 997, AREA, [211, 307, 13]);
  const [row, column] = near.cellAt(333, 222);
  for (const factor of [0.7, 1.6, 3]) {
    const [againRow, againColumn] = near.zoomed(factor, 333, 222).cellAt(333, 222);
    assert.ok(Math.abs(againRow - row) < 1e-6);
    assert.ok(Math.abs(againColumn - column) < 1e-6);
  }
});

test("panning moves by pixels and stops at the edge", () => {
  const near = new Viewport(1009, 997, AREA, [211, 307, 13]);
  const moved = near.panned(-20, 10);
  assert.ok(Math.abs(moved.column - near.column - 20 / near.cellWidth) < 1e-9);
  assert.ok(Math.abs(moved.row - near.row + 10 / near.cellHeight) < 1e-9);
  assert.deepEqual([near.panned(1e9, 1e9).row, near.panned(1e9, 1e9).column], [0, 0]);
  const end = near.panned(-1e9, -1e9);
  assert.equal(end.inSight.bottom, 1009);
  assert.equal(end.inSight.right, 997);
});

test("pairAt is the inverse of x and y, and null outside", () => {
  const near = new Viewport(101, 103, AREA, [31, 37, 5]);
  const { top, left } = near.inSight;
  for (const [row, column] of [
    [top + 1, left + 1],
    [top + 3, left + 7],
  ]) {
    assert.deepEqual(near.pairAt(near.x(column) + 0.5, near.y(row) + 0.5), { row, column });
  }
  assert.equal(near.pairAt(39, 100), null);
  assert.equal(near.pairAt(-1, -1), null);
});

test("zoom restores a viewport", () => {
  const near = new Viewport(101, 103, AREA, [31, 37, 5]);
  const again = new Viewport(101, 103, AREA, near.zoom);
  assert.deepEqual([again.row, again.column, again.cellWidth], [near.row, near.column, near.cellWidth]);
});

test("a matrix without rows or columns has no pairs", () => {
  const none = new Viewport(0, 0, AREA, null);
  assert.equal(none.pairAt(100, 100), null);
  assert.equal(none.zoom, null);
});
