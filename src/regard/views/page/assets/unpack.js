// All that a page runs as it lies in the file: it unpacks the style and the program and puts them to work.
// The page's policy knows the program by its hash, so nothing else could be put in its place.

import { inflate } from "./data/inflate.js";

async function unpacked(name) {
  const letters = atob(document.querySelector(`script[data-regard="${name}"]`).textContent);
  return new TextDecoder().decode(await inflate(Uint8Array.from(letters, (letter) => letter.charCodeAt(0))));
}

/** Puts an element to work. */
function add(kind, properties) {
  const element = Object.assign(document.createElement(kind), properties);
  document.head.append(element);
  return element;
}

const texts = await Promise.all(["style", "program"].map(unpacked));
add("style", { textContent: texts[0] });
// It runs all the same, and whoever saves the page from a browser does not save it twice.
add("script", { type: "module", textContent: texts[1] }).remove();
