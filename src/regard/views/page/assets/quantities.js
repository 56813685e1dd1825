// What can be shown of a pair of tokens besides its weight.

import { say } from "./languages.js";

/**
 * Whether numbers of a quantity are around 0; weights, and contributions without a direction, are sizes.
 * @param {{ directed: boolean }} recording
 * @param {string} what
 */
export function isSigned({ directed }, what) {
  return ["gradient", "product", "difference"].includes(what) || (what === "contribution" && directed);
}

/**
 * The greatest size of a quantity among some heads of a call.
 * @param {any} call
 * @param {string} what
 * @param {number[]} heads
 */
export function greatestOfHeads(call, what, heads) {
  return heads.reduce((most, head) => Math.max(most, call.greatest(what, head)), 0);
}

/** The share of heads whose numbers all fit below the strongest colour where all heads are compared. */
const COMPARED = 0.9;

/**
 * The size that has the strongest colour where all heads of a recording are compared. One head in ten goes beyond it:
 * a few heads have gradients so large that all others would look empty.
 * @param {{ calls: any[] }} recording
 * @param {string} what
 */
export function comparedSize({ calls }, what) {
  if (what === "weight") return 1;
  const sizes = calls.flatMap((call) => [...(call.quantities[what]?.greatest ?? [])]).sort((a, b) => a - b);
  const found = sizes[Math.ceil(COMPARED * sizes.length) - 1] ?? 0;
  return found > 0 ? found : (sizes.at(-1) ?? 0);
}

/** The quantity after this one, and after the last the first. */
export function nextQuantity({ what }, now) {
  return what[(what.indexOf(now) + 1) % what.length];
}

/**
 * The name of a quantity: contributions without a direction are sizes, and are named so.
 * @param {{ directed: boolean }} recording
 * @param {string} what
 */
export function quantityKey({ directed }, what) {
  return what === "contribution" && !directed ? "what.size" : `what.${what}`;
}

/** A quantity by the key of its name, with what it means. */
export function explainedQuantity(key) {
  return say("what.explained", { name: say(key), about: say(`${key}.about`) });
}
