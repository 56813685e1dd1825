import assert from "node:assert/strict";
import { test } from "node:test";
import {
  headColour,
  PALETTES,
  paintWeights,
  rampOf,
  readableOn,
  shadeOf,
  toneOf,
} from "../../src/regard/views/page/assets/colours.js";

test("a tone grows with the weight, between 0 and 1", () => {
  for (const scale of ["linear", "log"]) {
    const tones = [0, 1e-6, 1e-4, 1e-3, 0.1, 0.5, 1, 1.01].map((weight) => toneOf(weight, scale));
    assert.deepEqual(
      tones,
      [...tones].sort((a, b) => a - b),
    );
    assert.deepEqual([tones[0], tones.at(-1)], [0, 1]);
  }
  assert.ok(Math.abs(toneOf(0.01, "log") - 0.5) < 1e-12);
  assert.equal(toneOf(0.01, "log", 2), 0);
  assert.equal(toneOf(NaN, "linear"), 0);
});

test("ramps begin and end with their anchors, and text on them can be read", () => {
  for (const palette of PALETTES) {
    for (const dark of [false, true]) {
      const ramp = rampOf(palette, dark);
      assert.equal(ramp.length, 768);
      assert.notEqual(shadeOf(ramp, 0), shadeOf(ramp, 1));
      assert.deepEqual(
        [readableOn(ramp, 0), readableOn(ramp, 1)],
        dark ? ["#ffffff", "#14161a"] : ["#14161a", "#ffffff"],
      );
    }
  }
  assert.equal(shadeOf(rampOf("blue", false), 0), "rgb(238,243,251)");
});

test("zero is transparent, all else is opaque", () => {
  const pixels = new Uint8ClampedArray(12).fill(7);
  const ramp = rampOf("blue", false);
  paintWeights(pixels, [0, 1, 0.5], ramp, "linear");
  assert.deepEqual([pixels[3], pixels[7], pixels[11]], [0, 255, 255]);
  assert.deepEqual([...pixels.subarray(4, 7)], [...ramp.subarray(765)]);
});

test("two dozen heads have two dozen colours", () => {
  for (const dark of [false, true]) {
    assert.equal(new Set(Array.from({ length: 24 }, (_, head) => headColour(head, dark))).size, 24);
  }
});
