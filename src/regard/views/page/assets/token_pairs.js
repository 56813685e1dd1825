// Which token of one text is which token of another: equal ones in the same order. Pure functions.

/** The most cells of the table that is filled; longer texts are only compared from both ends. */
const MOST_CELLS = 4e6;

/**
 * For each token of a text the place of its partner in another text, or −1.
 *
 * Equal tokens are matched in order, as many as possible. Between two matches, where both texts have as many tokens,
 * those are matched one by one: one word was replaced by another.
 * @param {string[]} one
 * @param {string[]} other
 * @returns {Int32Array}
 */
export function tokenPartners(one, other) {
  const partners = new Int32Array(one.length).fill(-1);
  let [from, oneEnd, otherEnd] = [0, one.length, other.length];
  while (from < oneEnd && from < otherEnd && one[from] === other[from]) {
    partners[from] = from;
    from += 1;
  }
  while (oneEnd > from && otherEnd > from && one[oneEnd - 1] === other[otherEnd - 1]) {
    oneEnd -= 1;
    otherEnd -= 1;
    partners[oneEnd] = otherEnd;
  }
  const [down, across] = [oneEnd - from, otherEnd - from];
  if (down * across <= MOST_CELLS) matchEqual(partners, one, other, from, down, across);
  matchReplaced(partners, one.length, other.length);
  return partners;
}

/** Matches as many equal tokens as possible between two places, in order. */
function matchEqual(partners, one, other, from, down, across) {
  // lengths[i, j]: how many tokens can be matched from there to the end.
  const lengths = new Uint16Array((down + 1) * (across + 1));
  for (let i = down - 1; i >= 0; i -= 1) {
    for (let j = across - 1; j >= 0; j -= 1) {
      const at = i * (across + 1) + j;
      lengths[at] =
        one[from + i] === other[from + j]
          ? lengths[at + across + 2] + 1
          : Math.max(lengths[at + 1], lengths[at + across + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < down && j < across) {
    const at = i * (across + 1) + j;
    if (one[from + i] === other[from + j]) {
      partners[from + i] = from + j;
      i += 1;
      j += 1;
    } else if (lengths[at + across + 1] >= lengths[at + 1]) i += 1;
    else j += 1;
  }
}

/** Matches what lies between two matches, where it is equally long on both sides. */
function matchReplaced(partners, oneLength, otherLength) {
  let [before, beforeOther] = [-1, -1];
  for (let at = 0; at <= oneLength; at += 1) {
    const partner = at === oneLength ? otherLength : partners[at];
    if (partner < 0) continue;
    if (at - before === partner - beforeOther)
      for (let step = 1; step < at - before; step += 1) partners[before + step] = beforeOther + step;
    [before, beforeOther] = [at, partner];
  }
}

/**
 * The partners seen from the other text.
 * @param {Int32Array} partners
 * @param {number} count tokens of the other text
 */
export function turnedAround(partners, count) {
  const found = new Int32Array(count).fill(-1);
  partners.forEach((partner, token) => {
    if (partner >= 0) found[partner] = token;
  });
  return found;
}
