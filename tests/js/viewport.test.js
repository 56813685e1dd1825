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

test("a square matrix may fill an area that is not square", () => {
  const all = new Viewport(1009, 1009, { ...AREA, fills: true }, null);
  assert.ok(Math.abs(all.width - 600) < 1e-6);
  assert.ok(Math.abs(all.height - 400) < 1e-6);
  assert.equal(all.zoom, null);
  const tall = new Viewport(1009, 1009, { left: 40, top: 30, width: 200, height: 500, fills: true }, null);
  assert.ok(Math.abs(tall.width - 200) < 1e-6 && Math.abs(tall.height - 500) < 1e-6);
  const flat = new Viewport(1009, 1009, { left: 0, top: 0, width: 2000, height: 200, fills: true }, null);
  assert.ok(Math.abs(flat.cellWidth - 3 * flat.cellHeight) < 1e-9);
});

test("cells that were stretched become square when they are magnified, and the point under the pointer stays", () => {
  let view = new Viewport(1009, 1009, { ...AREA, fills: true }, null);
  for (let step = 0; step < 40; step += 1) {
    const [row, column] = view.cellAt(333, 222);
    const next = view.zoomed(1.3, 333, 222);
    const [againRow, againColumn] = next.cellAt(333, 222);
    assert.ok(Math.abs(againRow - row) < 1e-6 && Math.abs(againColumn - column) < 1e-6);
    assert.ok(next.cellWidth >= view.cellWidth && next.cellHeight >= view.cellHeight);
    view = next;
  }
  assert.ok(Math.abs(view.cellWidth - view.cellHeight) < 1e-9);
  assert.ok(Math.abs(view.cellWidth - 72) < 1e-9);
});
