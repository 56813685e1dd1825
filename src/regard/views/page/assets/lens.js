// What stands between the recorded weights and the eye: tokens hidden, word pieces joined, sinks taken
// away. Pure functions over one axis of tokens and over blocks of weights.
//
//   keys of a word are summed, its queries averaged:  w'(I, J) = mean over i in I of the sum over j in J of w(i, j)
//   sinks are removed and the row renormalised:       w(i, j) / (1 − r(i)),  r(i) = sum of w(i, s) over the sinks s

// Where almost nothing is left beside the sinks, dividing would only magnify rounding.
const LEAST_LEFT = 1e-4;

/**
 * The groups of tokens shown along one axis.
 *
 * `dropped` (booleans) are left out, tokens that share a word number with the token before them are joined
 * if `merge` is set; −1 is no word. Returns { count, groupOf: token → group or −1, first, last (exclusive), sizes }.
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

/** The text of each group; marks of continued pieces vanish where pieces are joined. */
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
  return Array.from({ length: count }, (_, token) => wanted !== null && (token < start) !== (wanted === "a"));
}

/** Which keys count as sinks: none, the first, or every special token. */
export function sinkKeys(special, sinks) {
  return special.map((is, key) => (sinks === "first" ? key === 0 : sinks === "special" && is));
}

/** Joins `times` columns of removed weights into one sum per row. */
export function addRemoved(removed, weights, columns) {
  for (let row = 0; row < removed.length; row += 1) {
    for (let column = 0; column < columns; column += 1) removed[row] += weights[row * columns + column];
  }
}

/** What a row is divided by when its sinks are gone; 0 where nothing is left. */
function keptFactor(removed) {
  const left = 1 - removed;
  return left < LEAST_LEFT ? 0 : 1 / left;
}

/**
 * A block of token weights seen through the lens: Float32Array of (rowTo − rowFrom) × (columnTo − columnFrom) groups.
 *
 * `weights` holds the tokens from rows.first[rowFrom] to rows.last[rowTo − 1], and columns likewise, row by row;
 * `removed` is the mass of the sinks of every query token.
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

/** The mean of a number per query token over each group. */
export function meanOverGroups(values, rows) {
  const means = new Float32Array(rows.count);
  rows.groupOf.forEach((group, token) => {
    if (group >= 0) means[group] += values[token] / rows.sizes[group];
  });
  return means;
}
