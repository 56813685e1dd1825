// The help: keys, gestures, and what this page is.

import { make, press } from "./elements.js";
import { say } from "./languages.js";

const HELP_KEYS = [
  [["1", "2", "3", "4", "5"], "help.views"], [["↑", "↓"], "help.layers"], [["←", "→"], "help.heads"],
  [["⇧", "↑ ↓ ← →"], "help.tokens"], [["+", "−", "0"], "help.zoom"], [["Esc"], "help.unpin"], [["?"], "help.this"],
];

/** A dialog that is built when it opens. */
export class Help {
  constructor() {
    const click = (event) => event.target === this.dialog && this.close(); // outside of it
    const close = () => this.dialog.replaceChildren();
    this.dialog = make("dialog", { class: "help", "aria-labelledby": "help-title", on: { click, close } });
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
    this.dialog.replaceChildren();
  }

  open() {
    const rows = HELP_KEYS.map(([keys, text]) => [make("dt", { translate: "no" }, ...keys.map((key) => make("kbd", {}, key))), make("dd", {}, say(text))]);
    for (const [how, what] of [["help.wheel", "help.gestures"], ["help.click", "help.headclick"]]) {
      rows.push([make("dt", {}, say(how)), make("dd", {}, say(what))]);
    }
    this.dialog.replaceChildren(make("div", {},
      press("×", () => this.close(), { class: "quiet close", "aria-label": say("close") }),
      make("h2", { id: "help-title" }, say("help.title")), make("dl", {}, ...rows.flat()),
      make("p", { class: "formula" }, say("help.formula"), make("code", { translate: "no" }, "w = exp(s − lse),  s = c · q·k + b")),
      make("p", {}, say("help.about"))));
    this.dialog.showModal();
  }
}
