// The search: finds tokens in every view, and goes from one to the next and to the strongest key.

import { make, press } from "./elements.js";
import { say } from "./languages.js";
import { TokenSearch } from "./token_search.js";

/** The searches of texts, which are shared by all calls that read the same text. */
const searches = new WeakMap();

function searchOf(tokens) {
  if (!searches.has(tokens)) searches.set(tokens, new TokenSearch(tokens));
  return searches.get(tokens);
}

/**
 * The tokens of a call that hold a text: in order, and as sets for each side.
 * @param {any} call
 * @param {string} wanted
 * @returns {{ list: { side: string, token: number }[], query: Set<number>, key: Set<number> }}
 */
export function foundIn(call, wanted) {
  const found = { list: [], query: new Set(), key: new Set() };
  if (!wanted.trim()) return found;
  const look = (side, tokens) => {
    for (const { from, to } of searchOf(tokens).matches(wanted)) {
      found.list.push({ side, token: from });
      for (let token = from; token < to; token += 1) found[side].add(token);
    }
  };
  look("key", call.keyTokens);
  if (call.kind === "cross") look("query", call.queryTokens);
  else for (const token of found.key) if (token >= call.offset) found.query.add(token - call.offset);
  return found;
}

/**
 * What is pinned to show a match: its row where it has one.
 * @param {any} call
 * @param {{ side: string, token: number }} match
 * @param {string} direction of the text
 */
export function pinsOfMatch(call, { side, token }, direction) {
  if (call.kind === "cross") return side === "key" ? { query: null, key: token } : { query: token, key: null };
  if (direction === "to" || token < call.offset) return { query: null, key: token };
  return { query: token - call.offset, key: null };
}

/** The bar of the search, hidden until it is opened. */
export class FindBar {
  constructor(app) {
    this.app = app;
    this.at = -1;
    this.input = make("input", {
      type: "search",
      placeholder: say("find.placeholder"),
      "aria-label": say("find"),
      autocomplete: "off",
      spellcheck: "false",
      on: {
        input: () => app.state.set({ find: this.input.value }),
        keydown: (event) => this.pressed(event),
      },
    });
    this.count = make("span", { class: "hint", role: "status" });
    this.root = make(
      "div",
      { class: "find-bar", role: "search", hidden: true },
      this.input,
      press("‹", () => this.step(-1), { "aria-label": say("find.before") }),
      press("›", () => this.step(1), { "aria-label": say("find.next") }),
      this.count,
      press(say("find.strongest"), () => app.toStrongest(), { title: say("find.strongest.how") }),
      press("×", () => this.close(), { class: "quiet close-find", "aria-label": say("find.close") }),
    );
    this.update(app.state.now);
  }

  pressed(event) {
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  open() {
    this.root.hidden = false;
    this.input.focus();
    this.input.select();
  }

  close() {
    this.root.hidden = true;
    this.app.state.set({ find: "" });
    this.app.focusView();
  }

  /** The state has changed: another text is searched, or another call. */
  update({ find }) {
    if (find !== this.input.value && document.activeElement !== this.input) this.input.value = find;
    if (find) this.root.hidden = false;
    this.at = -1;
    const { list } = this.app.found();
    this.count.textContent = !find.trim()
      ? ""
      : say(list.length ? "find.count" : "find.none", { count: list.length, at: "" });
  }

  step(by) {
    const { list } = this.app.found();
    if (!list.length) return;
    const { state } = this.app;
    this.at = this.at < 0 ? (by > 0 ? 0 : list.length - 1) : (this.at + by + list.length) % list.length;
    const at = this.at;
    const pins = pinsOfMatch(state.call, list[at], state.now.view === "text" ? state.now.direction : "from");
    state.set(pins);
    this.app.view.showPin?.();
    this.at = at;
    this.count.textContent = say("find.at", { at: at + 1, count: list.length });
  }
}
