// Which part of a matrix is in sight, and where: a value, changed by making a new one.

const LARGEST_CELL = 56;
const CLOSEST_CELL = 72;
// Cells are square, but where there are many more keys than queries (or fewer) they may be this much longer.
const LONGEST_CELL = 3;
const OBLONG = 2;

/**
 * @typedef {{ left: number, top: number, width: number, height: number, fills?: boolean }} Area `fills`: cells are
 *   stretched where that fills it better, and become square again when they are magnified
 * @typedef {[row: number, column: number, magnification: number]} Zoom
 * @typedef {{ top: number, bottom: number, left: number, right: number }} Range rows and columns, the ends exclusive
 * @typedef {{ row: number, column: number }} Pair
 */

/** A window on rows × columns cells. */
export class Viewport {
  /**
   * @param {number} rows
   * @param {number} columns
   * @param {Area} area where it is drawn
   * @param {Zoom | null} zoom the first visible cell, and the magnification relative to fitting everything; null fits everything
   */
  constructor(rows, columns, area, zoom) {
    this.rows = rows;
    this.columns = columns;
    this.area = area;
    const [row, column, wanted] = zoom ?? [0, 0, 1];
    const [across, down] = [area.width / Math.max(columns, 1), area.height / Math.max(rows, 1)];
    const oblong = area.fills || Math.max(rows, columns) > OBLONG * Math.min(rows, columns);
    const longest = oblong ? LONGEST_CELL : 1;
    const fitWidth = Math.min(LARGEST_CELL, across, longest * down);
    const fitHeight = Math.min(LARGEST_CELL, down, longest * fitWidth);
    const shorter = Math.min(fitWidth, fitHeight);
    this.magnification = Math.min(Math.max(1, CLOSEST_CELL / shorter), Math.max(1, wanted));
    const magnified = (fit) => (area.fills ? Math.max(fit, shorter * this.magnification) : fit * this.magnification);
    this.cellWidth = magnified(fitWidth);
    this.cellHeight = magnified(fitHeight);
    this.row = Math.max(0, Math.min(row, rows - area.height / this.cellHeight));
    this.column = Math.max(0, Math.min(column, columns - area.width / this.cellWidth));
    // A small matrix is centred.
    this.width = Math.min(area.width, columns * this.cellWidth);
    this.height = Math.min(area.height, rows * this.cellHeight);
    this.left = area.left + (area.width - this.width) / 2;
    this.top = area.top;
  }

  /**
   * What restores this viewport; null when everything is in sight.
   * @returns {Zoom | null}
   */
  get zoom() {
    return this.magnification > 1.0001 ? [this.row, this.column, this.magnification] : null;
  }

  /**
   * Where a column begins, in pixels.
   * @param {number} column
   */
  x(column) {
    return this.left + (column - this.column) * this.cellWidth;
  }

  /**
   * Where a row begins, in pixels.
   * @param {number} row
   */
  y(row) {
    return this.top + (row - this.row) * this.cellHeight;
  }

  /**
   * The rows and columns that are at least partly in sight.
   * @returns {Range}
   */
  get inSight() {
    return {
      top: Math.floor(this.row),
      bottom: Math.min(this.rows, Math.ceil(this.row + this.height / this.cellHeight - 1e-6)),
      left: Math.floor(this.column),
      right: Math.min(this.columns, Math.ceil(this.column + this.width / this.cellWidth - 1e-6)),
    };
  }

  /** The shorter side of a cell. */
  get cellSide() {
    return Math.min(this.cellWidth, this.cellHeight);
  }

  get roomForValues() {
    return this.cellWidth >= 30 && this.cellHeight >= 16;
  }

  /**
   * The row and column of a point, with fractions.
   * @param {number} x
   * @param {number} y
   * @returns {[row: number, column: number]}
   */
  cellAt(x, y) {
    return [this.row + (y - this.top) / this.cellHeight, this.column + (x - this.left) / this.cellWidth];
  }

  /**
   * The pair at a point, or null outside.
   * @param {number} x
   * @param {number} y
   * @returns {Pair | null}
   */
  pairAt(x, y) {
    const inside = x >= this.left && y >= this.top && x < this.left + this.width && y < this.top + this.height;
    const [row, column] = this.cellAt(x, y);
    return inside ? { row: Math.floor(row), column: Math.floor(column) } : null;
  }

  /**
   * Zoomed so that what is under (x, y) stays there.
   * @param {number} factor
   * @param {number} x
   * @param {number} y
   */
  zoomed(factor, x, y) {
    const [row, column] = this.cellAt(x, y);
    const next = new Viewport(this.rows, this.columns, this.area, [0, 0, this.magnification * factor]);
    return next.moved(row - (y - next.top) / next.cellHeight, column - (x - next.left) / next.cellWidth);
  }

  /**
   * Moved by pixels.
   * @param {number} dx
   * @param {number} dy
   */
  panned(dx, dy) {
    return this.moved(this.row - dy / this.cellHeight, this.column - dx / this.cellWidth);
  }

  /**
   * The same magnification, with a cell in the middle, or as near to it as the matrix allows.
   * @param {number} row
   * @param {number} column
   */
  centred(row, column) {
    return this.moved(row + 0.5 - this.height / this.cellHeight / 2, column + 0.5 - this.width / this.cellWidth / 2);
  }

  /**
   * The same magnification, with another first cell.
   * @param {number} row
   * @param {number} column
   */
  moved(row, column) {
    return new Viewport(this.rows, this.columns, this.area, [row, column, this.magnification]);
  }
}
