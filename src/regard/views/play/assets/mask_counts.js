// How many pairs a mask allows, exactly, without visiting every pair: each query's keys fall into runs in which only
// patterns of the key alone still vary, and those are counted once for all queries.

import { CombinedMask, ConstantMask, NotMask } from "./mask_nodes.js";
import { plannedPairs } from "./mask_plan.js";
import { MaskProblem } from "./mask_problem.js";
import { broadcastShapes } from "./mask_tables.js";
import { tupleText } from "./python_text.js";

/** Queries and keys; the last query is at the last key. */
export const extentOf = (queries, keys = queries) => ({ queries, keys });

/** A mask as a function of the truth of its patterns, and those patterns, each once. */
function compiled(mask) {
  const places = new Map();
  const patterns = [];
  const visit = (node) => {
    if (node instanceof ConstantMask) return () => node.value;
    if (node instanceof NotMask) {
      const part = visit(node.part);
      return (truths) => !part(truths);
    }
    if (node instanceof CombinedMask) {
      const parts = node.parts.map(visit);
      return node.sign === "&"
        ? (truths) => parts.every((part) => part(truths))
        : (truths) => parts.some((part) => part(truths));
    }
    if (!places.has(node.key)) {
      places.set(node.key, patterns.length);
      patterns.push(node);
    }
    const at = places.get(node.key);
    return (truths) => truths[at];
  };
  return { holds: visit(mask), patterns };
}

/** The keys that one query may see, as truth values; the mask has no leading axes. */
export function maskRows(mask, extent) {
  mask.check(extent);
  const { queries, keys } = extent;
  const { holds, patterns } = compiled(mask);
  return Array.from({ length: queries }, (_, i) => {
    const query = i + keys - queries;
    const columns = patterns.map((pattern) => patternRow(pattern, query, extent));
    return Array.from({ length: keys }, (__, j) => holds(columns.map((column) => column[j])));
  });
}

function patternRow(pattern, query, extent) {
  const row = new Array(extent.keys).fill(false);
  if (pattern.axis === "pair") for (const [from, to] of pattern.runs(query, extent)) row.fill(true, from, to);
  else if (pattern.axis === "query") row.fill(Boolean(pattern.holds(query, extent)));
  else for (let j = 0; j < extent.keys; j++) row[j] = Boolean(pattern.holds(j, extent));
  return row;
}

/** Every index of the leading axes. */
export function leadIndices(lead) {
  return lead.reduce(
    (found, size) => found.flatMap((index) => Array.from({ length: size }, (_, i) => [...index, i])),
    [[]],
  );
}

/** The pairs that a mask allows, summed over its leading axes. */
export function allowedPairs(mask, extent) {
  mask.check(extent);
  const counted = new Map();
  let sum = 0;
  for (const index of leadIndices(mask.lead)) {
    const one = mask.select(index);
    if (!counted.has(one.key)) counted.set(one.key, countPairs(one, extent));
    sum += counted.get(one.key);
  }
  return sum;
}

function countPairs(mask, extent) {
  const { holds, patterns } = compiled(mask);
  const places = (axis) => patterns.flatMap((pattern, at) => (pattern.axis === axis ? [at] : []));
  const [pairs, ofKey, ofQuery] = ["pair", "key", "query"].map(places);
  const sums = new KeySums(holds, patterns, ofKey, extent);
  const truths = new Array(patterns.length).fill(false);
  let sum = 0;
  for (let query = extent.keys - extent.queries; query < extent.keys; query++) {
    for (const at of ofQuery) truths[at] = Boolean(patterns[at].holds(query, extent));
    const runs = pairs.map((at) => patterns[at].runs(query, extent));
    sum += countRow(sums, truths, pairs, runs, extent.keys);
  }
  return sum;
}

/** The pairs of one query: from each border of a run to the next, only the key matters. */
function countRow(sums, truths, pairs, runs, keys) {
  const next = runs.map(() => 0);
  let sum = 0;
  for (let from = 0; from < keys; ) {
    let to = keys;
    for (let which = 0; which < pairs.length; which++) {
      const own = runs[which];
      while (next[which] < own.length && own[next[which]][1] <= from) next[which] += 1;
      const run = own[next[which]];
      const inside = run !== undefined && run[0] <= from;
      truths[pairs[which]] = inside;
      if (run !== undefined) to = Math.min(to, inside ? run[1] : run[0]);
    }
    sum += sums.between(truths, from, to);
    from = to;
  }
  return sum;
}

/** For each truth of the other patterns, how many of the first keys are allowed. */
class KeySums {
  constructor(holds, patterns, ofKey, extent) {
    this.holds = holds;
    this.patterns = patterns;
    this.ofKey = ofKey;
    this.others = patterns.flatMap((pattern, at) => (pattern.axis === "key" ? [] : [at]));
    this.extent = extent;
    /** @type {any} a tree: one step down for each of the other patterns */
    this.found = [];
    this.columns = null;
  }

  /** The keys between two positions that are allowed. */
  between(truths, from, to) {
    if (!this.ofKey.length) return this.holds(truths) ? to - from : 0;
    let found = this.found;
    for (const at of this.others) found = found[truths[at] ? 1 : 0] ??= [];
    found.sums ??= this.summed(truths);
    return found.sums[to] - found.sums[from];
  }

  summed(truths) {
    const { keys } = this.extent;
    const { ofKey } = this;
    this.columns ??= ofKey.map((at) => this.column(this.patterns[at]));
    const sums = new Float64Array(keys + 1);
    for (let j = 0; j < keys; j++) {
      for (let which = 0; which < ofKey.length; which++) truths[ofKey[which]] = this.columns[which][j] === 1;
      sums[j + 1] = sums[j] + (this.holds(truths) ? 1 : 0);
    }
    return sums;
  }

  /** Whether a pattern of the key holds at each key. */
  column(pattern) {
    const column = new Uint8Array(this.extent.keys);
    for (let key = 0; key < column.length; key++) column[key] = pattern.holds(key, this.extent) ? 1 : 0;
    return column;
  }
}

// ---- costs -----------------------------------------------------------------------------------------

/** The model of `regard cost`: one layer and one text. */
export const COST_SIZES = { width: 512, heads: 8, bytes: 4 };
const SOFTMAX_OPERATIONS = 5;

/**
 * Operations and bytes at one length, as regard.cost() counts them: of the whole matrix ("dense"), of the pairs that
 * the mask allows ("allowed"), and of those that regard computes ("regard"; null for a mask with tables).
 * @param {any} mask
 * @param {number} length
 */
export function maskCost(mask, length) {
  const { width, heads, bytes } = COST_SIZES;
  const full = [1, heads];
  if (String(broadcastShapes(mask.lead, full)) !== String(full)) {
    throw new MaskProblem("A mask must broadcast to (batch, head) = {full}.", {
      got: "{lead}",
      advice: "Pass the batch= and heads= of the mask.",
      full: tupleText(full),
      lead: tupleText(mask.lead),
    });
  }
  const all = heads * length * length;
  const lead = mask.lead.reduce((one, other) => one * other, 1);
  const allowed = allowedPairs(mask, extentOf(length)) * (heads / lead);
  const projections = 4 * 2 * length * width * width;
  const kept = 5 * length * width * bytes; // queries, keys, values, the heads' output, the output
  const operations = (pairs) => projections + pairs * (4 * (width / heads) + 2 + SOFTMAX_OPERATIONS);
  const fused = (pairs) => ({ pairs, operations: operations(pairs), bytes: kept + heads * length * 4 });
  const computed = plannedPairs(mask, length);
  return {
    length,
    dense: { pairs: all, operations: operations(all), bytes: kept + all * bytes },
    allowed: fused(allowed),
    regard: computed === null ? null : fused(heads * computed),
  };
}
