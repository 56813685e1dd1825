// What is being looked at: one flat record of plain values. Every change goes through `set`, which
// drops whatever does not fit the recording, so views never meet an impossible state.

import { PALETTES } from "./colours.js";
import { NO_LENS } from "./look.js";
import { THEMES } from "./theme.js";

export const VIEWS = ["overview", "lines", "matrix", "heads", "steps"];
/** Of two sentences: everything, or from one (first letter) to one (second letter). */
export const PAIRS = ["all", "aa", "bb", "ab", "ba"];
const LANGUAGES = ["en", "zh"];

// Longer texts have mostly small weights: there the logarithm shows more.
const LONG = 64;

/** What the page shows before anybody has chosen anything. */
function firstState(recording) {
  // What serves the page may know its reader better than who wrote it.
  const { language: wished } = document.documentElement.dataset;
  const longest = Math.max(...recording.calls.map((call) => call.keys));
  const plain = {
    view: "overview", call: 0, head: 0,
    heads: null, // heads drawn as lines: null is all of them
    query: null, key: null, // pinned tokens, by their number in the recording
    ...NO_LENS,
    scale: longest > LONG ? "log" : "linear",
    theme: "auto", palette: "blue", language: wished ?? recording.language,
    sort: "", descending: true, filter: "", kinds: "",
    zoom: null, // the matrix: [row, column, magnification]
  };
  const first = fitState(recording, plain, recording.start);
  // The lines of all heads of a long text hide each other: there one head begins alone.
  if (longest > LONG && first.heads === null) first.heads = fitHeads([first.head], recording.calls[first.call].heads.length);
  return first;
}

/** `raw` with everything that does not fit replaced by what `fallback` says. */
function fitState(recording, fallback, raw) {
  const state = { ...fallback, ...Object.fromEntries(Object.entries(raw ?? {}).filter(([name]) => Object.hasOwn(fallback, name))) };
  const keep = (name, fits) => {
    if (!fits(state[name])) state[name] = fallback[name];
  };
  const among = (name, values) => keep(name, (value) => values.includes(value));
  among("view", VIEWS);
  among("special", ["show", "hide"]);
  among("words", ["apart", "merge"]);
  among("sinks", ["show", "first", "special"]);
  among("pair", recording.sentenceB ? PAIRS : ["all"]);
  among("scale", ["linear", "log"]);
  among("theme", THEMES);
  among("palette", PALETTES);
  among("language", LANGUAGES);
  among("sort", ["", "layer", ...recording.statistics]);
  among("kinds", ["", ...recording.calls.map((call) => call.kind)]);
  among("descending", [true, false]);
  keep("filter", (value) => typeof value === "string" && value.length < 200);
  keep("zoom", (value) => value === null || (Array.isArray(value) && value.length === 3 && value.every(Number.isFinite)));
  if (!isIndex(state.call, recording.calls.length)) state.call = fallback.call;
  const call = recording.calls[state.call];
  if (!isIndex(state.head, call.heads.length)) state.head = isIndex(fallback.head, call.heads.length) ? fallback.head : 0;
  state.heads = fitHeads(state.heads, call.heads.length);
  if (!isIndex(state.query, call.queries)) state.query = null;
  if (!isIndex(state.key, call.keys)) state.key = null;
  return state;
}

/** The state with its listeners. */
export class State {
  constructor(recording) {
    this.recording = recording;
    this.first = firstState(recording);
    this.now = this.first;
    this.listeners = [];
  }

  get call() {
    return this.recording.calls[this.now.call];
  }

  /** Changes some values; listeners hear of it once, with the names that changed. */
  set(patch, cause = "user") {
    const next = fitState(this.recording, this.now, withHead(this.now, patch));
    if (next.call !== this.now.call && !sameTokens(this.recording.calls[next.call], this.call)) {
      Object.assign(next, { query: patch.query ?? null, key: patch.key ?? null, zoom: patch.zoom ?? null });
    }
    const changed = Object.keys(next).filter((name) => String(next[name]) !== String(this.now[name]));
    if (changed.length === 0) return;
    this.now = next;
    for (const listener of this.listeners) listener(next, new Set(changed), cause);
  }

  /** What is shown if a page begins with these values. */
  beginning(patch) {
    return { ...this.first, ...withHead(this.first, patch) };
  }

  listen(listener) {
    this.listeners.push(listener);
  }
}

/** A head whose lines stand alone goes with the choice of head. */
function withHead({ head, heads }, patch) {
  const alone = heads?.length === 1 && heads[0] === head;
  return alone && patch.head !== undefined && patch.heads === undefined ? { ...patch, heads: [patch.head] } : patch;
}

/** Whether a pinned token of one call means the same in another. */
function sameTokens(one, other) {
  return one.kind === other.kind && one.run === other.run && one.queries === other.queries && one.keys === other.keys;
}

function isIndex(value, length) {
  return Number.isInteger(value) && value >= 0 && value < length;
}

function fitHeads(heads, count) {
  if (!Array.isArray(heads)) return null;
  const known = [...new Set(heads.filter((head) => isIndex(head, count)))].sort((a, b) => a - b);
  return heads.length > 0 && known.length === 0 ? null : known.length === count ? null : known;
}
