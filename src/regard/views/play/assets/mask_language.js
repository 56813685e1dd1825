// A mask from its text, exactly as masks/parser.py reads it, with errors that point at the character.

import { CombinedMask, invertMask, MaskCombiner } from "./mask_nodes.js";
import { argumentsOf, callPattern, MASK_PATTERNS } from "./mask_patterns.js";
import { MaskPhrase, MaskProblem, problemAt } from "./mask_problem.js";
import { MaskTable, tableOf } from "./mask_tables.js";
import { closeMatch, stringRepr } from "./python_text.js";

const MOST_CHARACTERS = 1 << 24;
const MOST_TERMS = 10000;
const MOST_ENTRIES = 1 << 21;
const DEEPEST = 100;
const MOST_AXES = 16;
const LONGEST_NAME = 64;

const MASK_WORDS = { True: true, False: false, None: null };
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const SIGNS = "&|~()[],.=*";

/** The mask that a text describes; a MaskProblem with a position if it describes none. */
export function parseMask(text) {
  return new MaskReader(text).whole();
}

class MaskToken {
  constructor(kind, text, position) {
    this.kind = kind;
    this.text = text;
    this.position = position;
  }

  inWords(language) {
    if (this.kind === "end") return new MaskPhrase("the end of the text").inWords(language);
    return stringRepr(this.text.length <= LONGEST_NAME ? this.text : `${this.text.slice(0, LONGEST_NAME)}…`);
  }
}

class MaskReader {
  constructor(text) {
    this.signs = [...text];
    this.depth = 0;
    this.axes = 0;
    this.terms = 0;
    this.entries = 0;
    if (this.signs.length > MOST_CHARACTERS) {
      throw problemAt(MOST_CHARACTERS, "A mask text must have at most {most:,} characters. Got {text_count:,}.", {
        most: MOST_CHARACTERS,
        text_count: this.signs.length,
      });
    }
    this.tokens = this.cut();
    /** @type {MaskToken} */
    this.here = this.upcoming();
    /** @type {MaskToken} */
    this.next = this.upcoming();
  }

  /** The tokens one by one, then "end" for ever. */
  *cut() {
    const { signs } = this;
    let at = 0;
    const run = (from, pattern) => {
      let to = from;
      while (to < signs.length && pattern.test(signs[to])) to += 1;
      return to;
    };
    for (;;) {
      while (at < signs.length && SPACE.test(signs[at])) at += 1;
      if (at >= signs.length) break;
      const sign = signs[at];
      const start = at;
      if (/[0-9]/.test(sign) || (sign === "-" && /[0-9]/.test(signs[at + 1] ?? ""))) {
        at = run(at + 1, /[0-9]/);
        yield new MaskToken("number", signs.slice(start, at).join(""), start);
      } else if (/[A-Za-z_]/.test(sign)) {
        at = run(at, /[A-Za-z0-9_]/);
        yield new MaskToken("name", signs.slice(start, at).join(""), start);
      } else if (SIGNS.includes(sign)) {
        at += 1;
        yield new MaskToken("sign", sign, start);
      } else {
        throw problemAt(at, "A mask must be written with names, numbers and & | ~ ( ) [ ]. Got {sign!r}.", { sign });
      }
    }
    for (;;) yield new MaskToken("end", "", signs.length);
  }

  // ---- moving through the tokens ---------------------------------------------------------------

  /** @returns {MaskToken} */
  upcoming() {
    return /** @type {MaskToken} */ (this.tokens.next().value);
  }

  at(sign) {
    return this.here.kind === "sign" && this.here.text === sign;
  }

  take() {
    const taken = this.here;
    this.here = this.next;
    this.next = this.upcoming();
    return taken;
  }

  accept(sign) {
    if (!this.at(sign)) return false;
    this.take();
    return true;
  }

  expect(sign, why) {
    if (!this.accept(sign)) {
      const { here } = this;
      throw problemAt(here.position, "Expected {sign!r} {why}. Got {here}.", { sign, why: new MaskPhrase(why), here });
    }
  }

  // ---- limits ------------------------------------------------------------------------------------

  tooDeep(position) {
    return problemAt(position, "A mask must not nest more than {DEEPEST} levels.", { DEEPEST });
  }

  countTerms(made, position) {
    this.terms += [...made.patterns()].length;
    if (this.terms > MOST_TERMS) {
      throw problemAt(position, "A mask text must have at most {TERMS:,} patterns.", { TERMS: MOST_TERMS });
    }
    if (made instanceof CombinedMask && this.depth >= DEEPEST) throw this.tooDeep(position);
  }

  countEntries(count, position) {
    this.entries += count;
    if (this.entries > MOST_ENTRIES) {
      throw problemAt(position, "The lists of a mask text must have at most {ENTRIES:,} entries in all.", {
        ENTRIES: MOST_ENTRIES,
      });
    }
  }

  // ---- masks ---------------------------------------------------------------------------------------

  whole() {
    const mask = this.mask();
    if (this.here.kind !== "end") {
      throw problemAt(this.here.position, "Expected & or | or the end of the text. Got {here}.", { here: this.here });
    }
    return mask;
  }

  mask() {
    return this.joined("|", () => this.term());
  }

  term() {
    return this.joined("&", () => this.factor());
  }

  joined(sign, part) {
    const combiner = new MaskCombiner(sign);
    let mask = part();
    let { position } = this.here;
    for (;;) {
      this.wrapped(position, () => combiner.add(mask));
      if (!this.at(sign)) return combiner.mask();
      position = this.take().position;
      mask = part();
    }
  }

  /** Gives an error of a pattern its place in the text. */
  wrapped(position, act) {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof MaskProblem)) throw error;
      throw problemAt(position, "{error}", { error });
    }
  }

  factor() {
    this.depth += 1;
    if (this.depth > DEEPEST) throw this.tooDeep(this.here.position);
    let mask;
    if (this.accept("~")) mask = invertMask(this.factor());
    else {
      mask = this.unit();
      if (this.isTransposed()) mask = mask.transposed();
    }
    this.depth -= 1;
    return mask;
  }

  /** Whether .T follows an odd number of times: two cancel out. */
  isTransposed() {
    let odd = false;
    while (this.accept(".")) {
      const after = this.take();
      if (after.text !== "T") throw problemAt(after.position, "Expected T after the dot. Got {after}.", { after });
      odd = !odd;
    }
    return odd;
  }

  unit() {
    if (this.accept("(")) {
      const mask = this.mask();
      this.expect(")", "to close the bracket");
      return mask;
    }
    const token = this.take();
    if (token.kind !== "name") {
      throw problemAt(token.position, "Expected a mask such as causal or window(4, 0). Got {token}.", { token });
    }
    const pattern = Object.hasOwn(MASK_PATTERNS, token.text) ? MASK_PATTERNS[token.text] : null;
    if (!pattern) throw this.unknown(token);
    const [values, named] = this.at("(") ? this.arguments() : [[], {}];
    const made = this.wrapped(token.position, () => callPattern(pattern, values, named));
    if (made === null) {
      const call = argumentsOf(pattern).join(", ");
      throw problemAt(token.position, "{name} is written {name}({call}).", { name: token.text, call });
    }
    this.countTerms(made, token.position);
    return made;
  }

  unknown(token) {
    const names = Object.keys(MASK_PATTERNS);
    const near = closeMatch(token.text.slice(0, LONGEST_NAME), names);
    const hint = near
      ? new MaskPhrase("Did you mean {near}?", { near })
      : new MaskPhrase("Known: {names}.", { names: names.join(", ") });
    return problemAt(token.position, "No mask is called {token}. {hint}", { token, hint });
  }

  // ---- values --------------------------------------------------------------------------------------

  arguments() {
    const values = [];
    const named = {};
    this.expect("(", "before the values");
    while (!this.at(")")) {
      if (this.here.kind === "name" && this.next.text === "=") {
        const name = this.take();
        this.take();
        if (Object.hasOwn(named, name.text)) throw problemAt(name.position, "{name} is given twice.", { name });
        named[name.text] = this.value();
      } else values.push(this.value());
      if (!this.accept(",")) break;
    }
    this.expect(")", "after the values");
    return [values, named];
  }

  value() {
    const token = this.take();
    if (token.kind === "number") return this.number(token);
    if (Object.hasOwn(MASK_WORDS, token.text)) return MASK_WORDS[token.text];
    if (token.text === "[") return this.items(token.position);
    throw problemAt(token.position, "Expected a number, True, False, None or a list. Got {token}.", { token });
  }

  number(token) {
    const number = token.text.length > 20 ? null : BigInt(token.text);
    if (number === null || number < -(2n ** 63n) || number >= 2n ** 63n) {
      throw problemAt(token.position, "Numbers must be between -2**63 and 2**63 - 1.");
    }
    return Number.isSafeInteger(Number(number)) ? Number(number) : number;
  }

  items(start) {
    this.axes += 1;
    if (this.axes > MOST_AXES)
      throw problemAt(start, "Lists must not nest more than {most} levels.", { most: MOST_AXES });
    const values = [];
    const counts = [];
    while (!this.at("]")) {
      let { position } = this.here;
      const value = this.value();
      if (value === null) throw problemAt(position, "A list must hold numbers, True, False or lists. Got None.");
      position = this.at("*") ? this.next.position : position;
      values.push(value);
      const count = this.times();
      counts.push(count);
      const again = value instanceof MaskTable ? Math.max(value.size, 1) * (count - 1) : count;
      this.countEntries(Math.max(again, 1), position);
      if (!this.accept(",")) break;
    }
    this.expect("]", "to close the list");
    this.axes -= 1;
    const table = tableOf(values, counts);
    if (table === null) {
      throw problemAt(
        start,
        "The rows of a table must have the same length. Got rows of different lengths. Pad the rows, or pass lengths=.",
      );
    }
    return table;
  }

  times() {
    if (!this.accept("*")) return 1;
    const times = this.take();
    if (times.kind !== "number" || times.text.startsWith("-")) {
      throw problemAt(times.position, "Expected a number of repetitions after '*'. Got {times}.", { times });
    }
    return Number(this.number(times));
  }
}
