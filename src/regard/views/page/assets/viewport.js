// Which part of a matrix is in sight, and how large: a value, changed by making a new one.

const LARGEST_CELL = 56;
const CLOSEST_CELL = 72;
// Cells are square, but where there are many more keys than queries (or fewer) they may be this much longer.
const LONGEST_CELL = 3;
const OBLONG = 2;

/** A window of `room` pixels on rows × columns cells; `zoom` is [row, column, magnification] or null for all. */
export class Viewport {
  constructor(rows, columns, room, zoom) {
    Object.assign(this, { rows, columns, room });
    const [across, down] = [room.width / Math.max(columns, 1), room.height / Math.max(rows, 1)];
    const longest = Math.max(rows, columns) > OBLONG * Math.min(rows, columns) ? LONGEST_CELL : 1;
    this.fitWidth = Math.min(LARGEST_CELL, across, longest * down);
    this.fitHeight = Math.min(LARGEST_CELL, down, longest * this.fitWidth);
    const most = Math.max(1, CLOSEST_CELL / Math.min(this.fitWidth, this.fitHeight));
    this.magnification = Math.min(most, Math.max(1, zoom ? zoom[2] : 1));
    this.cellWidth = this.fitWidth * this.magnification;
    this.cellHeight = this.fitHeight * this.magnification;
    this.row = Math.max(0, Math.min(zoom ? zoom[0] : 0, rows - room.height / this.cellHeight));
    this.column = Math.max(0, Math.min(zoom ? zoom[1] : 0, columns - room.width / this.cellWidth));
  }

  /** What to keep to come back here; null when everything is in sight. */
  get zoom() {
    return this.magnification <= 1.0001 && this.row === 0 && this.column === 0 ? null : [this.row, this.column, this.magnification];
  }

  x(column) {
    return (column - this.column) * this.cellWidth;
  }

  y(row) {
    return (row - this.row) * this.cellHeight;
  }

  /** The pixels that cells cover. */
  get shown() {
    return {
      width: Math.min(this.room.width, (this.columns - this.column) * this.cellWidth),
      height: Math.min(this.room.height, (this.rows - this.row) * this.cellHeight),
    };
  }

  /** Pixels across that the whole matrix leaves free. */
  get slack() {
    return Math.max(0, this.room.width - this.columns * this.cellWidth);
  }

  /** The rows and columns that are at least partly in sight. */
  get inSight() {
    return {
      top: Math.floor(this.row), bottom: Math.min(this.rows, Math.ceil(this.row + this.room.height / this.cellHeight - 1e-6)),
      left: Math.floor(this.column), right: Math.min(this.columns, Math.ceil(this.column + this.room.width / this.cellWidth - 1e-6)),
    };
  }

  get roomForValues() {
    return this.cellWidth >= 30 && this.cellHeight >= 16;
  }

  /** The pair at a point, or null outside. */
  pairAt(x, y) {
    const { width, height } = this.shown;
    if (x < 0 || y < 0 || x >= width || y >= height) return null;
    return { row: Math.floor(this.row + y / this.cellHeight), column: Math.floor(this.column + x / this.cellWidth) };
  }

  /** Zoomed so that the point under (x, y) stays there. */
  zoomed(factor, x, y) {
    const next = new Viewport(this.rows, this.columns, this.room, [0, 0, this.magnification * factor]);
    const row = this.row + y / this.cellHeight - y / next.cellHeight;
    const column = this.column + x / this.cellWidth - x / next.cellWidth;
    return new Viewport(this.rows, this.columns, this.room, [row, column, next.magnification]);
  }

  panned(dx, dy) {
    const zoom = [this.row - dy / this.cellHeight, this.column - dx / this.cellWidth, this.magnification];
    return new Viewport(this.rows, this.columns, this.room, zoom);
  }
}
