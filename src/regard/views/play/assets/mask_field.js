// A text field for masks: what is typed is parsed at once, and an error points at its place.

import { make } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { parseMask } from "./mask_language.js";
import { MaskProblem } from "./mask_problem.js";

/** The mask of a text, or the problem with it. */
export function readMaskText(text) {
  try {
    return { mask: parseMask(text), problem: null };
  } catch (problem) {
    if (!(problem instanceof MaskProblem)) throw problem;
    return { mask: null, problem };
  }
}

/** A field; `typed(text)` is called after every change and returns the problem to show, or null. */
export function maskField(text, typed, language) {
  const where = make("div", { class: "mask-problem", id: "mask-problem", role: "status" });
  const input = make("textarea", {
    rows: 1,
    class: "mask-input",
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    translate: "no",
    "aria-label": say("masks.field"),
    "aria-describedby": "mask-problem",
    on: { input: () => show(typed(input.value)) },
  });
  input.value = text;
  const show = (problem) => {
    input.setAttribute("aria-invalid", String(Boolean(problem)));
    where.replaceChildren(...(problem ? explainedProblem(problem, input.value, language) : []));
  };
  const root = make("div", { class: "mask-field" }, input, where);
  return {
    root,
    input,
    show,
    set: (next) => {
      input.value = next;
      show(typed(next));
    },
  };
}

/** The message, and below it the text with a mark under the place. */
function explainedProblem(problem, text, language) {
  const said = make("p", {}, problem.inWords(language));
  if (problem.position === null) return [said];
  const signs = [...text];
  const at = Math.min(problem.position, signs.length);
  const marked = make(
    "code",
    { class: "marked", translate: "no" },
    signs.slice(0, at).join(""),
    make("mark", {}, signs[at] ?? " "),
    signs.slice(at + 1).join(""),
  );
  return [said, marked];
}
