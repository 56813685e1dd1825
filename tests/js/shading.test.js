import assert from "node:assert/strict";
import { test } from "node:test";
import { rampOf, signedRamp } from "../../src/regard/views/page/assets/colours.js";
import { comparedSize, isSigned, nextQuantity } from "../../src/regard/views/page/assets/quantities.js";
import { Shading } from "../../src/regard/views/page/assets/shading.js";
import { shareOfTone } from "../../src/regard/views/page/assets/thumbnails.js";

test("weight 0 is transparent, all else is opaque", () => {
  const pixels = new Uint8ClampedArray(12).fill(7);
  const ramp = rampOf("blue", false);
  new Shading({ ramp, scale: "linear" }).paint(pixels, [0, 1, 0.5]);
  assert.deepEqual([pixels[3], pixels[7], pixels[11]], [0, 255, 255]);
  assert.deepEqual([...pixels.subarray(4, 7)], [...ramp.subarray(765)]);
});

test("signed numbers lie around the middle, as far as they are large; only masked pairs are transparent", () => {
  for (const scale of ["linear", "log"]) {
    const shading = new Shading({ ramp: signedRamp(false), scale, signed: true, greatest: 4, what: "gradient" });
    assert.deepEqual(
      [-4, -9, 0, 4, 9].map((value) => shading.place(value)),
      [0, 0, 0.5, 1, 1],
    );
    assert.equal(shading.place(Number.NaN), -1);
    for (const value of [0.001, 0.1, 1, 3])
      assert.ok(Math.abs(shading.place(value) + shading.place(-value) - 1) < 1e-12);
  }
  const linear = new Shading({ ramp: signedRamp(false), scale: "linear", signed: true, greatest: 4, what: "product" });
  assert.equal(linear.place(-2), 0.25);
  const pixels = new Uint8ClampedArray(8);
  linear.paint(pixels, [0, Number.NaN]);
  assert.deepEqual([pixels[3], pixels[7]], [255, 0]);
});

test("sizes begin at the faint end, and 0 is a size", () => {
  const shading = new Shading({ ramp: rampOf("blue", true), scale: "linear", greatest: 8, what: "contribution" });
  assert.deepEqual(
    [0, 4, 8, 10].map((value) => shading.place(value)),
    [0, 0.5, 1, 1],
  );
});

test("the bar says the numbers at its ends, and where there are greater ones", () => {
  const texts = (how) => new Shading({ ramp: signedRamp(true), scale: "linear", ...how }).ticks.map(([, text]) => text);
  assert.deepEqual(texts({ signed: true, greatest: 0.5, what: "gradient" }), ["−0.500", "0", "0.500"]);
  assert.deepEqual(texts({ signed: true, greatest: 0.5, what: "gradient", beyond: true }), [
    "≤ −0.500",
    "0",
    "≥ 0.500",
  ]);
  assert.deepEqual(texts({ greatest: 3, what: "contribution", scale: "log" }), ["0.00300", "0.0949", "3.00"]);
  assert.deepEqual(texts({}), ["0", "0.25", "0.5", "0.75", "1"]);
});

test("a head whose numbers are all 0 has colours too", () => {
  assert.equal(
    new Shading({ ramp: signedRamp(true), scale: "log", signed: true, greatest: 0, what: "product" }).place(0),
    0.5,
  );
});

test("contributions have a sign where they have a direction", () => {
  const signed = (what, directed) => isSigned({ directed }, what);
  assert.deepEqual(
    ["weight", "gradient", "product", "contribution"].map((what) => signed(what, false)),
    [false, true, true, false],
  );
  assert.ok(signed("contribution", true));
});

test("where all heads are compared, one in ten goes beyond the strongest colour", () => {
  const greatest = Float32Array.from({ length: 20 }, (_, head) => (head === 19 ? 1000 : head + 1));
  const recording = { calls: [{ quantities: { gradient: { greatest } } }] };
  assert.equal(comparedSize(recording, "gradient"), 18);
  assert.equal(comparedSize({ calls: [{ quantities: { gradient: { greatest: [0, 0, 5] } } }] }, "gradient"), 5);
  assert.equal(comparedSize({ calls: [] }, "weight"), 1);
});

test("quantities follow each other in a circle", () => {
  const recording = { what: ["weight", "gradient", "product"] };
  assert.deepEqual(
    recording.what.map((now) => nextQuantity(recording, now)),
    ["gradient", "product", "weight"],
  );
});

test("tones of thumbnails stand for shares of the greatest, in steps of a tenth", () => {
  assert.deepEqual([127, -127, 0].map(shareOfTone), [1, -1, 0]);
  assert.ok(Number.isNaN(shareOfTone(-128)));
  assert.ok(Math.abs(shareOfTone(100) / shareOfTone(99) - 1) < 0.1);
});
