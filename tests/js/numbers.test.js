import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cellText,
  numberText,
  quantityText,
  shareText,
  valueText,
  weightText,
} from "../../src/regard/views/page/assets/numbers.js";

test("weights have four places, small ones an exponent", () => {
  assert.deepEqual([1, 0.12345, 0.001, 0.00012, 0, NaN].map(weightText), [
    "1.0000",
    "0.1235",
    "0.0010",
    "1.20e−4",
    "0",
    "0",
  ]);
});

test("weights in cells have at most three characters", () => {
  assert.deepEqual([1, 0.995, 0.994, 0.12, 0.005, 0.0049, 0].map(cellText), [
    "1.0",
    "1.0",
    ".99",
    ".12",
    ".01",
    "",
    "",
  ]);
});

test("numbers have a real minus sign, infinities and missing values a sign of their own", () => {
  assert.deepEqual(
    [-12.3456, 0, 1234567, -0.0001, Infinity, -Infinity, NaN].map((value) => numberText(value)),
    ["−12.346", "0.000", "1.23e+6", "−1.00e−4", "∞", "−∞", "–"],
  );
  assert.equal(numberText(0.00004, 4), "4.00e−5");
  assert.equal(numberText(0.00006, 4), "0.0001");
});

test("shares are per cent", () => {
  assert.deepEqual([0.634, 0.0995, 0.004, 0.0002, 0, 1].map(shareText), ["63%", "10%", "0.4%", "<0.1%", "0%", "100%"]);
});

test("numbers of any size have three digits", () => {
  assert.deepEqual([0, 0.3, -0.01234, 1.2e-5, -46.218, 999.6, 12345, -3e7, NaN].map(valueText), [
    "0",
    "0.300",
    "−0.0123",
    "1.20e−5",
    "−46.2",
    "1000",
    "12345",
    "−3.00e7",
    "–",
  ]);
  assert.deepEqual([quantityText(0.5, "weight"), quantityText(0.5, "gradient")], ["0.5000", "0.500"]);
});
