// The arrays of a page: bytes as text, in planes where some of them are compressed.

import { bytesOf } from "./digits.js";
import { inflate } from "./inflate.js";

/**
 * Arrays by their number. Compressed ones are asynchronous, so they are decoded when the page opens.
 * The others, the large ones among them, are decoded on first use.
 */
export class Arrays {
  constructor({ arrays, digits }, elements) {
    this.described = arrays;
    this.digits = digits;
    this.elements = elements;
    this.found = new Array(arrays.length);
  }

  async open() {
    await Promise.all(
      this.described.map(async ({ type, planes }, at) => {
        if (planes.some(([, deflated]) => deflated)) this.found[at] = joined(type, await Promise.all(this.planes(at)));
      }),
    );
  }

  at(place) {
    this.found[place] ??= joined(this.described[place].type, this.planes(place));
    return this.found[place];
  }

  /** The bytes of each plane, or the promise of them. */
  planes(place) {
    const bytes = bytesOf(this.elements[place].textContent, this.digits);
    let end = 0;
    return this.described[place].planes.map(([length, deflated]) => {
      end += length;
      const part = bytes.subarray(end - length, end);
      return deflated ? inflate(part) : part;
    });
  }
}

const TYPED = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  int24: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
};

function joined(type, planes) {
  return type === "int24" ? joinThree(planes) : new TYPED[type](interleave(planes).buffer);
}

// The numbers of a page are little-endian, and so is every machine that runs a browser today.
function interleave(planes) {
  const [first] = planes;
  if (planes.length === 1) return first.slice();
  const step = planes.length;
  const bytes = new Uint8Array(first.length * step);
  planes.forEach((plane, start) => {
    for (let i = 0, at = start; i < plane.length; i++, at += step) bytes[at] = plane[i];
  });
  return bytes;
}

function joinThree([low, middle, high]) {
  const out = new Int32Array(low.length);
  for (let i = 0; i < out.length; i++) out[i] = ((high[i] << 24) | (middle[i] << 16) | (low[i] << 8)) >> 8;
  return out;
}
