// Text as Python writes it: repr(), str.format() and difflib, for errors that read as those of the library do.

/** A Python tuple of numbers: (), (2,), (2, 3). */
export function tupleText(numbers) {
  return `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`;
}

/** repr() of a string. */
export function stringRepr(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = [...text].map((sign) => {
    if (sign === "\\" || sign === quote) return `\\${sign}`;
    const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[sign];
    if (short) return short;
    if (sign === " " || !/[\p{C}\p{Z}]/u.test(sign)) return sign;
    const code = sign.codePointAt(0);
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
    return `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return quote + inside.join("") + quote;
}

/** str() of a value of a mask text: True, None, 3. */
export function valueRepr(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  return value.repr ? value.repr() : String(value);
}

function placeText(value, how, form, language) {
  const said = value?.inWords ? value.inWords(language) : value;
  if (how === "r") return typeof said === "string" ? stringRepr(said) : valueRepr(said);
  if (form === ",") return String(said).replace(/\B(?=(\d{3})+$)/g, ",");
  return typeof said === "string" ? said : valueRepr(said);
}

/** A template of str.format() with its values: {name}, {name!r}, {name:,}. */
export function formatted(template, values, language) {
  return template.replace(/\{\{|\}\}|\{(\w+)(?:!(\w))?(?::([^{}]*))?\}/g, (whole, name, how, form) => {
    if (whole === "{{" || whole === "}}") return whole[0];
    return placeText(values[name], how, form, language);
  });
}

// ---- difflib -----------------------------------------------------------------------------------

/** The longest block that two lists of signs share within bounds; the first of several. */
function longestBlock(a, b, aFrom, aTo, bFrom, bTo) {
  let best = [aFrom, bFrom, 0];
  let before = new Map();
  for (let i = aFrom; i < aTo; i++) {
    const now = new Map();
    for (let j = bFrom; j < bTo; j++) {
      if (a[i] !== b[j]) continue;
      const length = (before.get(j - 1) ?? 0) + 1;
      now.set(j, length);
      if (length > best[2]) best = [i - length + 1, j - length + 1, length];
    }
    before = now;
  }
  return best;
}

function sharedSigns(a, b, aFrom, aTo, bFrom, bTo) {
  const [i, j, length] = longestBlock(a, b, aFrom, aTo, bFrom, bTo);
  if (!length) return 0;
  return length + sharedSigns(a, b, aFrom, i, bFrom, j) + sharedSigns(a, b, i + length, aTo, j + length, bTo);
}

/** How alike two words are, 0 … 1, as SequenceMatcher.ratio() finds it. */
export function likeness(one, other) {
  const [a, b] = [[...one], [...other]];
  if (a.length + b.length === 0) return 1;
  return (2 * sharedSigns(a, b, 0, a.length, 0, b.length)) / (a.length + b.length);
}

/** The name that is most like a word, if any is: difflib.get_close_matches(word, names, n=1). */
export function closeMatch(word, names) {
  let best = null;
  for (const name of names) {
    const alike = likeness(name, word);
    if (alike < 0.6) continue;
    if (!best || alike > best.alike || (alike === best.alike && name > best.name)) best = { name, alike };
  }
  return best?.name ?? null;
}
