import assert from "node:assert/strict";
import { test } from "node:test";
import { otherTokens, patchAt, patchValues } from "../../src/regard/views/page/assets/picture_patches.js";

test("patches have the numbers of their tokens", () => {
  assert.deepEqual(patchValues([0.5, 0.25, 0.125], [0, -1, 1, 2], [1, 2, 3]), [NaN, 0.25, 0.125]);
});

test("a point is in the patch under it", () => {
  const size = { width: 300, height: 100 };
  assert.equal(patchAt(0, 0, size, [2, 3]), 0);
  assert.equal(patchAt(299, 99, size, [2, 3]), 5);
  assert.equal(patchAt(150, 60, size, [2, 3]), 4);
  assert.equal(patchAt(300, 60, size, [2, 3]), -1);
  assert.equal(patchAt(-1, 60, size, [2, 3]), -1);
});

test("tokens that are not patches", () => {
  assert.deepEqual(otherTokens(6, [1, 2, 3, 4]), [0, 5]);
});
