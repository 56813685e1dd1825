// What the Text view shades: one row of weights, or one column, of one head or the mean of several. Pure functions.

/**
 * The tokens that are shown as one: word pieces where they are merged.
 * @typedef {import("./lens.js").Groups} Groups
 */

/** Heads whose mean weight on the first key is at least this rest there. */
const RESTING = 0.25;

/** A weight this many times an even one has the strongest colour, unless a stronger one is there. */
const STRONG = 5;

/** Letters of scripts that are written from right to left, and of all others. */
const RIGHT_TO_LEFT = /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}/u;

/**
 * "rtl" if most tokens that have a direction are written from right to left. The first letter would not do:
 * it may be the one foreign name.
 * @param {string[]} tokens
 * @param {boolean[]} special
 */
export function textDirection(tokens, special) {
  let balance = 0;
  tokens.forEach((token, at) => {
    if (special[at]) return;
    if (RIGHT_TO_LEFT.test(token)) balance += 1;
    else if (/\p{L}/u.test(token)) balance -= 1;
  });
  return balance > 0 ? "rtl" : "ltr";
}

/**
 * The mean of arrays of the same length.
 * @param {ArrayLike<number>[]} rows
 */
export function meanOf(rows) {
  const mean = new Float32Array(rows[0]?.length ?? 0);
  for (const row of rows) for (let at = 0; at < mean.length; at += 1) mean[at] += row[at] / rows.length;
  return mean;
}

/**
 * The keys where weight rests without meaning: special tokens, and the first key of heads that rest on it.
 * @param {boolean[]} special
 * @param {number} firstWeight the mean weight that the heads put on the first key
 */
export function restingKeys(special, firstWeight) {
  return special.map((is, key) => is || (key === 0 && restsOnFirst(firstWeight)));
}

/**
 * Whether so much weight is on the first key that it rests there.
 * @param {number} firstWeight
 */
export function restsOnFirst(firstWeight) {
  return firstWeight >= RESTING;
}

/**
 * The weight that gets the strongest colour: the greatest, but much more than an even share, so that a head that
 * looks everywhere looks pale.
 * @param {ArrayLike<number>} weights
 */
export function strongestColour(weights) {
  let [greatest, seen] = [0, 0];
  for (let at = 0; at < weights.length; at += 1) {
    if (weights[at] > 0) seen += 1;
    if (weights[at] > greatest) greatest = weights[at];
  }
  return Math.min(1, Math.max(greatest, STRONG / Math.max(seen, 1)));
}

/**
 * The greatest size of some numbers.
 * @param {ArrayLike<number>} values
 */
export function greatestSizeOf(values) {
  let found = 0;
  for (let at = 0; at < values.length; at += 1) if (Math.abs(values[at]) > found) found = Math.abs(values[at]);
  return found;
}

/**
 * A number per unit from one per token: pieces of a word are added.
 * @param {ArrayLike<number>} values
 * @param {Groups} units
 */
export function sumOverUnits(values, units) {
  const sums = new Float32Array(units.count);
  units.groupOf.forEach((unit, token) => {
    if (unit >= 0) sums[unit] += values[token];
  });
  return sums;
}

/**
 * The places of the numbers furthest from 0, the furthest first.
 * @param {ArrayLike<number>} weights
 * @param {number} count
 * @param {(place: number) => boolean} counts
 */
export function greatestPlaces(weights, count, counts = () => true) {
  const places = [];
  let least = 0; // what a number must exceed; nearly all of a long text end at this comparison
  for (let at = 0; at < weights.length; at += 1) {
    const size = Math.abs(weights[at]);
    if (!(size > least) || !counts(at)) continue;
    const before = places.findIndex((place) => Math.abs(weights[place]) < size);
    places.splice(before < 0 ? places.length : before, 0, at);
    places.length = Math.min(places.length, count);
    if (places.length === count) least = Math.abs(weights[places[count - 1]]);
  }
  return places;
}

/**
 * The first place of an increasing array whose value is at least `least`; its length if there is none.
 * @param {ArrayLike<number>} values
 * @param {number} least
 */
export function firstAtLeast(values, least) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
