import assert from "node:assert/strict";
import { test } from "node:test";
import {
  attentionSteps,
  multiHeadSteps,
  softmaxRow,
  softmaxSlopes,
} from "../../src/regard/views/play/assets/attention_steps.js";
import { cellNumber, typedNumber } from "../../src/regard/views/play/assets/cell_grid.js";
import { firstQuery, queryResult, restChannel, withKeys } from "../../src/regard/views/play/assets/query_state.js";
import { firstSentence, sentenceResult, wordsIn } from "../../src/regard/views/play/assets/sentence_state.js";
import { originOf, stepsOf } from "../../src/regard/views/play/assets/sentence_steps.js";
import { layerNorm } from "../../src/regard/views/play/assets/transformer_numbers.js";

const close = (one, other, most = 1e-12) => assert.ok(Math.abs(one - other) <= most, `${one} and ${other}`);

test("softmax overflows for no score, and a row that sees nothing is 0", () => {
  assert.deepEqual(softmaxRow([1000, -1000]).weights, [1, 0]);
  assert.deepEqual(softmaxRow([-Infinity, -Infinity]), { weights: [0, 0], lse: -Infinity });
  close(softmaxRow([0, 0]).lse, Math.log(2));
});

test("the slopes of softmax sum to 0", () => {
  for (const row of softmaxSlopes(softmaxRow([0.1, 0.7, -2]).weights))
    close(
      row.reduce((a, b) => a + b, 0),
      0,
    );
});

test("attention by hand", () => {
  const keys = [
    [1, 0.5],
    [0.8, 0.6],
    [0.5, 1],
  ];
  const { dots, weights, output } = attentionSteps([[1, 0.5]], keys, keys);
  assert.deepEqual(
    dots[0].map((dot) => dot.toFixed(2)),
    ["1.25", "1.10", "1.00"],
  );
  assert.deepEqual(
    weights[0].map((weight) => weight.toFixed(3)),
    ["0.365", "0.329", "0.306"],
  );
  assert.deepEqual(
    output[0].map((value) => value.toFixed(3)),
    ["0.781", "0.686"],
  );
});

test("one query: more keys, a hard maximum, channels that stay the same", () => {
  const state = firstQuery();
  assert.equal(withKeys(state, 5).keys.length, 5);
  const cold = queryResult({ ...state, temperature: 1e-3 });
  close(Math.max(...cold.weights), 1, 1e-9);
  close(cold.learnable, 0, 1e-9);
  close(queryResult(firstQuery("alike")).learnable, 1);
  assert.equal(restChannel(3, 7), restChannel(3, 7));
  const many = Array.from({ length: 4000 }, (_, c) => restChannel(1, c));
  close(many.reduce((sum, value) => sum + value * value, 0) / many.length, 1, 0.1);
});

test("words are found as explain finds them", () => {
  assert.deepEqual(wordsIn("I love AI."), ["I", "love", "AI", "."]);
  assert.deepEqual(wordsIn("我 喜欢 AI"), ["我", "喜欢", "AI"]);
  assert.deepEqual(wordsIn("我喜欢AI"), ["我", "喜", "欢", "AI"]);
  assert.deepEqual(wordsIn("  "), []);
});

test("the whole numbers of lesson 2", () => {
  const { steps } = sentenceResult(firstSentence(null, "whole"));
  assert.deepEqual(steps.queries[0], [2, 0, 0, 1]);
  assert.equal(Math.max(...steps.each[0].dots[0]), 5);
});

test("every number of every step has an origin with its own value", () => {
  for (const heads of [1, 2, 4]) {
    for (const positions of ["none", "sinusoidal", "alibi", ...(heads < 4 ? ["rotary"] : [])]) {
      const state = { ...firstSentence(null, "whole"), heads, positions, mask: "causal" };
      const result = sentenceResult(state);
      for (const step of stepsOf(state, result)) {
        step.stacks.forEach((values, head) => {
          values.forEach((row, i) => {
            row.forEach((value, j) => {
              const origin = originOf(state, result, { step: step.name, head, i, j });
              if (value === -Infinity) assert.equal(origin.value, value);
              else close(origin.value, value, 1e-12);
            });
          });
        });
      }
    }
  }
});

test("permuting words permutes the output, unless positions are known", () => {
  const start = firstSentence(null, "whole");
  const output = (text, positions) => sentenceResult({ ...start, text, positions }).steps.output;
  output("I love AI", "none")[0].forEach((value, c) => {
    close(value, output("AI love I", "none")[2][c]);
  });
  assert.notDeepEqual(output("I love AI", "sinusoidal")[0], output("AI love I", "sinusoidal")[2]);
});

test("numbers in cells", () => {
  assert.deepEqual([0.5, -1.23456, -0.0001, -Infinity, 12345].map(cellNumber), [
    "0.500",
    "−1.235",
    "0.000",
    "−∞",
    "12345",
  ]);
  assert.deepEqual(["1.5", "−2", " .25 ", "1,5", "", "x", "1e9"].map(typedNumber), [
    1.5,
    -2,
    0.25,
    1.5,
    null,
    null,
    null,
  ]);
});

test("a layer norm has mean β and deviation γ", () => {
  const { mean, row } = layerNorm([1, 2, 3, 6], [2, 2, 2, 2], [1, 1, 1, 1]);
  assert.equal(mean, 3);
  close(row.reduce((a, b) => a + b, 0) / 4, 1, 1e-9);
  close(Math.sqrt(row.reduce((sum, value) => sum + (value - 1) ** 2, 0) / 4), 2, 1e-4);
});

test("several heads of equal halves are one head", () => {
  const x = [
    [1, 0],
    [0, 1],
  ];
  const w = Object.fromEntries(["w_q", "w_k", "w_v", "w_o"].map((name) => [name, x]));
  const { each } = multiHeadSteps(x, w, { heads: 2 });
  assert.equal(each.length, 2);
  assert.deepEqual(each[0].q, [[1], [0]]);
});
