// The recording inside a page: a header in JSON and arrays in digits, decoded once when the page opens.

import { Call } from "./call.js";
import { bytesOf } from "./digits.js";

const PAGE_FORMAT = "regard page 2";

export async function openRecording(root) {
  const header = JSON.parse(root.querySelector('script[data-regard="header"]').textContent);
  if (header.format !== PAGE_FORMAT) throw new Error(`This page holds ${header.format}, not ${PAGE_FORMAT}.`);
  const elements = root.querySelectorAll('script[data-regard="array"]');
  const arrays = await Promise.all(header.arrays.map((described, at) => decodeArray(described, bytesOf(elements[at].textContent, header.digits))));
  const texts = header.texts.map(({ tokens, special, words }) => {
    const flags = new Array(tokens.length).fill(false);
    for (const at of special) flags[at] = true;
    return { tokens, special: flags, words };
  });
  const masks = header.masks.map(({ first, bounds }) => ({ first: arrays[first], bounds: arrays[bounds] }));
  // sentenceB: where the second of two sentences begins, or null.
  const { model, title, language, start, sentenceB, statistics } = header;
  const data = { arrays, texts, masks, statistics, sentenceB };
  const calls = header.calls.map((described, index) => new Call(index, described, data));
  return { model, title, language, start, sentenceB, statistics, calls };
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

async function decodeArray({ type, planes }, bytes) {
  const parts = [];
  let at = 0;
  for (const [length, deflated] of planes) {
    const part = bytes.subarray(at, at + length);
    parts.push(deflated ? inflate(part) : part);
    at += length;
  }
  const found = await Promise.all(parts);
  return type === "int24" ? joinThree(found) : new TYPED[type](interleave(found).buffer);
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
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
