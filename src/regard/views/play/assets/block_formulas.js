// The formula of every kind of block.

import { brackets, displayed, frac, mathGap, mathName, mathRow, root, sub, sup, transposed } from "./drawing.js";

const scores = () => frac(mathRow("Q", transposed("K")), root(sub("d", "k")));

const attention = () => displayed(mathName("softmax"), brackets(scores()), "V");

const projections = (of) =>
  displayed(
    ...["q", "k", "v"].flatMap((letter, at) => [
      ...(at ? [mathGap()] : []),
      letter.toUpperCase(),
      "=",
      at ? of : "x",
      sub("W", letter),
    ]),
  );

const wave = (name, channel) =>
  displayed(
    sub("p", mathRow("t", ",", ...channel)),
    "=",
    mathName(name),
    brackets(frac("t", sup("10000", mathRow("2", "i", "/", "d")))),
  );

/** Formulas by the kind of a block, each for a stack built in this way. */
export const BLOCK_FORMULAS = {
  tokens: () => [],
  embedding: ({ embedding_norm: unscaled }) => [
    displayed("x", "=", ...(unscaled ? [] : [root("d")]), sub("E", mathName("token"))),
  ],
  positions: ({ positions }) =>
    positions === "learned"
      ? [displayed("y", "=", "x", "+", sub("P", "t"))]
      : [wave("sin", ["2", "i"]), wave("cos", ["2", "i", "+", "1"])],
  norm: () => [
    displayed(
      mathName("LayerNorm"),
      brackets("x"),
      "=",
      "γ",
      frac(mathRow("x", "−", "μ"), root(sup("σ", "2"), "+", "ε")),
      "+",
      "β",
    ),
  ],
  attention: () => [projections("x"), attention()],
  masked: () => [
    projections("x"),
    displayed(mathName("softmax"), brackets(scores(), "+", "M"), "V"),
    displayed(sub("M", mathRow("i", "j")), "=", "−∞", mathGap(), "j", ">", "i"),
  ],
  cross: () => [projections("c"), attention()],
  add: ({ norm }) => [
    displayed(
      ...["y", "=", "x", "+", mathName("Block")],
      norm === "pre" ? brackets(mathName("LayerNorm"), brackets("x")) : brackets("x"),
    ),
  ],
  projection: () => [displayed("c", "=", "x", "W", "+", "b")],
  feed_forward: ({ activation }) => [
    displayed(
      mathName("FFN"),
      brackets("x"),
      "=",
      mathName(activation === "gelu" ? "GELU" : "max"),
      brackets(...(activation === "gelu" ? [] : ["0", ","]), "x", sub("W", "1"), "+", sub("b", "1")),
      sub("W", "2"),
      "+",
      sub("b", "2"),
    ),
  ],
  logits: () => [displayed("z", "=", "x", transposed("E"))],
  softmax: () => [
    displayed(
      sub("p", "i"),
      "=",
      frac(mathRow(mathName("exp"), sub("z", "i")), mathRow(sub("∑", "j"), mathName("exp"), sub("z", "j"))),
    ),
  ],
};
