// The steps of attention over a sentence, in the order of `regard explain`, and where each of their numbers comes from.

import { brackets, formula, frac, mathName, mathRow, root, sub, total, transposed } from "./drawing.js";
import { SENTENCE_MATRICES } from "./sentence_state.js";

const matrixName = (name) => sub("W", name.at(-1));

/** The formula of every step. */
const STEP_FORMULAS = {
  x: () => formula("x"),
  added: () => formula("p"),
  placed: () => formula("x", "+", "p"),
  w_q: () => formula(matrixName("w_q")),
  w_k: () => formula(matrixName("w_k")),
  w_v: () => formula(matrixName("w_v")),
  w_o: () => formula(matrixName("w_o")),
  queries: () => formula("q", "=", "x", matrixName("w_q")),
  keys: () => formula("k", "=", "x", matrixName("w_k")),
  values: () => formula("v", "=", "x", matrixName("w_v")),
  q: () => formula("q"),
  k: () => formula("k"),
  v: () => formula("v"),
  dots: () => formula("q", transposed("k")),
  scores: (channels) => formula("s", "=", frac(mathRow("q", transposed("k")), root(String(channels)))),
  biased: () => formula("s", "+", "b"),
  masked: () => formula("s", "=", "−∞"),
  lse: () => formula(mathName("lse"), "=", mathName("log"), total("j"), mathName("exp"), sub("s", "j")),
  weights: () => formula("w", "=", mathName("exp"), brackets("s", "−", mathName("lse"))),
  heads: () => formula("o", "=", "w", "v"),
  joined: () => formula("o", "=", "[", sub("o", "0"), sub("o", "1"), "…", "]"),
  output: () => formula("y", "=", "o", matrixName("w_o")),
};

/**
 * The steps of a result: name, chapter, formula, what its rows and columns are, and a matrix for every head.
 * @param {any} state
 * @param {any} result
 */
export function stepsOf(state, { words, steps }) {
  const { each } = steps;
  const channels = each[0].q[0].length;
  const several = state.heads > 1;
  const turned = state.positions === "rotary";
  const step = (name, chapter, rows, columns, stacks, more = {}) => ({
    name,
    chapter,
    rows,
    columns,
    stacks,
    formula: () => STEP_FORMULAS[name](channels),
    channels,
    words,
    ...more,
  });
  const own = (name) => step(name, "project", "channels", "channels", [state.matrices[name]], { edited: name });
  const split = (name) =>
    step(
      name,
      "project",
      "words",
      "channels",
      each.map((head) => head[name]),
      { turned },
    );
  const pairs = (name) =>
    step(
      name,
      "weigh",
      "words",
      "words",
      each.map((head) => head[name]),
    );
  return [
    step("x", "words", "words", "channels", [steps.x], { edited: "x" }),
    ...(steps.added
      ? [
          step("added", "words", "words", "channels", [steps.added]),
          step("placed", "words", "words", "channels", [steps.placed]),
        ]
      : []),
    own("w_q"),
    step("queries", "project", "words", "channels", [steps.queries]),
    own("w_k"),
    step("keys", "project", "words", "channels", [steps.keys]),
    own("w_v"),
    step("values", "project", "words", "channels", [steps.values]),
    ...(several || turned ? ["q", "k", ...(several ? ["v"] : [])].map(split) : []),
    pairs("dots"),
    pairs("scores"),
    ...(each[0].biased ? [pairs("biased")] : []),
    ...(each[0].masked ? [pairs("masked")] : []),
    step(
      "lse",
      "weigh",
      "words",
      "none",
      each.map((head) => head.lse.map((value) => [value])),
    ),
    pairs("weights"),
    step(
      "heads",
      "collect",
      "words",
      "channels",
      each.map((head) => head.output),
    ),
    ...(several ? [step("joined", "collect", "words", "channels", [steps.joined])] : []),
    { ...own("w_o"), chapter: "collect" },
    step("output", "collect", "words", "channels", [steps.output]),
  ];
}

// ---- where a number comes from ---------------------------------------------------------------------

/**
 * Where one number comes from: its terms, as pairs of numbers to multiply and to add up (or another rule), and the
 * cells that they are in.
 * @param {any} state
 * @param {any} result
 * @param {{ step: string, head: number, i: number, j: number }} cell
 */
export function originOf(state, result, cell) {
  const rule = ORIGINS[cell.step];
  return rule ? rule(state, result.steps, cell) : { rule: "given", value: valueAt(state, result, cell), sources: [] };
}

function valueAt(state, { steps }, { step, i, j }) {
  return SENTENCE_MATRICES.includes(step) ? state.matrices[step][i][j] : steps[step][i][j];
}

/** Row i of one matrix times column j of another. */
function rowTimesColumn(left, right, leftCell, rightCell) {
  const terms = left.map((value, m) => [value, right[m]]);
  const value = terms.reduce((sum, [a, b]) => sum + a * b, 0);
  const sources = left.flatMap((_, m) => [leftCell(m), rightCell(m)]);
  return { rule: "sum", terms, value, sources };
}

const inputName = (steps) => (steps.placed ? "placed" : "x");

/** x W, for one of the matrices. */
function projected(matrix) {
  return (state, steps, { i, j }) => {
    const name = inputName(steps);
    const weights = state.matrices[matrix];
    return rowTimesColumn(
      steps[name][i],
      weights.map((row) => row[j]),
      (m) => ({ step: name, head: 0, i, j: m }),
      (m) => ({ step: matrix, head: 0, i: m, j }),
    );
  };
}

/** The step that holds the queries, keys or values of a head, and the channel at which the head begins. */
function headPlace(state, steps, letter, head) {
  const whole = { q: "queries", k: "keys", v: "values" }[letter];
  const splits = state.heads > 1 || (state.positions === "rotary" && letter !== "v");
  const channels = steps.each[0].q[0].length;
  return (i, c) => (splits ? { step: letter, head, i, j: c } : { step: whole, head: 0, i, j: head * channels + c });
}

function splitOrigin(letter) {
  const whole = { q: "queries", k: "keys", v: "values" }[letter];
  return (state, steps, { head, i, j }) => {
    const channels = steps.each[0].q[0].length;
    const from = (c) => ({ step: whole, head: 0, i, j: head * channels + c });
    const value = steps.each[head][letter][i][j];
    if (state.positions !== "rotary" || letter === "v") {
      return { rule: "copied", value, sources: [from(j)] };
    }
    const half = channels / 2;
    const other = j < half ? j + half : j - half;
    const row = steps[whole][i];
    const angle = i * 10000 ** (-(j % half) / half);
    const terms = [
      [row[head * channels + j], Math.cos(angle)],
      [(j < half ? -1 : 1) * row[head * channels + other], Math.sin(angle)],
    ];
    return { rule: "turned", angle, terms, value, sources: [from(j), from(other)] };
  };
}

/** The scores that softmax gets. */
const finalScores = (head) => head.masked ?? head.biased ?? head.scores;
const finalStep = (head) => (head.masked ? "masked" : head.biased ? "biased" : "scores");

const ORIGINS = {
  added: (state, steps, { i, j }) => ({ rule: "wave", value: steps.added[i][j], position: i, channel: j, sources: [] }),
  placed: (state, steps, { i, j }) => ({
    rule: "plus",
    parts: [steps.x[i][j], steps.added[i][j]],
    value: steps.placed[i][j],
    sources: ["x", "added"].map((step) => ({ step, head: 0, i, j })),
  }),
  queries: projected("w_q"),
  keys: projected("w_k"),
  values: projected("w_v"),
  q: splitOrigin("q"),
  k: splitOrigin("k"),
  v: splitOrigin("v"),
  dots: (state, steps, { head, i, j }) => {
    const { q, k } = steps.each[head];
    const [ofQuery, ofKey] = ["q", "k"].map((letter) => headPlace(state, steps, letter, head));
    return rowTimesColumn(
      q[i],
      k[j],
      (c) => ofQuery(i, c),
      (c) => ofKey(j, c),
    );
  },
  scores: (state, steps, { head, i, j }) => ({
    rule: "scaled",
    dot: steps.each[head].dots[i][j],
    channels: steps.each[head].q[0].length,
    value: steps.each[head].scores[i][j],
    sources: [{ step: "dots", head, i, j }],
  }),
  biased: (state, steps, { head, i, j }) => ({
    rule: "plus",
    parts: [steps.each[head].scores[i][j], steps.each[head].bias[i][j]],
    value: steps.each[head].biased[i][j],
    sources: [{ step: "scores", head, i, j }],
  }),
  masked: (state, steps, { head, i, j }) => ({
    rule: steps.each[head].masked[i][j] === -Infinity ? "hidden" : "seen",
    value: steps.each[head].masked[i][j],
    sources: [{ step: steps.each[head].biased ? "biased" : "scores", head, i, j }],
  }),
  lse: (state, steps, { head, i }) => ({
    rule: "lse",
    scores: finalScores(steps.each[head])[i],
    value: steps.each[head].lse[i],
    sources: finalScores(steps.each[head])[i].map((_, j) => ({ step: finalStep(steps.each[head]), head, i, j })),
  }),
  weights: (state, steps, { head, i, j }) => ({
    rule: "weight",
    score: finalScores(steps.each[head])[i][j],
    lse: steps.each[head].lse[i],
    value: steps.each[head].weights[i][j],
    sources: [
      { step: finalStep(steps.each[head]), head, i, j },
      { step: "lse", head, i, j: 0 },
    ],
  }),
  heads: (state, steps, { head, i, j }) => {
    const { weights, v } = steps.each[head];
    const ofValue = headPlace(state, steps, "v", head);
    return rowTimesColumn(
      weights[i],
      v.map((row) => row[j]),
      (key) => ({ step: "weights", head, i, j: key }),
      (key) => ofValue(key, j),
    );
  },
  joined: (state, steps, { i, j }) => {
    const channels = steps.each[0].output[0].length;
    const head = Math.floor(j / channels);
    return { rule: "copied", value: steps.joined[i][j], sources: [{ step: "heads", head, i, j: j % channels }] };
  },
  output: (state, steps, { i, j }) =>
    rowTimesColumn(
      steps.joined[i],
      state.matrices.w_o.map((row) => row[j]),
      (m) => (state.heads > 1 ? { step: "joined", head: 0, i, j: m } : { step: "heads", head: 0, i, j: m }),
      (m) => ({ step: "w_o", head: 0, i: m, j }),
    ),
};
