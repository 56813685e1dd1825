// Attention in float64, step by step, as kernels/reference.py defines it. Matrices are lists of rows.

import { scaledDots } from "../../page/assets/data/scaled_dots.js";

/** A · B. */
export function product(a, b) {
  const columns = b.length ? b[0].length : 0;
  return a.map((row) => {
    const out = new Array(columns).fill(0);
    row.forEach((value, inner) => {
      for (let at = 0; at < columns; at++) out[at] += value * b[inner][at];
    });
    return out;
  });
}

/** q_i · k_j for all pairs. */
export function dotProducts(q, k) {
  const channels = q.length ? q[0].length : 0;
  const [left, right] = [Float64Array.from(q.flat()), Float64Array.from(k.flat())];
  return q.map((_, i) => {
    const row = new Float64Array(k.length);
    scaledDots(row, left, i, right, 0, k.length, channels, 1);
    return [...row];
  });
}

/**
 * The weights of one row of scores and the log of their denominator; a row that sees no key is all 0, and its lse −∞.
 * The greatest score is subtracted first, so that nothing overflows.
 */
export function softmaxRow(scores) {
  const greatest = Math.max(-Infinity, ...scores);
  if (greatest === -Infinity) return { weights: scores.map(() => 0), lse: -Infinity };
  const powers = scores.map((score) => Math.exp(score - greatest));
  const sum = powers.reduce((one, other) => one + other, 0);
  return { weights: powers.map((power) => power / sum), lse: greatest + Math.log(sum) };
}

/** ∂w_i/∂s_j = w_i (δ_ij − w_j). */
export function softmaxSlopes(weights) {
  return weights.map((one, i) => weights.map((other, j) => one * ((i === j ? 1 : 0) - other)));
}

/**
 * Attention of queries over keys and values: every step.
 * @param {number[][]} q
 * @param {number[][]} k
 * @param {number[][]} v
 * @param {{ scale?: number, bias?: number[][] | null, allowed?: boolean[][] | null }} options
 */
export function attentionSteps(q, k, v, { scale = null, bias = null, allowed = null } = {}) {
  const factor = scale ?? q[0].length ** -0.5;
  const dots = dotProducts(q, k);
  const scores = dots.map((row) => row.map((dot) => dot * factor));
  const biased = bias ? scores.map((row, i) => row.map((score, j) => score + bias[i][j])) : null;
  const open = biased ?? scores;
  const masked = allowed ? open.map((row, i) => row.map((score, j) => (allowed[i][j] ? score : -Infinity))) : null;
  const rows = (masked ?? open).map(softmaxRow);
  const weights = rows.map((row) => row.weights);
  return { dots, scores, biased, masked, lse: rows.map((row) => row.lse), weights, output: product(weights, v) };
}

/** The channels of one head. */
export function headOf(matrix, head, heads) {
  const channels = matrix.length ? matrix[0].length / heads : 0;
  return matrix.map((row) => row.slice(head * channels, (head + 1) * channels));
}

/**
 * Multi-head attention over words: from x and the four matrices to the output, every step.
 * `positions` is "none", "sinusoidal" (added to x), "rotary" (turns q and k) or "alibi" (added to the scores).
 * @param {number[][]} x
 * @param {Record<string, number[][]>} matrices w_q, w_k, w_v and w_o
 * @param {{ heads?: number, allowed?: boolean[][] | null, positions?: string }} options
 */
export function multiHeadSteps(x, matrices, { heads = 1, allowed = null, positions = "none" } = {}) {
  const width = x[0].length;
  const added = positions === "sinusoidal" ? sinusoids(x.length, width) : null;
  const placed = added ? x.map((row, i) => row.map((value, c) => value + added[i][c])) : null;
  const input = placed ?? x;
  const queries = product(input, matrices.w_q);
  const keys = product(input, matrices.w_k);
  const values = product(input, matrices.w_v);
  const slopes = positions === "alibi" ? alibiSlopes(heads) : null;
  const each = Array.from({ length: heads }, (_, head) => {
    const turn = positions === "rotary" ? rotated : (rows) => rows;
    const [q, k, v] = [
      turn(headOf(queries, head, heads)),
      turn(headOf(keys, head, heads)),
      headOf(values, head, heads),
    ];
    const bias = slopes ? alibiBias(slopes[head], x.length) : null;
    return { q, k, v, bias, ...attentionSteps(q, k, v, { allowed, bias }) };
  });
  const joined = x.map((_, i) => each.flatMap((head) => head.output[i]));
  return { x, added, placed, queries, keys, values, each, joined, output: product(joined, matrices.w_o) };
}

// ---- positions ---------------------------------------------------------------------------------

const POSITION_BASE = 10000;

/** The angle of a pair of channels at a position. */
function angleAt(position, pair, pairs) {
  return position * Math.exp(pair * (-Math.log(POSITION_BASE) / Math.max(1, pairs)));
}

/** sin and cos in turn: (length, width). */
export function sinusoids(length, width) {
  const pairs = Math.floor((width + 1) / 2);
  return Array.from({ length }, (_, position) =>
    Array.from({ length: width }, (__, channel) => {
      const angle = angleAt(position, channel >> 1, pairs);
      return channel % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );
}

/** Channels i and i + half are a pair, turned by an angle that grows with the position. */
export function rotated(rows) {
  const half = rows.length ? rows[0].length / 2 : 0;
  return rows.map((row, position) =>
    row.map((value, channel) => {
      const pair = channel % half;
      const angle = angleAt(position, pair, half);
      const other = channel < half ? -row[channel + half] : row[channel - half];
      return value * Math.cos(angle) + other * Math.sin(angle);
    }),
  );
}

/** One slope for every head, as in biases.alibi. */
export function alibiSlopes(heads) {
  const lower = 2 ** Math.floor(Math.log2(heads));
  const own = Array.from({ length: lower }, (_, i) => 2 ** ((-8 * (i + 1)) / lower));
  return own.concat(Array.from({ length: heads - lower }, (_, i) => 2 ** ((-4 * (2 * i + 1)) / lower)));
}

function alibiBias(slope, length) {
  return Array.from({ length }, (_, i) => Array.from({ length }, (__, j) => 0 - slope * Math.abs(i - j)));
}
