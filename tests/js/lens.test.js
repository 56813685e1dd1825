import assert from "node:assert/strict";
import { test } from "node:test";
import {
  groupNames,
  groupTokens,
  meanOverGroups,
  outsideSentence,
  quantityThroughLens,
  sinkKeys,
  throughLens,
} from "../../src/regard/views/page/assets/lens.js";

const WORDS = [-1, 0, 0, 1, 2, 2, 2, -1]; // [CLS] to ##ken s pie ##ce ##s [SEP]
const NONE = WORDS.map(() => false);

test("without a lens every token is a group", () => {
  const groups = groupTokens(WORDS, NONE, false);
  assert.equal(groups.count, 8);
  assert.deepEqual(groups.sizes, Array(8).fill(1));
  assert.deepEqual([...groups.groupOf], [0, 1, 2, 3, 4, 5, 6, 7]);
});

test("pieces of a word are merged; tokens without a word stay alone", () => {
  const groups = groupTokens(WORDS, NONE, true);
  assert.deepEqual(groups.sizes, [1, 2, 1, 3, 1]);
  assert.deepEqual(groups.first, [0, 1, 3, 4, 7]);
  assert.deepEqual(groups.last, [1, 3, 4, 7, 8]);
  const tokens = ["[CLS]", "to", "##ken", "s", "pie", "##ce", "##s", "[SEP]"];
  assert.deepEqual(groupNames(groups, tokens), ["[CLS]", "token", "s", "pieces", "[SEP]"]);
});

test("dropped tokens belong to no group, also inside a word", () => {
  const dropped = WORDS.map((_, token) => token === 0 || token === 5);
  const groups = groupTokens(WORDS, dropped, true);
  assert.deepEqual([...groups.groupOf], [-1, 0, 0, 1, 2, -1, 2, 3]);
  assert.deepEqual(groups.sizes, [2, 1, 2, 1]);
});

test("a token belongs to one of two sentences", () => {
  assert.deepEqual(outsideSentence(5, 3, "a"), [false, false, false, true, true]);
  assert.deepEqual(outsideSentence(5, 3, "b"), [true, true, true, false, false]);
  assert.deepEqual(outsideSentence(5, 3, null), [false, false, false, false, false]);
});

test("sinks are no key, the first key, or every special token", () => {
  const special = [true, false, false, true];
  assert.deepEqual(sinkKeys(special, "show"), [false, false, false, false]);
  assert.deepEqual(sinkKeys(special, "first"), [true, false, false, false]);
  assert.deepEqual(sinkKeys(special, "special"), special);
});

/** Rows of positive numbers that sum to 1. */
function randomWeights(rows, columns) {
  let seed = 7;
  const next = () => {
    seed = (seed * 16807) % 2147483647;
    return seed / 2147483647;
  };
  return Array.from({ length: rows }, () => {
    const row = Array.from({ length: columns }, next);
    const sum = row.reduce((total, one) => total + one, 0);
    return row.map((one) => one / sum);
  });
}

test("through the lens: keys of a word are summed, its queries averaged, rows without sinks sum to 1", () => {
  const weights = randomWeights(8, 8);
  const sinks = sinkKeys(
    WORDS.map((word) => word < 0),
    "special",
  );
  const rows = groupTokens(WORDS, NONE, true);
  const columns = groupTokens(WORDS, sinks, true);
  const removed = weights.map((row) => row.reduce((sum, weight, key) => sum + (sinks[key] ? weight : 0), 0));
  const { first, last } = columns;
  const inside = weights.flatMap((row) => row.slice(first[0], last.at(-1)));
  const seen = throughLens(inside, rows, 0, rows.count, columns, 0, columns.count, removed);
  for (let row = 0; row < rows.count; row += 1) {
    let total = 0;
    for (let column = 0; column < columns.count; column += 1) {
      let wanted = 0;
      for (let query = 0; query < 8; query += 1) {
        if (rows.groupOf[query] !== row) continue;
        for (let key = 0; key < 8; key += 1) {
          if (columns.groupOf[key] === column) wanted += weights[query][key] / (1 - removed[query]) / rows.sizes[row];
        }
      }
      const found = seen[row * columns.count + column];
      assert.ok(Math.abs(found - wanted) < 1e-6);
      total += found;
    }
    assert.ok(Math.abs(total - 1) < 1e-6);
  }
});

test("a row whose weight is all on sinks becomes zero, not noise", () => {
  const one = groupTokens([0], [false], false);
  assert.deepEqual([...throughLens([0.5], one, 0, 1, one, 0, 1, [1 - 1e-6])], [0]);
});

test("numbers of tokens are averaged over groups", () => {
  const groups = groupTokens(WORDS, NONE, true);
  assert.deepEqual([...meanOverGroups([8, 1, 3, 5, 1, 2, 3, 4], groups)], [8, 2, 5, 2, 4]);
});

test("products of a word are summed over keys and averaged over queries, gradients are averaged; masked stays masked", () => {
  const groups = groupTokens([0, 0, 1], [false, false, false], true);
  const none = Number.NaN;
  const values = [1, none, none, 2, -4, none, 8, 16, 32];
  const seen = (average) => [...quantityThroughLens(values, groups, 0, 2, groups, 0, 2, average)];
  assert.deepEqual(seen(false), [(1 + 2 - 4) / 2, none, 24, 32]);
  assert.deepEqual(seen(true), [(1 + 2 - 4) / 3, none, 12, 32].map(Math.fround));
});
