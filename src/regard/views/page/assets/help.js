// The help: keys, gestures, and what this page is.

import { make } from "./elements.js";
import { say } from "./languages.js";

const HELP_KEYS = [
  [["1", "2", "3", "4", "5"], "help.views"], [["↑", "↓"], "help.layers"], [["←", "→"], "help.heads"],
  [["⇧", "↑ ↓ ← →"], "help.tokens"], [["+", "−", "0"], "help.zoom"], [["Esc"], "help.unpin"], [["?"], "help.this"],
];

/** A dialog that is built when it opens. */
export class Help {
  constructor() {
    this.dialog = make("dialog", { class: "help", on: { click: (event) => event.target === this.dialog && this.close() } });
  }

  get isOpen() {
    return this.dialog.open;
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
  }

  close() {
    this.dialog.close();
  }

  open() {
    const rows = HELP_KEYS.map(([keys, text]) => [make("dt", { translate: "no" }, ...keys.map((key) => make("kbd", {}, key))), make("dd", {}, say(text))]);
    const gestures_ = [["help.wheel", "help.gestures"], ["help.click", "help.headclick"]].map(([how, what]) => [make("dt", {}, say(how)), make("dd", {}, say(what))]);
    this.dialog.setAttribute("aria-label", say("help.title"));
    this.dialog.replaceChildren(make("div", {},
      make("button", { type: "button", class: "quiet close", "aria-label": say("close"), on: { click: () => this.close() } }, "×"),
      make("h2", {}, say("help.title")), make("dl", {}, ...rows.flat(), ...gestures_.flat()),
      make("p", { class: "formula" }, say("help.formula"), make("code", { translate: "no" }, "w = exp(s − lse),  s = scale · q·k + bias")),
      make("p", {}, say("help.about"))));
    this.dialog.showModal();
  }
}
