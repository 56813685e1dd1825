// The state of the map: call, head, the part in sight, what is pinned. It is also in the address.

import { PALETTES } from "/assets/page/colours.js";
import { TEXTS } from "/assets/page/languages.js";
import { isIndex, Store } from "/assets/page/store.js";
import { THEMES } from "/assets/page/theme.js";

const LONG_TEXT = 64;

/** The state of the map; the same shape as the page's, so that both share addresses. */
export class MapState extends Store {
  constructor(recording) {
    super(recording, firstPlace(recording));
  }

  fitted(patch) {
    return this.fit({ ...this.now, ...patch });
  }

  /** What is shown if the map begins with these values. */
  beginning(patch) {
    return { ...this.first, ...patch };
  }

  keepsPins(one, other) {
    return one.kind === other.kind && one.queries === other.queries && one.keys === other.keys;
  }

  /** Drops what does not fit the recording; an address may say anything. */
  fit(raw) {
    const state = Object.fromEntries(Object.keys(this.first).map((name) => [name, raw[name]]));
    const among = (name, values) => {
      if (!values.includes(state[name])) state[name] = this.first[name];
    };
    among("view", ["map", "text"]);
    state.heads = null;
    among("sinks", ["show", "first", "special"]);
    among("show", ["max", "mean"]);
    among("what", this.recording.what);
    among("side", ["query", "key"]);
    among("scale", ["linear", "log"]);
    among("theme", THEMES);
    among("palette", PALETTES);
    among("language", Object.keys(TEXTS));
    if (!isIndex(state.call, this.recording.calls.length)) state.call = this.first.call;
    const call = this.recording.calls[state.call];
    if (call.kind === "cross") state.view = "map"; // it has two texts
    if (!isIndex(state.head, call.heads.length)) state.head = 0;
    if (!isIndex(state.query, call.queries)) state.query = null;
    if (!isIndex(state.key, call.keys)) state.key = null;
    const { zoom } = state;
    if (!(Array.isArray(zoom) && zoom.length === 3 && zoom.every(Number.isFinite) && zoom[2] > 0)) state.zoom = null;
    return state;
  }
}

function firstPlace({ calls }) {
  const longest = Math.max(...calls.map((call) => call.keys));
  return {
    view: "map",
    call: Math.max(
      0,
      calls.findIndex((call) => call.weights),
    ),
    head: 0,
    heads: null,
    query: null,
    key: null,
    sinks: "show",
    show: "max",
    what: "weight",
    scale: longest > LONG_TEXT ? "log" : "linear",
    theme: "auto",
    palette: "blue",
    language: "en",
    side: "query",
    zoom: null, // [row in the middle, column in the middle, pixels of a cell]
  };
}
