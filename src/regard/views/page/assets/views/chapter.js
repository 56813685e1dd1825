// A chapter of the steps: its number, its title, a formula and what it shows.

import { make } from "../elements.js";

export function chapter(number, title, formula, content) {
  return make(
    "article",
    { class: "chapter" },
    make("h2", {}, make("i", {}, String(number)), title, make("code", { translate: "no" }, formula)),
    content,
  );
}
