import assert from "node:assert/strict";
import { test } from "node:test";
import { allHeads, filterHeads, sortHeads } from "../../src/regard/views/page/assets/ranking.js";

const call = (layer, kind, heads, entropy) => ({ layer, kind, heads, statistic: () => entropy });
const RECORDING = {
  calls: [call(0, "encoder", [0, 1], [2, NaN]), call(1, "cross", [4], [3]), call(2, "encoder", [1], [1])],
};
const HEADS = allHeads(RECORDING);
const named = (heads) => heads.map(({ call: { layer, heads: numbers }, head }) => `${layer}.${numbers[head]}`);

test("every head of every call, as recorded", () => {
  assert.deepEqual(named(HEADS), ["0.0", "0.1", "1.4", "2.1"]);
  assert.equal(sortHeads(HEADS, "", true), HEADS);
});

test("by a statistic, in both directions; heads without a value come last", () => {
  assert.deepEqual(named(sortHeads(HEADS, "entropy", true)), ["1.4", "0.0", "2.1", "0.1"]);
  assert.deepEqual(named(sortHeads(HEADS, "entropy", false)), ["2.1", "0.0", "1.4", "0.1"]);
});

test("by layer, and by head within a layer", () => {
  assert.deepEqual(named(sortHeads(HEADS, "layer", false)), ["0.0", "0.1", "1.4", "2.1"]);
  assert.deepEqual(named(sortHeads(HEADS, "layer", true)), ["2.1", "1.4", "0.1", "0.0"]);
});

test("filtered by kind and by every word", () => {
  const describe = ({ call: { layer, kind, heads }, head }) => `${layer}.${heads[head]} ${kind}`;
  assert.deepEqual(named(filterHeads(HEADS, "", "encoder", describe)), ["0.0", "0.1", "2.1"]);
  assert.deepEqual(named(filterHeads(HEADS, "  CROSS ", "", describe)), ["1.4"]);
  assert.deepEqual(named(filterHeads(HEADS, "encoder 2.1", "", describe)), ["2.1"]);
  assert.deepEqual(filterHeads(HEADS, "nothing", "", describe), []);
});

test("roles of more heads first, the one that says least last, heads without a role after all", () => {
  const heads = ["broad", "next", null, "broad", "previous", "broad", "previous"].map((role, head) => ({
    call: { layer: 0, heads: [0, 1, 2, 3, 4, 5, 6], roles: { [head]: role && { role, score: head } } },
    head,
  }));
  const roles = (way) => sortHeads(heads, "role", way).map(({ call: { roles: found }, head }) => found[head]?.role);
  assert.deepEqual(roles(true), ["previous", "previous", "next", "broad", "broad", "broad", undefined]);
  assert.deepEqual(roles(false), ["next", "previous", "previous", "broad", "broad", "broad", undefined]);
  assert.equal(sortHeads(heads, "role", true)[0].head, 6);
});
