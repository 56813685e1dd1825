// What the page shows: one flat record of plain values. Every change goes through `set`, which drops values
// that do not fit the recording, so views never meet an impossible state.

import { NO_LENS } from "./call_view.js";
import { PALETTES } from "./colours.js";
import { rolesOf } from "./roles.js";
import { isIndex, Store } from "./store.js";
import { THEMES } from "./theme.js";

const VIEWS = ["text", "overview", "lines", "matrix", "heads", "steps"];

/** The views of a recording: the picture is one of them if the model read a picture, speech if it heard some. */
export function viewsOf({ picture, speech }) {
  return [...VIEWS, ...(picture ? ["picture"] : []), ...(speech ? ["speech"] : [])];
}

/** Of two sentences: everything, or from one (first character) to one (second character). */
export const PAIRS = ["all", "aa", "bb", "ab", "ba"];
/** Which lines are drawn: the strongest of each query and head, or those of at least a weight. */
export const LEAST = ["best", "0.01", "0.05", "0.1", "0.25", "0.5"];
const LANGUAGES = ["en", "zh"];

// Longer texts have mostly small weights: there the logarithm shows more.
const LONG = 64;

/** What the page shows at first. */
function firstState(recording) {
  // A server may know the reader's language better than the file does.
  const { language: wished } = document.documentElement.dataset;
  const longest = Math.max(...recording.calls.map((call) => call.keys));
  const plain = {
    view: recording.speech ? "speech" : recording.picture ? "picture" : "text",
    call: 0,
    head: 0,
    heads: null, // heads drawn as lines: null is all of them
    query: null,
    key: null, // pinned tokens, by their number in the recording
    direction: "from", // the text: what the pinned token attends to, or what attends "to" it
    group: "head", // the text: one "head", the "mean" of its layer, or the heads of a role
    least: "best", // the lines: the "best" of each query, or those of at least this weight
    likely: "off", // the text: whether tokens are coloured by their probability
    quiet: "on", // the text: whether sinks are left unshaded
    ...NO_LENS,
    what: "weight", // what is shown of a pair: "weight", "gradient", their "product", or the "contribution"
    scale: longest > LONG ? "log" : "linear",
    theme: "auto",
    palette: "blue",
    language: wished ?? recording.language,
    sort: "",
    descending: true,
    filter: "",
    find: "", // the text that is searched for among the tokens
    kinds: "",
    role: "", // heads of this role alone
    embed: false, // without bars, for other documents
    zoom: null, // the matrix: [row, column, magnification]
  };
  const first = fitState(recording, plain, recording.start);
  // The lines of all heads of a long text hide each other, so there only one head is shown at first.
  if (longest > LONG && first.heads === null)
    first.heads = fitHeads([first.head], recording.calls[first.call].heads.length);
  return first;
}

/** `raw` with everything that does not fit replaced by what `fallback` says. */
function fitState(recording, fallback, raw) {
  const state = {
    ...fallback,
    ...Object.fromEntries(Object.entries(raw ?? {}).filter(([name]) => Object.hasOwn(fallback, name))),
  };
  const keep = (name, fits) => {
    if (!fits(state[name])) state[name] = fallback[name];
  };
  const among = (name, values) => keep(name, (value) => values.includes(value));
  among("view", viewsOf(recording));
  among("special", ["show", "hide"]);
  among("words", ["apart", "merge"]);
  among("sinks", ["show", "first", "special"]);
  among("pair", recording.sentenceB ? PAIRS : ["all"]);
  among("what", recording.what);
  among("scale", ["linear", "log"]);
  among("theme", THEMES);
  among("palette", PALETTES);
  among("language", LANGUAGES);
  among("sort", ["", "layer", "role", ...recording.statistics]);
  among("kinds", ["", ...recording.calls.map((call) => call.kind)]);
  among("descending", [true, false]);
  among("embed", [true, false]);
  among("direction", ["from", "to"]);
  among("quiet", ["on", "off"]);
  among("likely", ["on", "off"]);
  among("least", LEAST);
  const throughLayers = ["relevance", "rollout"].filter((name) => recording[name].length);
  among("group", ["head", "mean", ...throughLayers, ...rolesOf(recording)]);
  among("role", ["", ...rolesOf(recording)]);
  for (const name of ["filter", "find"]) keep(name, (value) => typeof value === "string" && value.length < 200);
  keep(
    "zoom",
    (value) => value === null || (Array.isArray(value) && value.length === 3 && value.every(Number.isFinite)),
  );
  if (!isIndex(state.call, recording.calls.length)) state.call = fallback.call;
  const call = recording.calls[state.call];
  if (!isIndex(state.head, call.heads.length))
    state.head = isIndex(fallback.head, call.heads.length) ? fallback.head : 0;
  state.heads = fitHeads(state.heads, call.heads.length);
  if (!isIndex(state.query, call.queries)) state.query = null;
  if (!isIndex(state.key, call.keys)) state.key = null;
  return state;
}

/** The state of the page. */
export class PageState extends Store {
  constructor(recording) {
    super(recording, firstState(recording));
  }

  fitted(patch) {
    return fitState(this.recording, this.now, withHead(this.now, patch));
  }

  /** A call whose numbers the page does not have is shown once they are here. */
  set(patch, cause = "user") {
    const { calls, layers } = this.recording;
    const { call, view } = this.fitted(patch);
    if (!calls[call].present) layers.open(call, () => this.set(patch, cause));
    else {
      // Who goes elsewhere no longer waits.
      if (call !== this.now.call || view !== this.now.view) layers.leave();
      super.set(patch, cause);
    }
  }

  /** What is shown if a page begins with these values. */
  beginning(patch) {
    const begun = { ...this.first, ...withHead(this.first, withCall(this.recording, patch)) };
    // Who asks for the lines of a head means that head alone.
    const alone = begun.view === "lines" && patch.head !== undefined && patch.heads === undefined;
    return alone ? { ...begun, heads: [patch.head] } : begun;
  }

  /** Whether a pinned token of one call means the same in another. */
  keepsPins(one, other) {
    return one.kind === other.kind && one.run === other.run && one.queries === other.queries && one.keys === other.keys;
  }
}

/** An address may name the layer and the kind in place of the call. */
function withCall({ calls }, patch) {
  if (patch.call !== undefined || patch.layer === undefined) return patch;
  const found = calls.find(({ layer, kind }) => layer === patch.layer && kind === (patch.kind ?? kind));
  return found ? { ...patch, call: found.index } : patch;
}

/** If only the lines of the current head are shown, choosing another head shows those of that head. */
function withHead({ head, heads }, patch) {
  const alone = heads?.length === 1 && heads[0] === head;
  return alone && patch.head !== undefined && patch.heads === undefined ? { ...patch, heads: [patch.head] } : patch;
}

function fitHeads(heads, count) {
  if (!Array.isArray(heads)) return null;
  const known = [...new Set(heads.filter((head) => isIndex(head, count)))].sort((a, b) => a - b);
  return heads.length > 0 && known.length === 0 ? null : known.length === count ? null : known;
}
