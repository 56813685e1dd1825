import assert from "node:assert/strict";
import { test } from "node:test";
import { Call } from "../../src/regard/views/page/assets/data/call.js";

const [HEADS, KEY_HEADS, QUERIES, KEYS, CHANNELS] = [4, 2, 5, 7, 3];

function numbers(count, seed) {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (state * 48271) % 2147483647;
    return (state / 2147483647) * 4 - 2;
  });
}

/** The weights of one head, step by step in float64: mask, cap, bias, softmax. */
function reference({ q, k, scale, softcap, bias, allowed }, head) {
  const rows = [];
  for (let i = 0; i < QUERIES; i += 1) {
    const scores = Array.from({ length: KEYS }, (_, j) => {
      if (!allowed(i, j)) return -Infinity;
      let dot = 0;
      for (let c = 0; c < CHANNELS; c += 1) {
        dot += q[(head * QUERIES + i) * CHANNELS + c] * k[(Math.floor(head / 2) * KEYS + j) * CHANNELS + c];
      }
      const scaled = dot * scale;
      return (softcap === null ? scaled : softcap * Math.tanh(scaled / softcap)) + bias(i, j);
    });
    const lse = Math.log(scores.reduce((sum, score) => sum + Math.exp(score), 0));
    rows.push({ lse, weights: scores.map((score) => (score === -Infinity ? 0 : Math.exp(score - lse))) });
  }
  return rows;
}

/** A call as a page describes it; row 2 sees nothing, the others see up to key i + 2. */
function callOf({ softcap = null, line = null, extra = {}, more = [] } = {}) {
  const q = numbers(HEADS * QUERIES * CHANNELS, 11);
  const k = numbers(KEY_HEADS * KEYS * CHANNELS, 29);
  const allowed = (i, j) => i !== 2 && j <= i + 2;
  const first = [0];
  const bounds = [];
  for (let i = 0; i < QUERIES; i += 1) {
    if (i !== 2) bounds.push(0, Math.min(KEYS, i + 3));
    first.push(bounds.length / 2);
  }
  const bias = (i, j) => (line ? line[KEYS - 1 - (KEYS - QUERIES) + j - i] : 0);
  const known = { q, k, scale: 0.5, softcap, bias, allowed };
  const rows = Array.from({ length: HEADS }, (_, head) => reference(known, head));
  const lse = Float64Array.from(rows.flat(), (row) => row.lse);
  const stored = [q, k, lse, line, new Float32Array(HEADS), new Uint8Array(HEADS), ...more];
  const described = {
    name: "layer",
    layer: 0,
    kind: "encoder",
    run: 0,
    heads: [0, 1, 2, 3],
    queries: QUERIES,
    keys: KEYS,
    channels: CHANNELS,
    queryText: 0,
    keyText: 0,
    statistics: 4,
    thumbnails: { rows: 1, columns: 1, values: 5 },
    q: { codes: 0, scales: null, shape: [HEADS, QUERIES, CHANNELS] },
    k: { codes: 1, scales: null, shape: [KEY_HEADS, KEYS, CHANNELS] },
    lse: 2,
    scale: 0.5,
    softcap,
    masks: [0],
    bias: line ? { line: 3, table: null } : null,
    ...extra,
  };
  const text = { tokens: [], special: [], words: [] };
  const data = {
    arrays: { at: (place) => stored[place] },
    texts: [text],
    masks: [{ first, bounds }],
    statistics: ["entropy"],
    sentenceB: null,
  };
  return { call: new Call(0, described, data), rows };
}

for (const [name, options] of Object.entries({
  "plain": {},
  "softcap": { softcap: 1.5 },
  "bias": { line: numbers(KEYS + QUERIES - 1, 5) },
  "softcap and bias": { softcap: 2, line: numbers(KEYS + QUERIES - 1, 5) },
})) {
  test(`weights are exp(s − lse): ${name}`, () => {
    const { call, rows } = callOf(options);
    for (let head = 0; head < HEADS; head += 1) {
      const found = call.weights(head, 0, QUERIES, 0, KEYS);
      rows[head].forEach(({ weights }, i) => {
        weights.forEach((weight, j) => {
          assert.ok(Math.abs(found[i * KEYS + j] - weight) < 1e-6, `head ${head}, query ${i}, key ${j}`);
        });
      });
    }
  });

  test(`a block is a part of the whole, and so are the steps: ${name}`, () => {
    const { call } = callOf(options);
    const whole = call.weights(3, 0, QUERIES, 0, KEYS);
    const block = call.weights(3, 1, 5, 2, 6);
    for (let i = 1; i < 5; i += 1)
      for (let j = 2; j < 6; j += 1) assert.equal(block[(i - 1) * 4 + j - 2], whole[i * KEYS + j]);
    call.steps(3, 4).keys.forEach(({ weight }, j) => {
      assert.ok(Math.abs(weight - whole[4 * KEYS + j]) < 1e-6);
    });
  });
}

test("masked pairs and rows that see nothing are exactly 0", () => {
  const { call } = callOf();
  const found = call.weights(0, 0, QUERIES, 0, KEYS);
  assert.deepEqual([...found.subarray(2 * KEYS, 3 * KEYS)], Array(KEYS).fill(0));
  assert.deepEqual([...found.subarray(3, KEYS)], Array(KEYS - 3).fill(0));
  assert.deepEqual(call.allowed(0, 2), []);
  assert.deepEqual(call.allowed(0, 4), [[0, 7]]);
});

test("gradients are dO · v, products w · dO · v, contributions w · c; all but gradients need the mask", () => {
  const v = numbers(KEY_HEADS * KEYS * 2, 41);
  const given = numbers(HEADS * QUERIES * 2, 53);
  const perKey = numbers(HEADS * KEYS, 67);
  const kept = { error: 0, greatest: 9, thumbnails: 9 };
  const extra = {
    v: { codes: 6, scales: null, shape: [KEY_HEADS, KEYS, 2] },
    outputGradient: { codes: 7, scales: null, shape: [HEADS, QUERIES, 2] },
    given: 8,
    quantities: { gradient: kept, product: kept, contribution: kept },
  };
  const { call, rows } = callOf({ extra, more: [v, given, perKey, new Float32Array(HEADS)] });
  const close = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-5, `${found} ${wanted}`);
  for (let head = 0; head < HEADS; head += 1) {
    const place = [head, 1, QUERIES, 2, KEYS];
    const [all, gradient, product, contribution] = [
      call.gradients(...place),
      ...["gradient", "product", "contribution"].map((what) => call.values(what, ...place)),
    ];
    assert.deepEqual(call.values("weight", ...place), call.weights(...place));
    for (let i = 1; i < QUERIES; i += 1) {
      for (let j = 2; j < KEYS; j += 1) {
        const at = (i - 1) * (KEYS - 2) + j - 2;
        const [one, other] = [(head * QUERIES + i) * 2, (Math.floor(head / 2) * KEYS + j) * 2];
        const dot = given[one] * v[other] + given[one + 1] * v[other + 1];
        close(all[at], dot);
        if (i === 2 || j > i + 2) {
          assert.ok([gradient, product, contribution].every((values) => Number.isNaN(values[at])));
          continue;
        }
        const weight = rows[head][i].weights[j];
        close(gradient[at], dot);
        close(product[at], weight * dot);
        close(contribution[at], weight * perKey[head * KEYS + j]);
      }
    }
    const { keys } = call.steps(head, 1);
    close(keys[0].product, keys[0].weight * keys[0].gradient);
    assert.ok(Number.isNaN(keys[KEYS - 1].contribution));
  }
});

test("differences are the twin's weights minus the own ones, and none where neither may see the key", () => {
  const { call } = callOf();
  const { call: twin } = callOf({ softcap: 1.5 });
  call.twin = twin;
  call.addDifference(null, null);
  const [own, theirs] = [call, twin].map((one) => one.weights(1, 0, QUERIES, 0, KEYS));
  const found = call.values("difference", 1, 0, QUERIES, 0, KEYS);
  found.forEach((value, at) => {
    const [i, j] = [Math.floor(at / KEYS), at % KEYS];
    if (i === 2 || j > i + 2) assert.ok(Number.isNaN(value));
    else assert.ok(Math.abs(value - (theirs[at] - own[at])) < 1e-7);
  });
  const block = call.values("difference", 1, 3, 5, 2, 6);
  for (let i = 3; i < 5; i += 1)
    for (let j = 2; j < 6; j += 1) assert.deepEqual(block[(i - 3) * 4 + j - 2], found[i * KEYS + j]);
  twin.heads = ["another"]; // no head of that number
  assert.ok(call.values("difference", 1, 0, 1, 0, KEYS).every(Number.isNaN));
});
