// A sentence: its words, their vectors, the four matrices and the options; all of it can be changed.

import { multiHeadSteps } from "./attention_steps.js";
import { extentOf, maskRows } from "./mask_counts.js";
import { parseMask } from "./mask_language.js";
import { MaskProblem } from "./mask_problem.js";
import { restChannel } from "./query_state.js";

export const MOST_WORDS = 16;
export const HEAD_COUNTS = [1, 2, 4];
export const POSITION_KINDS = ["none", "sinusoidal", "rotary", "alibi"];
export const SENTENCE_MATRICES = ["w_q", "w_k", "w_v", "w_o"];

/** The whole numbers of lesson 2, which can be checked in one's head. */
const WHOLE_NUMBERS = {
  text: "I love AI",
  vectors: { I: [1, 0, 1, 0], love: [0, 1, 0, 1], AI: [1, 1, 0, 0] },
  matrices: {
    w_q: [
      [1, 0, 0, 0],
      [0, 1, 0, 0],
      [1, 0, 0, 1],
      [0, 0, 1, 0],
    ],
    w_k: [
      [0, 1, 0, 0],
      [1, 0, 0, 0],
      [0, 0, 1, 0],
      [1, 0, 0, 1],
    ],
    w_v: scaledIdentity(2),
    w_o: scaledIdentity(1),
  },
};

function scaledIdentity(factor) {
  return [0, 1, 2, 3].map((i) => [0, 1, 2, 3].map((j) => (i === j ? factor : 0)));
}

const copied = (rows) => rows.map((row) => [...row]);

/** The state at the start: "explain" has the numbers of `regard explain`, "whole" those of lesson 2. */
export function firstSentence(start, preset = "explain") {
  const { text, vectors, matrices } = preset === "whole" ? WHOLE_NUMBERS : start;
  return {
    preset,
    text,
    vectors: Object.fromEntries(Object.entries(vectors).map(([word, row]) => [word, [...row]])),
    matrices: Object.fromEntries(Object.entries(matrices).map(([name, rows]) => [name, copied(rows)])),
    mask: "",
    heads: 1,
    positions: "none",
  };
}

const SENTENCE_WORD = /[\u3400-\u9fff]|(?:(?![\u3400-\u9fff])[\p{L}\p{N}])+(?:['’][\p{L}\p{N}]+)*|[^\p{L}\p{N}_\s]/gu;

/** The words and signs of a text; each Chinese character is a word unless the text has spaces, as in `explain`. */
export function wordsIn(text) {
  const spaced = text.split(/\s+/).filter(Boolean);
  if (spaced.length > 1 && /[\u3400-\u9fff]/.test(text)) return spaced;
  return text.match(SENTENCE_WORD) ?? [];
}

/** The vector of a word; a new word gets one that looks random, the same every time. */
export function vectorOf(state, word) {
  if (!Object.hasOwn(state.vectors, word)) {
    let code = 7;
    for (const sign of word) code = (Math.imul(code, 31) + sign.codePointAt(0)) % 100003;
    state.vectors[word] = [0, 1, 2, 3].map((channel) => Math.round(restChannel(Math.abs(code), channel) * 100) / 100);
  }
  return state.vectors[word];
}

/** Rotary positions turn pairs of channels, so a head needs two. */
export function canRotate(heads) {
  return heads < 4;
}

/** Every step for the present state; `problem` says what is wrong with the words or the mask, if anything is. */
export function sentenceResult(state) {
  const found = wordsIn(state.text);
  const words = found.slice(0, MOST_WORDS);
  if (!words.length) return { words, left: 0, steps: null, mask: null, allowed: null, problem: null };
  const { allowed, mask, problem } = allowedOf(state.mask, words.length);
  const x = words.map((word) => vectorOf(state, word));
  const steps = multiHeadSteps(x, state.matrices, { heads: state.heads, positions: state.positions, allowed });
  return { words, left: found.length - words.length, steps, mask, allowed, problem };
}

/** What a mask allows; an empty text means no mask. */
function allowedOf(text, length) {
  const none = { allowed: null, mask: null, problem: null };
  if (!text.trim()) return none;
  try {
    const mask = parseMask(text);
    const first = mask.lead.map(() => 0);
    if (mask.lead.includes(0)) return none;
    mask.check(extentOf(length));
    return { mask, allowed: maskRows(mask.select(first), extentOf(length)), problem: null };
  } catch (problem) {
    if (!(problem instanceof MaskProblem)) throw problem;
    return { ...none, problem };
  }
}
