// What the browser stores about its reader, and the language in which a page of the server begins.

import { TEXTS } from "/assets/page/languages.js";

const LOOK = "regard.look";

/** What is stored under a name, or `otherwise`. */
export function stored(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Stores a value under a name. */
export function store(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // Without storage nothing is remembered, and nothing else changes.
  }
}

/** What the reader has chosen so far: { theme, palette, language }, or some of them. */
export function chosenLook() {
  return stored(LOOK, {});
}

/** Adds to what the reader has chosen. */
export function chooseLook(patch) {
  store(LOOK, { ...chosenLook(), ...patch });
}

/** The reader's choice; else the server's --lang; else the language of the browser. */
export function firstLanguage() {
  const { language } = chosenLook();
  if (Object.hasOwn(TEXTS, language ?? "")) return language;
  const { first } = document.documentElement.dataset;
  return first ?? (navigator.language?.startsWith("zh") ? "zh" : "en");
}
