// Patches of a picture: which token is where, and the numbers of a row for each. Pure functions.

/**
 * The numbers of the patches, row by row; NaN where a token is hidden.
 * @param {ArrayLike<number>} values one per column of the look
 * @param {number[]} columnOf the column of each token, −1 where it is hidden
 * @param {number[]} tokens the token of each patch
 */
export function patchValues(values, columnOf, tokens) {
  return tokens.map((token) => (columnOf[token] >= 0 ? values[columnOf[token]] : NaN));
}

/**
 * The patch at a point of the picture, or −1 outside of it.
 * @param {number} x
 * @param {number} y
 * @param {{ width: number, height: number }} size of the picture where it is drawn
 * @param {number[]} grid rows and columns
 */
export function patchAt(x, y, { width, height }, [rows, columns]) {
  const [row, column] = [Math.floor((y / height) * rows), Math.floor((x / width) * columns)];
  return row < 0 || column < 0 || row >= rows || column >= columns ? -1 : row * columns + column;
}

/** The tokens that are not patches: class tokens, registers, words. */
export function otherTokens(count, tokens) {
  const patches = new Set(tokens);
  return Array.from({ length: count }, (_, token) => token).filter((token) => !patches.has(token));
}
