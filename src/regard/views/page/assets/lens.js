// What changes the recorded numbers before they are shown: tokens hidden, word pieces merged, sinks
// removed. Pure functions over one axis of tokens and over blocks of numbers.
//
//   keys of a word are summed, its queries averaged:  w'(I, J) = mean over i in I of the sum over j in J of w(i, j)
//   sinks are removed and the row renormalised:       w(i, j) / (1 − r(i)),  r(i) = sum of w(i, s) over the sinks s
//
// So are weight × gradient and contributions, which add up like weights; but they are what happened in the model, so
// they are never renormalised. Gradients say what one more unit of weight would do: those of a word are averaged.

// Where almost nothing is left besides the sinks, dividing would only magnify rounding errors.
const LEAST_LEFT = 1e-4;

/**
 * @typedef {object} Groups the groups of tokens along one axis
 * @property {number} count
 * @property {Int32Array} groupOf the group of each token, or −1
 * @property {number[]} first the first token of each group
 * @property {number[]} last the last token of each group, exclusive
 * @property {number[]} sizes how many tokens each group has
 */

/**
 * The groups of tokens shown along one axis.
 * @param {number[]} words the word of each token; −1 if it is not part of a word
 * @param {boolean[]} dropped tokens that are in no group
 * @param {boolean} merge whether neighbours of the same word are one group
 * @returns {Groups}
 */
export function groupTokens(words, dropped, merge) {
  const groupOf = new Int32Array(words.length).fill(-1);
  const [first, last, sizes] = [[], [], []];
  let before = -1;
  for (let token = 0; token < words.length; token += 1) {
    if (dropped[token]) continue;
    const joins = merge && before >= 0 && words[token] >= 0 && words[token] === words[before];
    if (joins) {
      last[last.length - 1] = token + 1;
      sizes[sizes.length - 1] += 1;
    } else {
      first.push(token);
      last.push(token + 1);
      sizes.push(1);
    }
    groupOf[token] = first.length - 1;
    before = token;
  }
  return { count: first.length, groupOf, first, last, sizes };
}

/**
 * The text of each group; marks of continued pieces are removed where pieces are merged.
 * @param {Groups} groups
 * @param {string[]} tokens
 * @returns {string[]}
 */
export function groupNames(groups, tokens) {
  const names = new Array(groups.count).fill("");
  tokens.forEach((token, index) => {
    const group = groups.groupOf[index];
    if (group < 0) return;
    names[group] += index === groups.first[group] ? token : token.replace(/^##/, "");
  });
  return names;
}

/** Marks the tokens that do not belong to the wanted one of two sentences: "a" ends where `start` begins "b". */
export function outsideSentence(count, start, wanted) {
  return Array.from({ length: count }, (_, token) => wanted !== null && token < start !== (wanted === "a"));
}

/**
 * Which keys count as sinks: none, the first, or every special token.
 * @param {boolean[]} special
 * @param {string} sinks "show", "first" or "special"
 */
export function sinkKeys(special, sinks) {
  return special.map((is, key) => (sinks === "first" ? key === 0 : sinks === "special" && is));
}

/** Adds columns of removed weights to one sum per row. */
export function addRemoved(removed, weights, columns) {
  for (let row = 0; row < removed.length; row += 1) {
    for (let column = 0; column < columns; column += 1) removed[row] += weights[row * columns + column];
  }
}

/** What the rest of a row is multiplied by when its sinks are removed; 0 where nothing is left. */
function keptFactor(removed) {
  const left = 1 - removed;
  return left < LEAST_LEFT ? 0 : 1 / left;
}

/**
 * A block of token weights seen through the lens: Float32Array of (rowTo − rowFrom) × (columnTo − columnFrom) groups.
 *
 * `weights` holds the tokens from rows.first[rowFrom] to rows.last[rowTo − 1], and columns likewise, row by row;
 * `removed` is the mass of the sinks of every query token.
 * @param {ArrayLike<number>} weights
 * @param {Groups} rows
 * @param {number} rowFrom
 * @param {number} rowTo
 * @param {Groups} columns
 * @param {number} columnFrom
 * @param {number} columnTo
 * @param {ArrayLike<number>} removed
 */
export function throughLens(weights, rows, rowFrom, rowTo, columns, columnFrom, columnTo, removed) {
  const [top, bottom] = [rows.first[rowFrom], rows.last[rowTo - 1]];
  const [left, right] = [columns.first[columnFrom], columns.last[columnTo - 1]];
  const across = columnTo - columnFrom;
  const seen = new Float32Array((rowTo - rowFrom) * across);
  for (let query = top; query < bottom; query += 1) {
    const group = rows.groupOf[query];
    if (group < 0) continue;
    const share = keptFactor(removed[query]) / rows.sizes[group];
    const from = (query - top) * (right - left);
    const into = (group - rowFrom) * across - columnFrom;
    for (let key = left; key < right; key += 1) {
      const column = columns.groupOf[key];
      if (column >= 0) seen[into + column] += share * weights[from + key - left];
    }
  }
  return seen;
}

/**
 * A block of another quantity, whose masked pairs are NaN, seen through the lens.
 *
 * Queries of a group are averaged; its keys are summed, or averaged too where `average`. A pair of groups that is
 * masked throughout is NaN.
 * @param {ArrayLike<number>} values laid out like the weights of `throughLens`
 * @param {Groups} rows
 * @param {number} rowFrom
 * @param {number} rowTo
 * @param {Groups} columns
 * @param {number} columnFrom
 * @param {number} columnTo
 * @param {boolean} average
 */
export function quantityThroughLens(values, rows, rowFrom, rowTo, columns, columnFrom, columnTo, average) {
  const [top, bottom] = [rows.first[rowFrom], rows.last[rowTo - 1]];
  const [left, right] = [columns.first[columnFrom], columns.last[columnTo - 1]];
  const across = columnTo - columnFrom;
  const sums = new Float64Array((rowTo - rowFrom) * across);
  const counts = new Uint32Array(sums.length);
  for (let query = top; query < bottom; query += 1) {
    const group = rows.groupOf[query];
    if (group < 0) continue;
    const from = (query - top) * (right - left);
    const into = (group - rowFrom) * across - columnFrom;
    for (let key = left; key < right; key += 1) {
      const column = columns.groupOf[key];
      const value = values[from + key - left];
      if (column < 0 || Number.isNaN(value)) continue;
      sums[into + column] += value;
      counts[into + column] += 1;
    }
  }
  return Float32Array.from(sums, (sum, at) => {
    if (counts[at] === 0) return Number.NaN;
    return sum / (average ? counts[at] : rows.sizes[rowFrom + Math.floor(at / across)]);
  });
}

/**
 * The mean of a number per query token over each group.
 * @param {ArrayLike<number>} values
 * @param {Groups} rows
 */
export function meanOverGroups(values, rows) {
  const means = new Float32Array(rows.count);
  rows.groupOf.forEach((group, token) => {
    if (group >= 0) means[group] += values[token] / rows.sizes[group];
  });
  return means;
}
