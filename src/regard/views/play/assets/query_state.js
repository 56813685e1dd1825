// One query: what can be moved, and what follows from it.

import { dotProducts, product, softmaxRow, softmaxSlopes } from "./attention_steps.js";

export const FEWEST_KEYS = 2;
export const MOST_KEYS = 6;

/** Where everything begins; "hand" are the vectors of 我 喜欢 AI that the lesson calculates by hand. */
export const PRESETS = {
  spread: {
    query: [0.5, 2.2],
    keys: [
      [2.6, 1],
      [-1.4, 1.6],
      [-1.2, -1.5],
    ],
  },
  hand: {
    query: [1, 0.5],
    keys: [
      [1, 0.5],
      [0.8, 0.6],
      [0.5, 1],
    ],
    words: ["我", "喜欢", "AI"],
  },
  alike: {
    query: [1.5, 1],
    keys: [
      [1.2, 1.6],
      [1.2, 1.6],
      [1.2, 1.6],
    ],
  },
};

/** A new state, from one of the presets. */
export function firstQuery(preset = "spread") {
  const { query, keys, words = [] } = PRESETS[preset];
  return {
    query: [...query],
    keys: keys.map((key) => [...key]),
    words, // the words that the keys are, if any
    values: null,
    temperature: 1,
    channels: 2,
    scaled: true,
  };
}

/** The state with another number of keys; new ones are spread around the plane. */
export function withKeys(state, count) {
  const added = (j) => [2 * Math.cos(2.4 * j), 2 * Math.sin(2.4 * j)].map((c) => Math.round(c * 20) / 20);
  const grown = (points) => Array.from({ length: count }, (_, j) => points[j] ?? added(j));
  return {
    keys: grown(state.keys),
    words: state.words.slice(0, count),
    values: state.values && grown(state.values),
  };
}

/**
 * Random numbers, about normal, that are the same every time: channel c of vector `which`. They are what the further
 * channels of a long vector hold.
 */
export function restChannel(which, channel) {
  let sum = 0;
  for (let part = 0; part < 12; part++) sum += hashed((which * 4096 + channel) * 12 + part);
  return sum - 6;
}

/** A number from 0 to 1 that looks random: 32 bits of the index, mixed. */
function hashed(index) {
  let bits = Math.imul(index + 1, 0x9e3779b9);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}

/** A vector of the plane with further channels. */
export function lengthened(point, which, channels) {
  return Array.from({ length: channels }, (_, c) => (c < 2 ? point[c] : restChannel(which, c)));
}

/** Products, scores, weights, output and gradient of the one query. */
export function queryResult({ query, keys, values, temperature, channels, scaled }) {
  const q = lengthened(query, 0, channels);
  const k = keys.map((key, j) => lengthened(key, j + 1, channels));
  const [dots] = dotProducts([q], k);
  const scale = 1 / (temperature * (scaled ? Math.sqrt(channels) : 1));
  const scores = dots.map((dot) => dot * scale);
  const { weights, lse } = softmaxRow(scores);
  const [output] = product([weights], values ?? keys);
  const slopes = softmaxSlopes(weights);
  // Σ w (1 − w) is 0 for a single weight of 1, and greatest, 1 − 1/n, for equal weights.
  const learnable = weights.reduce((sum, w) => sum + w * (1 - w), 0) / (1 - 1 / keys.length);
  const mean = scores.reduce((one, other) => one + other, 0) / scores.length;
  const spread = Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length);
  return { dots, scores, weights, lse, output, slopes, learnable, spread };
}
