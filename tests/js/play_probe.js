// What the tests of playables call in the browser: the pure modules, in one scope.

import {
  alibiSlopes,
  attentionSteps,
  multiHeadSteps,
  softmaxRow,
  softmaxSlopes,
} from "../../src/regard/views/play/assets/attention_steps.js";
import { learnErrors } from "../../src/regard/views/play/assets/error_texts.js";
import { allowedPairs, leadIndices, maskCost, maskRows } from "../../src/regard/views/play/assets/mask_counts.js";
import { parseMask } from "../../src/regard/views/play/assets/mask_language.js";
import { plannedPairs } from "../../src/regard/views/play/assets/mask_plan.js";
import { MaskProblem } from "../../src/regard/views/play/assets/mask_problem.js";
import { likeness } from "../../src/regard/views/play/assets/python_text.js";
import { queryResult } from "../../src/regard/views/play/assets/query_state.js";
import { wordsIn } from "../../src/regard/views/play/assets/sentence_state.js";
import { TransformerNumbers } from "../../src/regard/views/play/assets/transformer_numbers.js";

/** What a text means, at some lengths: its own text, leading axes, rows and pairs; or its error in both languages. */
function readMask(text, queries, keys) {
  try {
    const mask = parseMask(text);
    const found = { text: mask.text(), lead: mask.lead, rows: null, pairs: null, error: null };
    try {
      const extent = { queries, keys };
      found.pairs = allowedPairs(mask, extent);
      found.rows = leadIndices(mask.lead).map((index) =>
        maskRows(mask.select(index), extent).map((row) => row.map(Number)),
      );
    } catch (error) {
      if (!(error instanceof MaskProblem)) throw error;
      found.error = { en: error.inWords("en"), zh: error.inWords("zh") };
    }
    return found;
  } catch (error) {
    if (!(error instanceof MaskProblem)) throw error;
    return { wrong: { position: error.position, en: error.inWords("en"), zh: error.inWords("zh") } };
  }
}

function costOf(text, lengths) {
  const mask = parseMask(text);
  return lengths.map((length) => maskCost(mask, length));
}

globalThis.play = {
  alibiSlopes,
  attentionSteps,
  costOf,
  learnErrors,
  likeness,
  multiHeadSteps,
  plannedPairs: (text, length) => plannedPairs(parseMask(text), length),
  queryResult,
  readMask,
  softmaxRow,
  softmaxSlopes,
  TransformerNumbers,
  wordsIn,
};
