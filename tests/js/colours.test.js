import assert from "node:assert/strict";
import { test } from "node:test";
import {
  channelsIn,
  contrastOf,
  headColour,
  headDash,
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
        dark ? ["#ffffff", "#000000"] : ["#000000", "#ffffff"],
      );
      for (let tone = 0; tone <= 1; tone += 1 / 64) {
        const text = readableOn(ramp, tone) === "#ffffff" ? [255, 255, 255] : [0, 0, 0];
        assert.ok(contrastOf(text, channelsIn(shadeOf(ramp, tone))) >= 4.5, `${palette} ${tone}`);
      }
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

test("the lines of 32 heads differ in colour or dash, and every colour is seen on its paper", () => {
  for (const dark of [false, true]) {
    const looks = Array.from({ length: 32 }, (_, head) => `${headColour(head, dark)} ${headDash(head)}`);
    assert.equal(new Set(looks).size, 32);
    const paper = dark ? [17, 20, 24] : [252, 252, 251];
    for (let head = 0; head < 8; head += 1)
      assert.ok(contrastOf(channelsIn(headColour(head, dark)), paper) >= 3, `head ${head}`);
  }
});

test("contrast is WCAG's", () => {
  assert.equal(Math.round(contrastOf([0, 0, 0], [255, 255, 255])), 21);
  assert.equal(contrastOf([9, 9, 9], [9, 9, 9]), 1);
  assert.ok(Math.abs(contrastOf([119, 119, 119], [255, 255, 255]) - 4.48) < 0.01);
});
