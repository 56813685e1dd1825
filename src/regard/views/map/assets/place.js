// Where one is on the map: call, head, the part in sight, what is pinned. Lives in the address.

import { PALETTES } from "../page/colours.js";
import { TEXTS } from "../page/languages.js";
import { THEMES } from "../page/theme.js";

const LONG_TEXT = 64;

/** The state of the map with its listeners; the same shape as the page's, so that both share addresses. */
export class Place {
  constructor(recording) {
    this.recording = recording;
    const first = recording.calls.findIndex((call) => call.weights);
    const longest = Math.max(...recording.calls.map((call) => call.keys));
    this.first = {
      view: "map", call: Math.max(0, first), head: 0, heads: null, query: null, key: null,
      sinks: "show", show: "max", scale: longest > LONG_TEXT ? "log" : "linear",
      theme: "auto", palette: "blue", language: "en", side: "query",
      zoom: null, // [row in the middle, column in the middle, pixels of a cell]
    };
    this.now = this.first;
    this.listeners = [];
  }

  get call() {
    return this.recording.calls[this.now.call];
  }

  set(patch, cause = "user") {
    const next = this.fit({ ...this.now, ...patch });
    if (next.call !== this.now.call && !sameSize(this.recording.calls[next.call], this.call)) {
      Object.assign(next, { query: patch.query ?? null, key: patch.key ?? null, zoom: patch.zoom ?? null });
    }
    const changed = Object.keys(next).filter((name) => String(next[name]) !== String(this.now[name]));
    if (changed.length === 0) return;
    this.now = next;
    for (const listener of this.listeners) listener(next, new Set(changed), cause);
  }

  /** What is shown if the map begins with these values. */
  beginning(patch) {
    return { ...this.first, ...patch };
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  /** What does not fit the recording is dropped; an address may say anything. */
  fit(raw) {
    const state = Object.fromEntries(Object.keys(this.first).map((name) => [name, raw[name]]));
    const among = (name, values) => {
      if (!values.includes(state[name])) state[name] = this.first[name];
    };
    state.view = "map";
    state.heads = null;
    among("sinks", ["show", "first", "special"]);
    among("show", ["max", "mean"]);
    among("side", ["query", "key"]);
    among("scale", ["linear", "log"]);
    among("theme", THEMES);
    among("palette", PALETTES);
    among("language", Object.keys(TEXTS));
    if (!isPlace(state.call, this.recording.calls.length)) state.call = this.first.call;
    const call = this.recording.calls[state.call];
    if (!isPlace(state.head, call.heads.length)) state.head = 0;
    if (!isPlace(state.query, call.queries)) state.query = null;
    if (!isPlace(state.key, call.keys)) state.key = null;
    const { zoom } = state;
    if (!(Array.isArray(zoom) && zoom.length === 3 && zoom.every(Number.isFinite) && zoom[2] > 0)) state.zoom = null;
    return state;
  }
}

function isPlace(value, length) {
  return Number.isInteger(value) && value >= 0 && value < length;
}

function sameSize(one, other) {
  return one.kind === other.kind && one.queries === other.queries && one.keys === other.keys;
}
