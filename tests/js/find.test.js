import assert from "node:assert/strict";
import { test } from "node:test";
import { NextTokens, surprise } from "../../src/regard/views/page/assets/data/next_tokens.js";
import { foundIn, pinsOfMatch } from "../../src/regard/views/page/assets/find.js";
import { groupTokens } from "../../src/regard/views/page/assets/lens.js";
import { gaps, maskedAreas } from "../../src/regard/views/page/assets/masked_area.js";
import { sortHeads } from "../../src/regard/views/page/assets/ranking.js";
import { firstAtLeast } from "../../src/regard/views/page/assets/text_weights.js";

const KEYS = ["the", "cat", "saw", "the", "dog"];

test("a search marks both sides of self-attention, where queries are the last tokens", () => {
  const call = { kind: "decoder", keyTokens: KEYS, queryTokens: KEYS.slice(2), offset: 2 };
  const found = foundIn(call, "the");
  assert.deepEqual(found.list, [
    { side: "key", token: 0 },
    { side: "key", token: 3 },
  ]);
  assert.deepEqual([...found.key], [0, 3]);
  assert.deepEqual([...found.query], [1]);
  assert.deepEqual(foundIn(call, " ").list, []);
  assert.deepEqual(pinsOfMatch(call, found.list[0], "from"), { query: null, key: 0 });
  assert.deepEqual(pinsOfMatch(call, found.list[1], "from"), { query: 1, key: null });
  assert.deepEqual(pinsOfMatch(call, found.list[1], "to"), { query: null, key: 3 });
});

test("a search in a translation has matches on both sides", () => {
  const call = { kind: "cross", keyTokens: KEYS, queryTokens: ["le", "the"], offset: 3 };
  const found = foundIn(call, "the");
  assert.deepEqual(
    found.list.map(({ side, token }) => `${side} ${token}`),
    ["key 0", "key 3", "query 1"],
  );
  assert.deepEqual(pinsOfMatch(call, found.list[2], "from"), { query: 1, key: null });
});

test("what intervals leave out", () => {
  assert.deepEqual(
    gaps(
      [
        [2, 4],
        [3, 6],
        [8, 9],
      ],
      0,
      10,
    ),
    [
      [0, 2],
      [6, 8],
      [9, 10],
    ],
  );
  assert.deepEqual(gaps([], 3, 5), [[3, 5]]);
  assert.deepEqual(gaps([[0, 20]], 3, 5), []);
});

test("masked rectangles of a causal mask, also with merged words", () => {
  const whole = { top: 0, bottom: 4, left: 0, right: 4 };
  const axis = (words, merge) => groupTokens(words, [false, false, false, false], merge);
  const look = (words, merge) => ({
    call: { visible: (_what, _head, query) => [[0, query + 1]] },
    rows: axis(words, merge),
    columns: axis(words, merge),
  });
  const area = (found) => found.reduce((sum, one) => sum + (one.bottom - one.top) * (one.right - one.left), 0);
  const plain = maskedAreas(look([0, 1, 2, 3], false), 0, whole);
  assert.equal(area(plain), 6);
  assert.deepEqual(plain[0], { top: 0, bottom: 1, left: 1, right: 4 });
  // Two words of two pieces: only the later word is masked for the first one.
  const merged = maskedAreas(look([0, 0, 1, 1], true), 0, { top: 0, bottom: 2, left: 0, right: 2 });
  assert.deepEqual(merged, [{ top: 0, bottom: 1, left: 1, right: 2 }]);
});

test("rows with the same mask share a rectangle", () => {
  const rows = groupTokens([0, 1, 2], [false, false, false], false);
  const look = { call: { visible: () => [[1, 2]] }, rows, columns: rows };
  assert.deepEqual(maskedAreas(look, 0, { top: 0, bottom: 3, left: 0, right: 3 }), [
    { top: 0, bottom: 3, left: 0, right: 1 },
    { top: 0, bottom: 3, left: 2, right: 3 },
  ]);
});

test("heads in the order of roles: the role of most heads first, those without one last", () => {
  const role = (name, score) => ({ role: name, score });
  const call = { roles: [role("first", 0.5), null, role("next", 0.9), role("first", 0.8)] };
  const heads = [0, 1, 2, 3].map((head) => ({ call, head }));
  assert.deepEqual(
    sortHeads(heads, "role", true).map(({ head }) => head),
    [3, 0, 2, 1],
  );
  assert.deepEqual(
    sortHeads(heads, "role", false).map(({ head }) => head),
    [2, 3, 0, 1],
  );
});

test("the first place in an increasing array", () => {
  assert.deepEqual(
    [-1, 0, 1, 5, 6].map((least) => firstAtLeast([0, 0, 2, 5], least)),
    [0, 0, 2, 3, 4],
  );
});

test("next tokens of a position, and how likely the text was", () => {
  const arrays = { at: (place) => [[1, 0, 0, 1], [0.75, 0.25, 0.5, 0.125], [0.25]][place] };
  const next = new NextTokens(
    { words: ["cat", "dog"], ranks: 2, best: 0, probabilities: 1, own: 2, generated: null },
    arrays,
  );
  assert.deepEqual(next.after(0), [
    { token: "dog", probability: 0.75 },
    { token: "cat", probability: 0.25 },
  ]);
  assert.deepEqual(next.after(2), []);
  assert.deepEqual(
    [0, 1, 2].map((position) => next.probability(position)),
    [null, 0.25, null],
  );
  assert.deepEqual(
    [0, 1, 2].map((position) => next.counts(position)),
    [false, true, false],
  );
  assert.deepEqual([1, 0.3, 0.1, 0.02, 0].map(surprise), [0, 1, 2, 3, 4]);
});
