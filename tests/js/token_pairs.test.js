import assert from "node:assert/strict";
import { test } from "node:test";
import { tokenPartners, turnedAround } from "../../src/regard/views/page/assets/token_pairs.js";

const partners = (one, other) => [...tokenPartners(one.split(" "), other.split(" "))];

test("equal texts are matched one by one", () => {
  assert.deepEqual(partners("a b a", "a b a"), [0, 1, 2]);
});

test("a replaced word is the partner of the word in its place", () => {
  assert.deepEqual(partners("it was too tired .", "it was too wide ."), [0, 1, 2, 3, 4]);
});

test("words that were added have no partner, and shift the others", () => {
  assert.deepEqual(partners("the cat sat", "the old black cat sat"), [0, 3, 4]);
  assert.deepEqual(partners("the old black cat sat", "the cat sat"), [0, -1, -1, 1, 2]);
});

test("as many tokens as possible are matched, in order", () => {
  assert.deepEqual(partners("x a b y c", "a z b c w"), [-1, 0, 2, -1, 3]);
  assert.deepEqual(partners("a b", "c d e"), [-1, -1]);
  assert.deepEqual([...tokenPartners([], ["a"])], []);
});

test("every order is kept and only equal or replaced tokens are matched, in random texts", () => {
  let state = 7;
  const random = (most) => {
    state = (state * 48271) % 2147483647;
    return state % most;
  };
  for (let round = 0; round < 200; round += 1) {
    const [one, other] = [0, 0].map(() => Array.from({ length: random(12) }, () => "abc"[random(3)]));
    const found = [...tokenPartners(one, other)];
    const matched = found.filter((at) => at >= 0);
    assert.deepEqual(
      matched,
      [...matched].sort((a, b) => a - b),
    );
    assert.equal(new Set(matched).size, matched.length);
    assert.ok(matched.length >= commonLength(one, other));
    const back = [...turnedAround(Int32Array.from(found), other.length)];
    found.forEach((at, token) => {
      if (at >= 0) assert.equal(back[at], token);
    });
  }
});

/** The longest common subsequence, by trying everything. */
function commonLength(one, other) {
  if (!one.length || !other.length) return 0;
  if (one[0] === other[0]) return 1 + commonLength(one.slice(1), other.slice(1));
  return Math.max(commonLength(one.slice(1), other), commonLength(one, other.slice(1)));
}

test("long texts are matched from both ends, without a table", () => {
  const words = Array.from({ length: 3000 }, (_, at) => `w${at}`);
  const changed = words.map((word, at) => (at % 1000 === 500 ? "x" : word));
  const found = tokenPartners(words, changed);
  assert.equal(found[0], 0);
  assert.equal(found[2999], 2999);
  assert.equal(found[500], 500); // as many tokens lie between the ends of both
});
