// A scrolling column of tokens. Only those in sight have elements, so that long texts stay fast.

import { make } from "./elements.js";
import { say } from "./languages.js";

const LEAST_ROW = 26;
const MOST_ROW = 38;

/** Tokens below each other; calls on.hover(index or −1), on.pin(index) and on.scroll(pixels moved by hand). */
export class TokenColumn {
  constructor(side, label, on) {
    this.on = on;
    this.label = say(side === "query" ? "matrix.query" : "matrix.key");
    this.names = [];
    this.pinned = -1;
    this.top = 0; // where it was when it moved last
    this.told = false; // whether the move came from code
    this.found = new Set(); // tokens that were searched for
    this.row = LEAST_ROW; // the height of a token
    this.space = make("div", { class: "space" });
    this.root = make(
      "div",
      { class: `column ${side}`, role: "group", "aria-label": label, on: { scroll: () => this.moved() } },
      this.space,
    );
    this.root.addEventListener("pointerleave", () => on.hover(-1));
  }

  setTokens(names, special) {
    this.names = names;
    this.special = special;
  }

  /** Gives every token its share of `room` pixels, within limits. */
  setRoom(room, tokens) {
    this.row = Math.max(LEAST_ROW, Math.min(MOST_ROW, Math.floor(room / Math.max(1, tokens))));
    this.space.style.height = `${this.names.length * this.row}px`;
    this.render();
  }

  /** The tokens in sight: first, and last exclusive. */
  get window() {
    const [top, height] = [this.root.scrollTop, this.root.clientHeight];
    return [Math.floor(top / this.row), Math.min(this.names.length, Math.ceil((top + height) / this.row))];
  }

  /** The middle of a token, from the visible top of the column. */
  middleOf(index) {
    return (index + 0.5) * this.row - this.root.scrollTop;
  }

  /** Scrolls as little as needed to see a token; `centre` puts it into the middle. */
  reveal(index, centre = false) {
    const { root } = this;
    const [top, bottom] = [index * this.row, (index + 1) * this.row];
    if (centre) this.scrollTo(top - (root.clientHeight - this.row) / 2);
    else if (top < root.scrollTop) this.scrollTo(top - this.row);
    else if (bottom > root.scrollTop + root.clientHeight) this.scrollTo(bottom - root.clientHeight + this.row);
  }

  setFound(found) {
    if (found.size === this.found.size && [...found].every((index) => this.found.has(index))) return;
    this.found = found;
    this.render();
  }

  setPinned(index) {
    this.pinned = index;
    for (const button of this.space.children) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.index) === index));
    }
  }

  /** The column has moved: by a hand, or because code moved it, which counts as 0. */
  moved() {
    const by = this.root.scrollTop - this.top;
    const told = this.told;
    [this.top, this.told] = [this.root.scrollTop, false];
    this.render();
    this.on.scroll(told ? 0 : by);
  }

  /** Moves without being followed. */
  scrollTo(top) {
    const before = this.root.scrollTop;
    this.root.scrollTop = top;
    if (this.root.scrollTop !== before) this.told = true;
  }

  moveBy(by) {
    this.scrollTo(this.root.scrollTop + by);
  }

  render() {
    const [first, last] = this.window;
    const focused = this.space.contains(document.activeElement)
      ? Number(/** @type {HTMLElement} */ (document.activeElement).dataset.index)
      : -1;
    const buttons = [];
    for (let index = first; index < last; index += 1) buttons.push(this.button(index));
    this.space.replaceChildren(...buttons);
    if (focused >= first && focused < last) this.space.children[focused - first].focus({ preventScroll: true });
  }

  button(index) {
    const button = make(
      "button",
      {
        type: "button",
        class: `token${this.special[index] ? " special" : ""}${this.found.has(index) ? " found" : ""}`,
        translate: "no",
        dir: "auto",
        "data-index": index,
        "aria-label": `${this.label} ${index}: ${this.names[index]}`,
        "aria-pressed": String(index === this.pinned),
        title: this.names[index],
        on: {
          // What a finger touches would be written above and move the token away before the tap is complete.
          pointerenter: (event) => event.pointerType !== "touch" && this.on.hover(index),
          focus: (event) => event.target.matches(":focus-visible") && this.on.hover(index),
          click: () => this.on.pin(index),
        },
      },
      this.names[index],
    );
    button.style.top = `${index * this.row}px`;
    button.style.lineHeight = button.style.height = `${this.row - 2}px`;
    return button;
  }
}
