// The only script that a page has uncompressed: it unpacks the style and the program and adds them to the document.
// The page's policy knows the program by its hash, so no other program can take its place.

import { inflate } from "./data/inflate.js";

async function unpacked(name) {
  const characters = atob(document.querySelector(`script[data-regard="${name}"]`).textContent);
  return new TextDecoder().decode(await inflate(Uint8Array.from(characters, (one) => one.charCodeAt(0))));
}

/** Adds an element to the head. */
function add(kind, properties) {
  const element = Object.assign(document.createElement(kind), properties);
  document.head.append(element);
  return element;
}

const texts = await Promise.all(["style", "program"].map(unpacked));
add("style", { textContent: texts[0] });
// It runs although it is removed, and a page saved from a browser does not have it twice.
add("script", { type: "module", textContent: texts[1] }).remove();
