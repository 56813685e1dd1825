// The help: keys, gestures, and what this page is.

import { make, press } from "./elements.js";
import { say } from "./languages.js";
import { explainedQuantity, quantityKey } from "./quantities.js";

const HELP_KEYS = [
  [["1", "2", "3", "4", "5", "6"], "help.views"],
  [["↑", "↓"], "help.layers"],
  [["←", "→"], "help.heads"],
  [["⇧", "↑ ↓ ← →"], "help.tokens"],
  [["Tab", "↑ ↓ ← →"], "help.text"],
  [["+", "−", "0"], "help.zoom"],
  [["/"], "help.find"],
  [["n", "N"], "help.next"],
  [["s"], "help.strongest"],
  [["Esc"], "help.unpin"],
  [["?"], "help.this"],
];

/** Rows of a list: keys, and what they do. */
export function keyRows(rows) {
  return rows.flatMap(([keys, text]) => [
    make("dt", { translate: "no" }, ...keys.map((key) => make("kbd", {}, key))),
    make("dd", {}, say(text)),
  ]);
}

/** The title and the content of the help; where there is more than weights, also what it is. */
export function pageHelp(recording) {
  const more = recording.what.length > 1;
  const quantities = recording.what.map((what) => quantityKey(recording, what));
  const gestures = [
    ["help.wheel", "help.gestures"],
    ["help.click", "help.headclick"],
  ];
  const rows = [
    ...keyRows([
      ...HELP_KEYS,
      ...(more ? [[["w"], "help.what"]] : []),
      ...(recording.what.includes("difference") ? [[["d"], "help.difference"]] : []),
    ]),
    ...gestures.flatMap(([how, what]) => [make("dt", {}, say(how)), make("dd", {}, say(what))]),
  ];
  const formula = make("code", { translate: "no" }, "w = exp(s − lse),  s = c · q·k + b");
  return {
    title: say("help.title"),
    content: [
      make("dl", {}, ...rows),
      make("p", { class: "formula" }, say("help.formula"), formula),
      ...(more ? quantities.map((key) => make("p", {}, explainedQuantity(key))) : []),
      make("p", {}, say("help.about")),
    ],
  };
}

/** A dialog that is built when it opens; `help()` gives its title and its content. */
export class Help {
  constructor(help) {
    this.help = help;
    const click = (event) => event.target === this.dialog && this.close(); // outside it
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
    const { title, content } = this.help();
    const close = press("×", () => this.close(), { class: "quiet close", "aria-label": say("close") });
    this.dialog.replaceChildren(make("div", {}, close, make("h2", { id: "help-title" }, title), ...content));
    this.dialog.showModal();
  }
}
