// How many pairs regard computes under a mask, as regard.plan() counts them: tiles of 64 × 64, neighbouring row tiles
// joined, and scattered positions gathered first. Only for masks that fit any length, which have no tables.

import {
  CombinedMask,
  ConstantMask,
  combineMasks,
  EveryMask,
  invertMask,
  NotMask,
  SpanMask,
  WindowMask,
} from "./mask_nodes.js";

// The numbers of kernels/mask_parts.py, kernels/layout.py and masks/tiles.py.
const TILE = 64;
const COARSE = 32;
const MAX_TILE_ROWS = 512;
const MAX_TILE_PAIRS = 1 << 21;
const MAX_WASTE = 1.12;
const MAX_SCATTERED = 3;
const SCATTERED_SHARE = 0.25;

const NONE = 0;
const SOME = 1;
const ALL = 2;

/**
 * The pairs that regard computes for as many queries as keys, more than 256; null for a mask with tables.
 * @param {any} mask
 * @param {number} length
 * @returns {number | null}
 */
export function plannedPairs(mask, length) {
  if (mask.lead.length || ![...mask.patterns()].every(planned)) return null;
  const everywhere = Int32Array.from({ length }, (_, at) => at);
  const verdict = verdictOf(mask, everywhere, everywhere)(0, length, 0, length);
  if (verdict === NONE) return 0;
  if (verdict === ALL) return length * length;
  if (mask.text() === "causal()") return (length * (length + 1)) / 2;
  let pairs = 0;
  for (const { queries, keys, rest } of maskParts(mask, everywhere)) pairs += rowTilePairs(rest, queries, keys);
  return pairs;
}

const planned = (pattern) => [ConstantMask, WindowMask, SpanMask, EveryMask].some((known) => pattern instanceof known);

// ---- verdicts on tiles -----------------------------------------------------------------------------

/**
 * Whether a mask allows all, none or some pairs of a tile: a function of the first and last of its queries and keys.
 * @returns {(top: number, bottom: number, left: number, right: number) => number}
 */
function verdictOf(mask, queries, keys) {
  if (mask instanceof ConstantMask) return () => (mask.value ? ALL : NONE);
  if (mask instanceof NotMask) {
    const part = verdictOf(mask.part, queries, keys);
    return (...tile) => ALL - part(...tile);
  }
  if (mask instanceof CombinedMask) {
    const own = mask.parts.map((part) => verdictOf(part, queries, keys));
    const [best, chosen] = mask.sign === "&" ? [NONE, Math.min] : [ALL, Math.max];
    return (top, bottom, left, right) => {
      let found = ALL - best;
      for (const part of own) {
        found = chosen(found, part(top, bottom, left, right));
        if (found === best) break;
      }
      return found;
    };
  }
  if (mask instanceof WindowMask) return windowVerdict(mask, queries, keys);
  return axisVerdict(mask, mask.axis === "query" ? queries : keys);
}

function windowVerdict({ before, after }, queries, keys) {
  const [least, greatest] = [before === null ? -Infinity : -before, after ?? Infinity];
  return (top, bottom, left, right) => {
    const nearest = keys[left] - queries[bottom - 1];
    const furthest = keys[right - 1] - queries[top];
    if (furthest < least || nearest > greatest) return NONE;
    return nearest >= least && furthest <= greatest ? ALL : SOME;
  };
}

function axisVerdict(pattern, positions) {
  const sums = new Int32Array(positions.length + 1);
  for (let at = 0; at < positions.length; at++) sums[at + 1] = sums[at] + (pattern.holds(positions[at]) ? 1 : 0);
  const counted = (from, to) => {
    const count = sums[to] - sums[from];
    return count === 0 ? NONE : count === to - from ? ALL : SOME;
  };
  return pattern.axis === "query"
    ? (top, bottom) => counted(top, bottom)
    : (_top, _bottom, left, right) => counted(left, right);
}

// ---- parts: scattered positions are gathered -------------------------------------------------------

/** Classes of queries × classes of keys, with what remains of the mask. */
function* maskParts(mask, everywhere) {
  const byKey = positionClasses(mask, everywhere, "key");
  for (const { positions: queries, known } of positionClasses(mask, everywhere, "query")) {
    const ofRow = substituted(mask, known);
    const together = new Map();
    for (const own of byKey) {
      const rest = substituted(ofRow, own.known);
      if (rest instanceof ConstantMask && !rest.value) continue;
      if (!together.has(rest.key)) together.set(rest.key, { rest, some: [] });
      together.get(rest.key).some.push(own.positions);
    }
    for (const { rest, some } of together.values()) {
      const keys = some.length === byKey.length ? everywhere : Int32Array.from(some.flatMap((one) => [...one])).sort();
      yield { queries, keys, rest };
    }
  }
}

/** Positions of one axis, grouped by the values of the scattered patterns there. */
function positionClasses(mask, positions, axis) {
  const scattered = new Map();
  for (const pattern of mask.patterns()) {
    if (pattern.axis === axis && !scattered.has(pattern.key) && isScattered(pattern, positions)) {
      scattered.set(pattern.key, pattern);
    }
  }
  if (!scattered.size || scattered.size > MAX_SCATTERED) return [{ positions, known: new Map() }];
  const groups = new Map();
  for (const position of positions) {
    const kind = [...scattered.values()].map((pattern) => (pattern.holds(position) ? "1" : "0")).join("");
    if (!groups.has(kind)) groups.set(kind, []);
    groups.get(kind).push(position);
  }
  return [...groups].map(([kind, some]) => ({
    positions: Int32Array.from(some),
    known: new Map([...scattered.keys()].map((key, at) => [key, kind[at] === "1"])),
  }));
}

/** Whether skipping empty tiles would not help, because most tiles are mixed. */
function isScattered(pattern, positions) {
  if (positions.length <= TILE) return false;
  const verdict = axisVerdict(pattern, positions);
  let mixed = 0;
  let tiles = 0;
  for (let at = 0; at < positions.length; at += TILE, tiles++) {
    const end = Math.min(at + TILE, positions.length);
    if (verdict(at, end, at, end) === SOME) mixed += 1;
  }
  return mixed / tiles > SCATTERED_SHARE;
}

function substituted(mask, known) {
  if (mask instanceof NotMask) return invertMask(substituted(mask.part, known));
  if (mask instanceof CombinedMask) {
    return combineMasks(
      mask.sign,
      mask.parts.map((part) => substituted(part, known)),
    );
  }
  return known.has(mask.key) ? new ConstantMask(known.get(mask.key)) : mask;
}

// ---- row tiles -------------------------------------------------------------------------------------

/** The pairs of all row tiles of a part, after neighbours were joined. */
function rowTilePairs(mask, queries, keys) {
  if (mask instanceof ConstantMask) return mask.value ? queries.length * keys.length : 0;
  let pairs = 0;
  let current = null;
  let needed = 0; // pairs that the joined tiles had before joining
  for (const tile of narrowRowTiles(mask, queries, keys)) {
    const joined = current && joinedTiles(current, tile);
    if (joined && pairsOf(joined) <= MAX_WASTE * (needed + pairsOf(tile))) {
      current = joined;
      needed += pairsOf(tile);
      continue;
    }
    if (current) pairs += pairsOf(current);
    current = tile;
    needed = pairsOf(tile);
  }
  return current ? pairs + pairsOf(current) : pairs;
}

const pairsOf = ({ start, stop, runs }) => (stop - start) * runs.reduce((sum, [from, to]) => sum + to - from, 0);

/** For every 64 queries the runs of keys that some of them may see. */
function* narrowRowTiles(mask, queries, keys) {
  const verdict = verdictOf(mask, queries, keys);
  const [height, width] = [queries.length, keys.length];
  for (let top = 0; top < height; top += TILE * COARSE) {
    const bottom = Math.min(top + TILE * COARSE, height);
    const blocks = [];
    for (let left = 0; left < width; left += TILE * COARSE) {
      const right = Math.min(left + TILE * COARSE, width);
      const found = verdict(top, bottom, left, right);
      if (found !== NONE) blocks.push({ left, right, all: found === ALL });
    }
    for (let start = top; start < bottom; start += TILE) {
      const stop = Math.min(start + TILE, bottom);
      const runs = keyRuns(blocks, (left, right) => verdict(start, stop, left, right));
      if (runs.length) yield { start, stop, runs };
    }
  }
}

/** The tiles of some blocks that are not empty, as runs of keys. */
function keyRuns(blocks, verdict) {
  const runs = [];
  const add = (from, to) => {
    if (runs.length && runs.at(-1)[1] === from) runs.at(-1)[1] = to;
    else runs.push([from, to]);
  };
  for (const { left, right, all } of blocks) {
    if (all) add(left, right);
    else {
      for (let from = left; from < right; from += TILE) {
        const to = Math.min(from + TILE, right);
        if (verdict(from, to) !== NONE) add(from, to);
      }
    }
  }
  return runs;
}

/** Two row tiles as one, or null if they are not adjacent or would grow too large. */
function joinedTiles(upper, lower) {
  const { start } = upper;
  const { stop } = lower;
  if (upper.stop !== lower.start || stop - start > MAX_TILE_ROWS) return null;
  if (String(upper.runs) === String(lower.runs)) return { start, stop, runs: upper.runs };
  if (upper.runs.length > 1 || lower.runs.length > 1) return null;
  const [[a, b], [c, d]] = [upper.runs[0], lower.runs[0]];
  const joined = { start, stop, runs: [[Math.min(a, c), Math.max(b, d)]] };
  return pairsOf(joined) <= MAX_TILE_PAIRS ? joined : null;
}
