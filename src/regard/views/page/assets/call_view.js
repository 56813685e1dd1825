// One call seen through a lens: weights of groups of tokens in place of tokens.

import {
  addRemoved,
  groupNames,
  groupTokens,
  meanOverGroups,
  outsideSentence,
  quantityThroughLens,
  sinkKeys,
  throughLens,
} from "./lens.js";

/** The parts of the state that make the lens, with the values for which it changes nothing. */
export const NO_LENS = { special: "show", words: "apart", sinks: "show", pair: "all" };
export const LENS = Object.keys(NO_LENS);
/** The parts of the state that decide which numbers are shown: the lens, and the quantity seen through it. */
export const SHOWN = [...LENS, "what"];

/** A quantity of a call through a lens: tokens hidden, words merged, sinks removed. */
export class CallView {
  constructor(call, { special, words, sinks, pair, what = "weight" }, named = "what.weight") {
    this.call = call;
    this.what = what;
    /** The key of the quantity's name. */
    this.named = named;
    this.sinks = sinkKeys(call.keySpecial, sinks);
    const [from, to] = pair === "all" ? [null, null] : pair;
    const hidden = (marks, sentence) => {
      const outside = outsideSentence(marks.length, call.sentenceB, sentence);
      return marks.map((is, token) => (special === "hide" && is) || outside[token]);
    };
    const merge = words === "merge";
    this.rows = groupTokens(call.queryWords, hidden(call.querySpecial, from), merge);
    const gone = hidden(call.keySpecial, to).map((is, key) => is || this.sinks[key]);
    this.columns = groupTokens(call.keyWords, gone, merge);
    const texts = call.tokensOf(what);
    this.rowNames = groupNames(this.rows, texts.query);
    this.columnNames = groupNames(this.columns, texts.key);
    /** Whether the lens changes nothing, so that thumbnails made in advance are right. */
    this.plain = this.rows.count === call.queries && this.columns.count === call.keys;
    this.removedOf = new Map();
    this.meansOf = new Map();
  }

  /** About how many multiplications one pair of groups costs. */
  get effort() {
    const { call, rows, columns } = this;
    const twice = this.what === "difference" ? Math.max(call.twin?.channels ?? 0, 8) : call.valueChannels;
    const channels = Math.max(call.channels, 8) + (this.what === "weight" ? 0 : twice);
    return (channels * call.queries * call.keys) / Math.max(1, rows.count * columns.count);
  }

  /** Weights of the groups rowFrom … rowTo − 1 by columnFrom … columnTo − 1, row by row. */
  weights(head, rowFrom, rowTo, columnFrom, columnTo) {
    if (rowTo <= rowFrom || columnTo <= columnFrom) return new Float32Array(0);
    const { rows, columns } = this;
    const [top, bottom] = [rows.first[rowFrom], rows.last[rowTo - 1]];
    const [left, right] = [columns.first[columnFrom], columns.last[columnTo - 1]];
    const tokens = this.call.weights(head, top, bottom, left, right);
    if (this.plain) return tokens;
    return throughLens(tokens, rows, rowFrom, rowTo, columns, columnFrom, columnTo, this.removedTokens(head));
  }

  /** The numbers that are shown: weights, or another quantity, NaN where it is masked. */
  values(head, rowFrom, rowTo, columnFrom, columnTo) {
    if (this.what === "weight") return this.weights(head, rowFrom, rowTo, columnFrom, columnTo);
    if (rowTo <= rowFrom || columnTo <= columnFrom) return new Float32Array(0);
    const { rows, columns, what } = this;
    const [top, bottom] = [rows.first[rowFrom], rows.last[rowTo - 1]];
    const [left, right] = [columns.first[columnFrom], columns.last[columnTo - 1]];
    const tokens = this.call.values(what, head, top, bottom, left, right);
    if (this.plain) return tokens;
    return quantityThroughLens(tokens, rows, rowFrom, rowTo, columns, columnFrom, columnTo, what === "gradient");
  }

  /** One row of the numbers that are shown. */
  row(head, row) {
    return this.values(head, row, row + 1, 0, this.columns.count);
  }

  /** The mass that was removed from each query token. */
  removedTokens(head) {
    if (!this.removedOf.has(head)) {
      const { call } = this;
      const removed = new Float32Array(call.queries);
      for (let from = 0; from < call.keys; from += 1) {
        if (!this.sinks[from]) continue;
        let to = from + 1;
        while (this.sinks[to]) to += 1;
        addRemoved(removed, call.weights(head, 0, call.queries, from, to), to - from);
        from = to;
      }
      this.removedOf.set(head, removed);
    }
    return this.removedOf.get(head);
  }

  /** The mass that was removed from each row shown. */
  removed(head) {
    if (!this.meansOf.has(head)) this.meansOf.set(head, meanOverGroups(this.removedTokens(head), this.rows));
    return this.meansOf.get(head);
  }

  /** The row that shows a query token, or −1. */
  rowOf(query) {
    return query === null ? -1 : (this.rows.groupOf[query] ?? -1);
  }

  /** The column that shows a key token, or −1. */
  columnOf(key) {
    return key === null ? -1 : (this.columns.groupOf[key] ?? -1);
  }
}
