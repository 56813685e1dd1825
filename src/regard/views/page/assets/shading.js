// From numbers to colours: weights from 0 to 1, sizes from 0 to the greatest, or signed numbers around 0.

import { readableOn, shadeOf, toneOf } from "./colours.js";
import { valueText } from "./numbers.js";

/** Which number has which colour. A pair without a number (NaN) shows the paper, and so does a weight of 0 on pages. */
export class Shading {
  /**
   * @param {object} how
   * @param {Uint8ClampedArray} how.ramp from faint to strong, or from the least to the greatest of signed numbers
   * @param {string} how.scale "linear" or "log"
   * @param {boolean} [how.signed] whether numbers lie around 0
   * @param {number} [how.greatest] the size that has the strongest colour
   * @param {string} [how.what] which quantity it is
   * @param {string} [how.named] the key of its name
   * @param {boolean} [how.beyond] whether some numbers are greater than the largest one that the scale can show
   * @param {boolean} [how.zeros] whether a weight of 0 has a colour: where masked pairs are NaN
   */
  constructor({
    ramp,
    scale,
    signed = false,
    greatest = 1,
    what = "weight",
    named = "what.weight",
    beyond = false,
    zeros = false,
  }) {
    this.ramp = ramp;
    this.scale = scale;
    this.signed = signed;
    this.greatest = greatest > 0 ? greatest : 1;
    this.what = what;
    this.named = named;
    this.beyond = beyond;
    this.zeros = zeros;
  }

  /** Powers of ten on a logarithmic scale: small weights matter in long texts, small gradients are noise. */
  get decades() {
    return this.what === "weight" ? 4 : 3;
  }

  /** How strong a number is, 0 … 1. */
  strength(value, decades = this.decades) {
    return toneOf(Math.abs(value) / this.greatest, this.scale, decades);
  }

  /** The place of a number on the ramp, 0 … 1; −1 where there is nothing to show. */
  place(value, decades = this.decades) {
    if (Number.isNaN(value) || (this.what === "weight" && !this.zeros && !(value > 0))) return -1;
    const strength = this.strength(value, decades);
    return this.signed ? (value < 0 ? 0.5 - strength / 2 : 0.5 + strength / 2) : strength;
  }

  /** The colour at a place, and the colour of text on it. */
  colour(place) {
    return shadeOf(this.ramp, place);
  }

  ink(place) {
    return readableOn(this.ramp, place);
  }

  /** The marks of the colour bar: [place, text]. */
  get ticks() {
    const { greatest, what, signed, scale, beyond } = this;
    if (what === "weight") return WEIGHT_TICKS[scale];
    const size = (share) => valueText(share * greatest);
    const least = 10 ** -this.decades;
    const low = scale === "log" ? `±${size(least)}` : "0";
    if (!signed)
      return [
        [0, scale === "log" ? size(least) : "0"],
        [0.5, size(scale === "log" ? least ** 0.5 : 0.5)],
        [1, `${beyond ? "≥ " : ""}${size(1)}`],
      ];
    return [
      [0, `${beyond ? "≤ " : ""}${size(-1)}`],
      [0.5, low],
      [1, `${beyond ? "≥ " : ""}${size(1)}`],
    ];
  }

  /**
   * Numbers as pixels; where there is nothing to show they stay transparent.
   * @param {Uint8ClampedArray} pixels
   * @param {ArrayLike<number>} values
   */
  paint(pixels, values) {
    const { ramp } = this;
    for (let i = 0; i < values.length; i += 1) {
      const at = 4 * i;
      const place = this.place(values[i]);
      if (place < 0) {
        pixels[at + 3] = 0;
        continue;
      }
      const from = 3 * Math.round(255 * place);
      pixels[at] = ramp[from];
      pixels[at + 1] = ramp[from + 1];
      pixels[at + 2] = ramp[from + 2];
      pixels[at + 3] = 255;
    }
  }
}

const WEIGHT_TICKS = {
  linear: [
    [0, "0"],
    [0.25, "0.25"],
    [0.5, "0.5"],
    [0.75, "0.75"],
    [1, "1"],
  ],
  log: [
    [0, "10⁻⁴"],
    [0.25, "10⁻³"],
    [0.5, "0.01"],
    [0.75, "0.1"],
    [1, "1"],
  ],
};
