// Words with an explanation, shown on hover, on keyboard focus and on touch, in one small box.

import { make } from "./elements.js";
import { say } from "./languages.js";

const GAP = 8;

/** The box in which explanations appear; one for the whole page. */
const shown = { box: null, for: null };

function openBox(element, text) {
  if (!element.isConnected) return; // the readout changes while the pointer goes to it
  shown.box ??= make("div", { class: "explanation", role: "tooltip", id: "explanation" });
  if (!shown.box.isConnected) document.body.append(shown.box);
  shown.for = element;
  shown.box.textContent = text;
  shown.box.hidden = false;
  const [word, box] = [element.getBoundingClientRect(), shown.box.getBoundingClientRect()];
  const left = Math.max(GAP, Math.min(word.left, window.innerWidth - box.width - GAP));
  const below = word.bottom + GAP + box.height <= window.innerHeight;
  shown.box.style.left = `${left}px`;
  shown.box.style.top = `${below ? word.bottom + GAP : Math.max(GAP, word.top - GAP - box.height)}px`;
}

/** Hides the explanation; true if there was one. */
export function closeExplanation() {
  const open = Boolean(shown.box && !shown.box.hidden);
  if (open) shown.box.hidden = true;
  shown.for = null;
  return open;
}

/** Gives an element an explanation. */
export function explain(element, text) {
  if (!text) return element;
  const hide = () => shown.for === element && closeExplanation();
  element.setAttribute("aria-description", text);
  element.addEventListener("pointerenter", () => openBox(element, text));
  element.addEventListener("focus", () => element.matches(":focus-visible") && openBox(element, text));
  element.addEventListener("click", () => element.matches(".term") && openBox(element, text));
  element.addEventListener("pointerleave", hide);
  element.addEventListener("blur", hide);
  return element;
}

/** A word that people may not know, with what it means: term("query", say("matrix.query")). */
export function term(name, word) {
  return explain(
    make("dfn", { class: "term", tabindex: "0", "aria-label": say("explain.what", { word }) }, word),
    say(`explain.${name}`),
  );
}

/** The name of a quantity, by its key, with what it means. */
export function explainedTerm(key, word = say(key), text = say(`${key}.about`)) {
  return explain(
    make("dfn", { class: "term", tabindex: "0", "aria-label": say("explain.what", { word }) }, word),
    text,
  );
}
