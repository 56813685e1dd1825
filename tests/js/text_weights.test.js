import assert from "node:assert/strict";
import { test } from "node:test";
import { groupTokens } from "../../src/regard/views/page/assets/lens.js";
import {
  greatestPlaces,
  greatestSizeOf,
  meanOf,
  restingKeys,
  strongestColour,
  sumOverUnits,
  textDirection,
} from "../../src/regard/views/page/assets/text_weights.js";

test("a text runs as most of its words do", () => {
  assert.equal(textDirection(["[CLS]", "שלום", "עולם", "ok"], [true, false, false, false]), "rtl");
  assert.equal(textDirection(["NATO", "שלום", "is", "here"], [false, false, false, false]), "ltr");
  assert.equal(textDirection(["1", "."], [false, false]), "ltr");
  assert.equal(textDirection([], []), "ltr");
});

test("the mean of heads", () => {
  assert.deepEqual(
    Array.from(
      meanOf([
        [1, 0, 0],
        [0, 0.5, 0.5],
      ]),
    ),
    [0.5, 0.25, 0.25],
  );
  assert.equal(meanOf([]).length, 0);
});

test("special tokens rest, and the first key of a head that rests on it", () => {
  assert.deepEqual(restingKeys([false, true, false], 0.1), [false, true, false]);
  assert.deepEqual(restingKeys([false, true, false], 0.6), [true, true, false]);
});

test("even weights are pale, a strong one is not", () => {
  const even = new Array(100).fill(0.01);
  assert.ok(Math.abs(strongestColour(even) - 0.05) < 1e-9);
  assert.equal(strongestColour([0.7, 0.2, ...new Array(98).fill(0.001)]), 0.7);
  assert.equal(strongestColour([0.5, 0.5]), 1);
  assert.equal(strongestColour([0, 0]), 1);
});

test("the greatest weights come first, the first of equals before others", () => {
  assert.deepEqual(greatestPlaces([0.1, 0.4, 0, 0.3, 0.4], 3), [1, 4, 3]);
  assert.deepEqual(
    greatestPlaces([0.1, 0.4, 0, 0.3], 3, (place) => place !== 1),
    [3, 0],
  );
  assert.deepEqual(greatestPlaces([0, 0], 3), []);
});

test("of signed numbers those furthest from 0 come first", () => {
  assert.deepEqual(greatestPlaces([0.1, -0.4, 0, 0.3], 3), [1, 3, 0]);
  assert.equal(greatestSizeOf([0.1, -0.4, 0.3]), Math.abs(-0.4));
  assert.equal(greatestSizeOf([]), 0);
});

test("relevance of word pieces is added", () => {
  const units = groupTokens([-1, 0, 0, 1], [true, false, false, false], true);
  assert.deepEqual([...sumOverUnits([9, 1, 2, 4], units)], [3, 4]);
});
