// The text of a long recording, one window of it at a time: the token that is pointed at or pinned shades the others.

import { datum, make, press, segments } from "/assets/page/elements.js";
import { say } from "/assets/page/languages.js";
import { quantityText, shareText } from "/assets/page/numbers.js";
import { pairParts } from "/assets/page/roles.js";
import { Shading } from "/assets/page/shading.js";
import { greatestPlaces, greatestSizeOf, restsOnFirst, strongestColour } from "/assets/page/text_weights.js";
import { getNumbers } from "./client.js";

export const TEXT_WINDOW = 1500; // tokens
const MOST_LISTED = 8;
const MOST_KEPT = 24; // lines of numbers
const AFTER_POINTING = 40; // milliseconds of rest until a line is fetched
const DECADES = 2;
const SCREEN = 0.9; // of the height in sight, so that the last line is seen again

export class TextWindow {
  constructor(app) {
    this.app = app;
    this.pointed = null;
    this.line = null; // { token, direction, values } that is shown
    this.kept = new Map();
    this.asked = 0;
    this.from = 0;
    this.direction = "from";
    this.caption = make("p", { class: "text-caption", role: "status", "aria-live": "polite" });
    this.listed = make("ol", { class: "strongest", "aria-label": say("text.strongest") });
    this.place = make("span", { class: "hint" });
    this.before = press("‹", () => this.turn(-1), { "aria-label": say("map.text.before") });
    this.after = press("›", () => this.turn(1), { "aria-label": say("map.text.after") });
    this.ways = make("span", {});
    this.running = make("div", {
      class: "running",
      role: "listbox",
      tabindex: "0",
      translate: "no",
      "aria-label": say("text.label"),
      on: {
        pointermove: (event) => this.point(event.pointerType === "touch" ? null : tokenOf(event)),
        pointerleave: () => this.point(null),
        click: (event) => tokenOf(event) !== null && this.pin(tokenOf(event)),
        keydown: (event) => this.walk(event),
      },
    });
    this.scroller = make("div", { class: "scroll" }, make("div", { class: "book middling" }, this.running));
    this.root = make(
      "section",
      { class: "view text map-text", "aria-label": say("map.text"), hidden: true },
      make("div", { class: "view-bar text-bar" }, this.before, this.place, this.after, this.ways),
      make("div", { class: "text-said" }, this.caption, this.listed),
      this.scroller,
    );
  }

  /** The text is that of the keys; queries are its last tokens. */
  get offset() {
    const { call } = this.app.state;
    return call.keys - call.queries;
  }

  /** The pinned token of the text, or null. */
  get pinned() {
    const { query, key } = this.app.state.now;
    if (this.direction === "to") return key;
    return query === null ? null : query + this.offset;
  }

  update(now, changed) {
    this.root.hidden = now.view !== "text";
    if (this.root.hidden) return;
    if (!changed || ["call", "head", "what"].some((name) => changed.has(name))) this.kept.clear();
    if (!changed || changed.has("view") || changed.has("call")) {
      this.open(this.pinned ?? this.from);
      this.reveal(this.pinned, "center");
    } else if (changed.has("query") || changed.has("key")) {
      this.pointed = null; // what was pinned last is shown until the pointer moves
      this.reveal(this.pinned);
    }
    this.buildBar();
    this.fetchLine();
  }

  buildBar() {
    const options = ["from", "to"].map((name) => [name, say(`text.${name}`)]);
    this.ways.replaceChildren(segments(options, this.direction, (way) => this.choose(way), say("text.direction")));
    const { length } = this.app.keyTokens;
    const to = Math.min(this.from + TEXT_WINDOW, length);
    const [first, last, count] = [this.from, to - 1, length].map((number) => number.toLocaleString("en"));
    this.place.textContent = say("map.text.place", { first, last, count });
    this.before.disabled = this.from === 0;
    this.after.disabled = to >= length;
  }

  /** The other direction, with the same token pinned. */
  choose(direction) {
    const token = this.pinned;
    this.direction = direction;
    if (token !== null) this.app.state.set(this.pinsOf(token));
    this.buildBar();
    this.fetchLine();
  }

  // ---- windows -----------------------------------------------------------------------------------

  /** Shows the window that a token is in; the one under the pointer is another one then. */
  open(token) {
    const inside = Math.max(0, Math.min(token, this.app.keyTokens.length - 1));
    this.from = Math.floor(inside / TEXT_WINDOW) * TEXT_WINDOW;
    this.point(null);
    const { keyTokens, keySpecial, texts, state } = this.app;
    const { spaces } = texts[state.call.keyText];
    const parts = [];
    this.elements = [];
    this.colours = []; // of the elements
    for (let at = this.from; at < Math.min(this.from + TEXT_WINDOW, keyTokens.length); at += 1) {
      const kind = keySpecial.has(at) ? "token special" : "token";
      const element = make("span", { class: kind, role: "option", id: `token-${at}`, "data-token": at }, keyTokens[at]);
      this.elements.push(element);
      if (spaces[at] === "0") {
        element.classList.add("joined");
        parts.at(-1)?.classList.add("joins");
      } else if (parts.length) parts.push(" ");
      parts.push(element);
      if (keyTokens[at].endsWith("⏎")) parts.push(make("br", { role: "presentation" }));
    }
    this.running.replaceChildren(...parts);
    this.mark();
    this.paint();
  }

  /** Marks the tokens of this window that hold the searched text. */
  mark() {
    const { found, state } = this.app;
    const before = state.now.side === "query" ? this.offset : 0;
    const tokens = new Set();
    for (const { from, to } of found) for (let at = from; at < to; at += 1) tokens.add(before + at);
    this.elements?.forEach((element, index) => {
      element.classList.toggle("found", tokens.has(this.from + index));
    });
  }

  turn(by) {
    this.open(this.from + by * TEXT_WINDOW);
    this.buildBar();
    this.scroller.scrollTop = 0;
  }

  /** A screen up or down. Beyond the first and the last line the window is turned, so that no line is skipped. */
  scrollScreen(by) {
    const { scroller } = this;
    const was = scroller.scrollTop;
    scroller.scrollTop += by * SCREEN * scroller.clientHeight;
    if (scroller.scrollTop !== was || (by < 0 ? this.before : this.after).disabled) return;
    this.turn(by);
    if (by < 0) scroller.scrollTop = scroller.scrollHeight;
  }

  /** Brings a token into sight, in its window. */
  reveal(token, block = "nearest") {
    if (token === null) return;
    if (token < this.from || token >= this.from + TEXT_WINDOW) this.open(token);
    this.elements[token - this.from]?.scrollIntoView({ block });
  }

  // ---- pointing and pinning ----------------------------------------------------------------------

  point(token) {
    if (token === this.pointed) return;
    this.pointed = token;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.fetchLine(), AFTER_POINTING);
  }

  pinsOf(token) {
    if (this.direction === "to") return { query: null, key: token };
    return { query: token < this.offset ? null : token - this.offset, key: null };
  }

  pin(token) {
    const again = token === this.pinned;
    this.app.state.set(again ? { query: null, key: null } : this.pinsOf(token));
    this.running.focus({ preventScroll: true });
  }

  walk(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    const last = this.app.keyTokens.length - 1;
    const next = (this.pinned ?? this.from - 1) + steps[event.key];
    this.app.state.set(this.pinsOf(Math.max(this.direction === "from" ? this.offset : 0, Math.min(last, next))));
    event.preventDefault();
    event.stopPropagation();
  }

  // ---- numbers -----------------------------------------------------------------------------------

  /** Fetches what the token in focus attends to, or what attends to it: all of the text, so that far keys are listed. */
  async fetchLine() {
    const token = this.pointed ?? this.pinned;
    const { now, call } = this.app.state;
    const { direction } = this;
    this.asked += 1;
    const ticket = this.asked;
    const own = direction === "from" ? token - this.offset : token;
    if (token === null || own < 0 || !call.weights) {
      this.show(null);
      return;
    }
    const side = direction === "from" ? "query" : "key";
    const name = `${now.call} ${now.head} ${now.what} ${side} ${own}`;
    if (!this.kept.has(name)) {
      const path = `${this.app.path}/lines/${now.call}/${call.heads[now.head]}/${side}/${own}?what=${now.what}`;
      const found = await getNumbers(path).catch(() => null);
      if (!found) return;
      if (this.kept.size >= MOST_KEPT) this.kept.delete(this.kept.keys().next().value);
      this.kept.set(name, found.values);
    }
    // Another token or head is wanted by now.
    if (ticket !== this.asked || token !== (this.pointed ?? this.pinned)) return;
    this.show({ token, direction, values: this.kept.get(name) });
  }

  show(line) {
    this.line = line;
    this.paint();
    this.tell();
  }

  /** The number of every token of the text, 0 where none is shaded: masked pairs, and keys that weight rests on. */
  numbersOf({ values, direction }) {
    const { keySpecial, keyTokens } = this.app;
    const shown = new Float32Array(keyTokens.length);
    const first = direction === "from" ? 0 : this.offset;
    for (let at = first; at < shown.length; at += 1) shown[at] = values[at - first] || 0;
    if (direction === "from") {
      for (const token of keySpecial) shown[token] = 0;
      if (restsOnFirst(values[0])) shown[0] = 0;
    }
    return shown;
  }

  paint() {
    const { line } = this;
    if (!this.elements) return;
    this.shown = null;
    if (line) {
      const { state, inks } = this.app;
      this.shown = this.numbersOf(line);
      const { what, scale } = state.now;
      const signed = what === "gradient" || what === "product";
      const greatest = what === "weight" ? strongestColour(this.shown) : greatestSizeOf(this.shown);
      this.shading = new Shading({ ramp: signed ? inks.signed : inks.ramp, scale, signed, greatest, what });
    }
    const here = line?.token ?? null;
    this.elements.forEach((element, index) => {
      const token = this.from + index;
      const value = this.shown ? this.shown[token] : 0;
      const strength = value === 0 ? 0 : this.shading.strength(value, DECADES);
      const place = strength > 0.02 ? this.shading.place(value, DECADES) : -1;
      const background = place < 0 ? "" : this.shading.colour(place);
      if (background !== (this.colours[index] ?? "")) {
        this.colours[index] = background;
        Object.assign(element.style, { background, color: place < 0 ? "" : this.shading.ink(place) });
      }
      element.classList.toggle("here", token === here);
      element.classList.toggle("shaded", token === here && place >= 0);
      if (token === this.pinned) element.setAttribute("aria-selected", "true");
      else element.removeAttribute("aria-selected");
    });
    const pinned = this.elements[this.pinned === null ? -1 : this.pinned - this.from];
    if (pinned) this.running.setAttribute("aria-activedescendant", pinned.id);
    else this.running.removeAttribute("aria-activedescendant");
  }

  /** Who attends to whom, in words; the strongest others can be gone to, however far away they are. */
  tell() {
    const { state, keyTokens } = this.app;
    const { call, now } = state;
    const where = `${say("layer.n", { layer: call.layer })} · ${say("text.head.n", { head: call.heads[now.head] })}`;
    const hint = make("span", { class: "hint" }, say("text.nothing"));
    if (!this.line) {
      this.caption.replaceChildren(make("span", { class: "where" }, where), " ", hint);
      this.listed.replaceChildren();
      return;
    }
    const { token, direction } = this.line;
    const said = (value) => (now.what === "weight" ? shareText(value) : quantityText(value, now.what));
    const best = greatestPlaces(this.shown, MOST_LISTED);
    const names = (other) =>
      direction === "from" ? [keyTokens[token], keyTokens[other]] : [keyTokens[other], keyTokens[token]];
    const told = best.length
      ? pairParts(...names(best[0]), this.shown[best[0]], said(this.shown[best[0]]))
      : [datum(keyTokens[token], "pair-token"), " ", make("span", { class: "hint" }, say("text.blind"))];
    this.caption.replaceChildren(make("span", { class: "where" }, say("text.where", { where })), ...told);
    this.listed.replaceChildren(
      ...best.map((other) =>
        make(
          "li",
          {},
          press(
            [datum(keyTokens[other], "pair-token"), " ", datum(said(this.shown[other]), "number")],
            () => this.reveal(other),
            { class: "link", title: say("map.text.go", { token: keyTokens[other], place: other }) },
          ),
        ),
      ),
    );
  }
}

/** The token under an event, or null. */
function tokenOf(event) {
  const found = event.target.closest?.("[data-token]");
  return found ? Number(found.dataset.token) : null;
}
