// What is wrong with a mask: the errors of the library, word for word, in both languages.

import { errorTemplate } from "./error_texts.js";
import { formatted } from "./python_text.js";

/** A part of a sentence with its values, said in any language. */
export class MaskPhrase {
  constructor(template, values = {}) {
    this.template = template;
    this.values = values;
  }

  inWords(language) {
    return formatted(errorTemplate(this.template, language), this.values, language);
  }
}

/** An error in three parts: what must hold, what was given, what to do. */
export class MaskProblem extends Error {
  /**
   * @param {string} must
   * @param {Record<string, any>} parts
   */
  constructor(must, { got = "", advice = "", ...values } = {}) {
    super(must);
    this.must = must;
    this.got = got;
    this.advice = advice;
    this.values = values;
    /** The place in the text, in characters; null if the error is not about the text. */
    this.position = null;
  }

  inWords(language) {
    const say = (template, values = this.values) => new MaskPhrase(template, values).inWords(language);
    const parts = [say(this.must)];
    if (this.got) parts.push(say("Got {given}.", { given: say(this.got).replace(/[.。]+$/, "") }));
    if (this.advice) parts.push(say(this.advice));
    return parts.filter(Boolean).join(language === "zh" ? "" : " ");
  }
}

/**
 * The same, at a place of the text.
 * @param {number} position
 * @param {string} must
 * @param {Record<string, any>} values
 */
export function problemAt(position, must, values = {}) {
  const problem = new MaskProblem(must, values);
  problem.position = position;
  return problem;
}
