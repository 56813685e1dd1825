import assert from "node:assert/strict";
import { test } from "node:test";
import {
  channelsIn,
  contrastOf,
  headColour,
  headDash,
  PALETTES,
  rampOf,
  readableOn,
  shadeOf,
  signedRamp,
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

const linear = (channel) => (channel / 255) ** 2.2;

/** How light a colour is, 0 … 1. */
const lightness = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);

/** A colour as people without red or without green cones see it (Viénot, Brettel & Mollon, 1999). */
const DICHROMATS = [
  [
    [0.11238, 0.88762, 0],
    [0.11238, 0.88762, 0],
    [0.00401, -0.00401, 1],
  ],
  [
    [0.29275, 0.70725, 0],
    [0.29275, 0.70725, 0],
    [-0.02234, 0.02234, 1],
  ],
];
const seenBy = (matrix, colour) =>
  matrix.map((row) => row.reduce((sum, part, at) => sum + part * linear(colour[at]), 0));

const UNCHANGED = [
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
];
const product = (matrix, vector) => matrix.map((row) => row.reduce((sum, part, at) => sum + part * vector[at], 0));

/** A colour in Oklab (Ottosson, 2020), where distances are about as large as they look: black and white are 1 apart. */
const perceived = (colour) =>
  product(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    product(
      [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
      ],
      colour,
    ).map(Math.cbrt),
  );
const distance = (one, other) => Math.hypot(...one.map((part, at) => part - other[at]));

test("signed colours: lightness says how far from 0, hue on which side, also to the colour-blind", () => {
  for (const dark of [false, true]) {
    const ramp = signedRamp(dark);
    const colours = Array.from({ length: 256 }, (_, at) => [...ramp.subarray(3 * at, 3 * at + 3)]);
    const way = dark ? 1 : -1;
    for (const side of [colours.slice(0, 128).reverse(), colours.slice(128)]) {
      const steps = side
        .map(lightness)
        .slice(1)
        .map((light, at) => way * (light - lightness(side[at])));
      assert.ok(
        steps.every((step) => step > -2e-3),
        `${dark} ${Math.min(...steps)}`,
      );
    }
    for (const matrix of DICHROMATS) {
      for (const far of [30, 60, 90]) {
        const [below, above] = [colours[127 - far], colours[128 + far]].map((colour) => seenBy(matrix, colour));
        // Blue against yellow is what both see: one side has more blue than light, the other less.
        assert.ok(above[2] - above[0] > 0.02 && below[2] - below[0] < -0.02, `${dark} ${far}`);
      }
    }
  }
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

test("the colours of eight heads are far apart in every eye", () => {
  for (const dark of [false, true]) {
    const colours = Array.from({ length: 8 }, (_, head) => channelsIn(headColour(head, dark)));
    for (const matrix of [...DICHROMATS, UNCHANGED]) {
      const seen = colours.map((colour) => perceived(seenBy(matrix, colour)));
      for (let one = 0; one < 8; one += 1)
        for (let other = 0; other < one; other += 1)
          assert.ok(distance(seen[one], seen[other]) > 0.1, `${dark} ${one} ${other}`);
    }
  }
});

test("contrast is WCAG's", () => {
  assert.equal(Math.round(contrastOf([0, 0, 0], [255, 255, 255])), 21);
  assert.equal(contrastOf([9, 9, 9], [9, 9, 9]), 1);
  assert.ok(Math.abs(contrastOf([119, 119, 119], [255, 255, 255]) - 4.48) < 0.01);
});
