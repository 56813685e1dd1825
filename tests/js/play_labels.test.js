import assert from "node:assert/strict";
import { test } from "node:test";
import { labelPlaces } from "../../src/regard/views/play/assets/plane_labels.js";

const mark = (x, y, options = {}) => ({ x, y, width: 60, height: 20, below: false, ...options });

test("a label is above or below its point where nothing is in the way", () => {
  const [above, below] = labelPlaces([mark(0, 0), mark(200, 0, { below: true })], 330);
  assert.equal(above.x, 0);
  assert.ok(above.y < 0);
  assert.ok(below.y > 0);
});

test("labels of neighbouring points lie neither on each other nor on a point", () => {
  const marks = [mark(100, -50), mark(100, -50), mark(80, -60), mark(50, -100), mark(78, -69, { below: true })];
  const places = labelPlaces(marks, 330).map(({ x, y }, at) => [marks[at].x + x, marks[at].y + y]);
  places.forEach(([x, y], at) => {
    for (const point of marks) {
      assert.ok(Math.abs(x - point.x) >= 30 || Math.abs(y - point.y) >= 10, JSON.stringify([x, y, point]));
    }
    for (const [otherX, otherY] of places.slice(0, at)) {
      assert.ok(Math.abs(x - otherX) >= 60 || Math.abs(y - otherY) >= 20, JSON.stringify(places));
    }
  });
});

test("a label stays inside the plane", () => {
  for (const [x, y] of [
    [300, -320],
    [-320, 300],
    [320, 320],
  ]) {
    const [place] = labelPlaces([mark(x, y)], 330);
    assert.ok(Math.abs(x + place.x) + 30 <= 330);
    assert.ok(Math.abs(y + place.y) + 10 <= 330);
  }
});
