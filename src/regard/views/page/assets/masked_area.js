// Which part of a matrix is masked: rectangles of pairs that no query may see. Pure functions.

/**
 * @typedef {{ top: number, bottom: number, left: number, right: number }} MaskedArea rows and columns, ends exclusive
 */

/**
 * The columns that a row may see, as intervals in order; several tokens of a row may see more.
 * @param {any} look
 * @param {number} head
 * @param {number} row
 * @returns {[number, number][]}
 */
function openColumns({ call, rows, columns, what }, head, row) {
  /** @type {[number, number][]} */
  const open = [];
  for (let query = rows.first[row]; query < rows.last[row]; query += 1) {
    if (rows.groupOf[query] !== row) continue;
    for (const [from, to] of call.visible(what, head, query)) {
      let [first, last] = [from, to - 1];
      while (first < to && columns.groupOf[first] < 0) first += 1;
      while (last >= from && columns.groupOf[last] < 0) last -= 1;
      if (first <= last) open.push([columns.groupOf[first], columns.groupOf[last] + 1]);
    }
  }
  return open.sort((one, other) => one[0] - other[0]);
}

/**
 * The masked rectangles among some rows and columns, looking at every `step`-th row.
 * @param {any} look a call through a lens
 * @param {number} head
 * @param {MaskedArea} inSight
 * @param {number} step
 * @returns {MaskedArea[]}
 */
export function maskedAreas(look, head, inSight, step = 1) {
  const areas = [];
  let running = new Map(); // by "left right": the rectangle that the row above ended with
  for (let row = inSight.top; row < inSight.bottom; row += step) {
    const bottom = Math.min(row + step, inSight.bottom);
    const now = new Map();
    for (const [left, right] of gaps(openColumns(look, head, row), inSight.left, inSight.right)) {
      const name = `${left} ${right}`;
      const area = running.get(name) ?? { top: row, bottom, left, right };
      if (!running.has(name)) areas.push(area);
      area.bottom = bottom;
      now.set(name, area);
    }
    running = now;
  }
  return areas;
}

/**
 * What intervals leave out of from … to.
 * @param {[number, number][]} intervals in order of their beginnings
 * @param {number} from
 * @param {number} to
 * @returns {[number, number][]}
 */
export function gaps(intervals, from, to) {
  /** @type {[number, number][]} */
  const found = [];
  let at = from;
  for (const [first, last] of intervals) {
    if (first >= to) break;
    if (first > at) found.push([at, first]);
    at = Math.max(at, last);
  }
  if (at < to) found.push([at, to]);
  return found;
}
