// The real numbers of a block, for the sentence that the page carries.

import { make } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { shareText } from "../../page/assets/numbers.js";
import { cellNumber } from "./cell_grid.js";
import { blockKind, blockSide } from "./transformer_diagram.js";
import { shownToken, vectorStrips, weightPicture } from "./vector_strips.js";

/** Whether a block of a stack is after its layers: the last norm, and the projection to the decoder's width. */
export const outsideLayers = (name) => name === "norm" || name.startsWith("projection");

/** A block of a stack with its layer: encoder.attention in layer 2 is encoder.1.attention. */
export function placeOf(block, layer) {
  const [stack, name] = block.split(".");
  const inLayer = (stack === "encoder" || stack === "decoder") && !outsideLayers(name);
  return inLayer ? `${stack}.${layer}.${name}` : block;
}

/**
 * What is shown below the formula of a block.
 * @param {any} numbers
 * @param {string} block
 * @param {any} state layer, token and head
 * @param {{ inks: any, change: (patch: any) => void }} options
 */
export function blockNumbers(numbers, block, state, { inks, change }) {
  const side = blockSide(block);
  const stack = side === "source" ? "encoder" : "decoder";
  const tokens = numbers.tokens(side);
  const chosen = Math.min(state.token, tokens.length - 1);
  const found = numbers.blocks.get(placeOf(block, state.layer));
  const strips = (title, rows, more = {}) =>
    vectorStrips(tokens, rows, {
      title: say(`transformer.strip.${title}`),
      inks,
      chosen,
      choose: (token) => change({ token }),
      ...more,
    });
  const views = {
    tokens: () => [tokenList(tokens)],
    embedding: () => [strips("embedding", found.output)],
    positions: () => [
      strips("positions", found.added, numbers.kinds[stack].positions === "learned" ? {} : { greatest: 1 }),
      strips("placed", found.output),
    ],
    projection: () => [strips("before", found.input), strips("after", found.output)],
    norm: () => [strips("before", found.input), normFacts(found, chosen), strips("after", found.output)],
    add: () => [
      strips("stream", found.input),
      strips("added", found.added),
      strips("sum", found.output),
      addFacts(found, chosen),
    ],
    feed_forward: () => [
      strips("hidden", found.hidden, { positive: numbers.kinds[stack].activation === "relu" }),
      make("p", { class: "caption" }, activeFact(found.hidden[chosen])),
      strips("given", found.output),
    ],
    logits: () => [strips("final", numbers.final), candidates(numbers, chosen, tokens, change)],
    softmax: () => [candidates(numbers, chosen, tokens, change)],
  };
  const kind = blockKind(block);
  const attends = ["attention", "masked", "cross"].includes(kind);
  if (!attends) return views[kind]();
  const keys = kind === "cross" ? numbers.tokens("source") : tokens;
  return [...headViews(found.weights, tokens, keys, chosen, state, { inks, change }), strips("given", found.output)];
}

function tokenList(tokens) {
  return make(
    "ol",
    { class: "token-list", start: 0 },
    ...tokens.map((token, at) =>
      make("li", {}, make("small", {}, String(at)), make("b", { translate: "no" }, shownToken(token))),
    ),
  );
}

function normFacts({ means, deviations }, chosen) {
  return make(
    "p",
    { class: "caption" },
    say("transformer.norm.fact", { mean: cellNumber(means[chosen]), deviation: cellNumber(deviations[chosen]) }),
  );
}

const lengthOf = (row) => Math.hypot(...row);

function addFacts({ input, added }, chosen) {
  const [before, more] = [lengthOf(input[chosen]), lengthOf(added[chosen])];
  return make(
    "p",
    { class: "caption" },
    say("transformer.add.fact", { before: before.toFixed(1), more: more.toFixed(1) }),
  );
}

function activeFact(hidden) {
  const active = hidden.filter((value) => value > 0).length;
  return say("transformer.hidden.fact", { active, all: hidden.length, share: shareText(active / hidden.length) });
}

/** All heads small, one of them large with its row as bars. */
function headViews(weights, queries, keys, chosen, state, { inks, change }) {
  const head = Math.min(state.head, weights.length - 1);
  const small = weights.map((own, at) =>
    make(
      "button",
      {
        type: "button",
        class: "head-button",
        "aria-pressed": String(at === head),
        on: { click: () => change({ head: at }) },
      },
      weightPicture(own, inks, Math.max(6, Math.min(14, Math.floor(120 / Math.max(queries.length, keys.length))))),
      make("span", {}, say("head", { head: at })),
    ),
  );
  const rows = queries.map((token, i) =>
    make(
      "button",
      {
        type: "button",
        class: "small",
        "aria-pressed": String(i === chosen),
        "aria-label": say("transformer.query", { token: shownToken(token), at: i }),
        on: { click: () => change({ token: i }) },
      },
      shownToken(token),
    ),
  );
  return [
    make("div", { class: "head-buttons", role: "group", "aria-label": say("transformer.heads") }, ...small),
    make("div", { class: "tools", role: "group", "aria-label": say("transformer.queries") }, ...rows),
    make("p", { class: "caption" }, say("transformer.row", { token: shownToken(queries[chosen]), head })),
    bars(keys.map((token, j) => [shownToken(token), weights[head][chosen][j]])),
  ];
}

function bars(entries) {
  return make(
    "dl",
    { class: "bars" },
    ...entries.flatMap(([name, share]) => {
      const bar = make("i", {});
      bar.style.setProperty("--share", String(share));
      return [make("dt", { translate: "no" }, name), make("dd", {}, bar, make("span", {}, shareText(share)))];
    }),
  );
}

function candidates(numbers, chosen, tokens, change) {
  const steps = tokens.map((token, i) =>
    make(
      "button",
      {
        type: "button",
        class: "small",
        "aria-pressed": String(i === chosen),
        "aria-label": say("transformer.step", { token: shownToken(token), at: i }),
        on: { click: () => change({ token: i }) },
      },
      shownToken(token),
    ),
  );
  const written = tokens.slice(1, chosen + 1).join("");
  return make(
    "div",
    {},
    make("div", { class: "tools", role: "group", "aria-label": say("transformer.steps") }, ...steps),
    make("p", { class: "caption" }, written ? say("transformer.next", { written }) : say("transformer.next.first")),
    bars(numbers.start.candidates[chosen]),
  );
}
