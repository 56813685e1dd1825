// Which word attends to which: the words twice, with lines between them as thick as the weights.

import { drawn, redraw } from "./drawing.js";

const LINES = { width: 440, left: 140, right: 290, row: 40 };

const shortWord = (word) => ([...word].length > 11 ? `${[...word].slice(0, 10).join("")}…` : word);

export class WordLines {
  /**
   * @param {string[]} words
   * @param {{ label: string, colour: string }} options
   */
  constructor(words, { label, colour }) {
    const { width, left, right, row } = LINES;
    const y = (i) => row / 2 + 4 + i * row;
    this.chosen = null;
    this.lines = words.map((_, i) =>
      words.map((__, j) => {
        const middle = (left + right) / 2;
        const d = `M${left + 6} ${y(i)}C${middle} ${y(i)} ${middle} ${y(j)} ${right - 6} ${y(j)}`;
        return drawn("path", { d, stroke: colour });
      }),
    );
    this.queries = words.map((word, i) => this.query(word, i, y(i)));
    this.shares = words.map(() => drawn("tspan", { class: "share" }));
    const keys = words.map((word, j) => drawn("text", { x: right + 4, y: y(j) + 6 }, shortWord(word), this.shares[j]));
    this.root = drawn(
      "svg",
      { class: "word-lines", viewBox: `0 0 ${width} ${words.length * row + 8}`, role: "group", "aria-label": label },
      drawn("g", { fill: "none" }, ...this.lines.flat()),
      ...keys,
      ...this.queries,
    );
    this.root.addEventListener("pointerleave", () => this.choose(null));
  }

  query(word, i, y) {
    const { left, row } = LINES;
    const choose = () => this.choose(i);
    return drawn(
      "g",
      {
        class: "word",
        role: "button",
        tabindex: 0,
        "aria-label": word,
        on: { pointerenter: choose, click: choose, focus: choose },
      },
      drawn("rect", { x: 0, y: y - row / 2 + 2, width: left, height: row - 4, rx: 6 }),
      drawn("text", { x: left - 6, y: y + 6, "text-anchor": "end" }, shortWord(word)),
    );
  }

  choose(chosen) {
    this.chosen = chosen;
    this.show(this.weights);
  }

  /** The weights, (query, key). */
  show(weights) {
    const { chosen } = this;
    this.weights = weights;
    weights.forEach((row, i) => {
      redraw(this.queries[i], { "aria-pressed": chosen === i });
      row.forEach((weight, j) => {
        const strong = chosen === null ? 0.1 + 0.65 * weight : chosen === i ? 0.2 + 0.8 * weight : 0.04;
        redraw(this.lines[i][j], { "stroke-width": 0.5 + 14 * weight, "stroke-opacity": strong });
      });
    });
    this.shares.forEach((share, j) => {
      share.textContent = chosen === null ? "" : `  ${Math.round(100 * weights[chosen][j])}%`;
    });
  }
}
