// Rows of rounded numbers: planes × rows × columns, each row with its own scale.

const KEPT_BYTES = 96e6;

export class RowTable {
  constructor({ codes, scales, shape }, arrays) {
    const [planes, rows, columns] = shape;
    this.planes = planes;
    this.rows = rows;
    this.columns = columns;
    this.place = codes;
    this.arrays = arrays;
    this.scales = scales === null ? null : arrays.at(scales);
    this.kept = new Map();
  }

  /** The rounded numbers, decoded on first use. */
  get codes() {
    return this.arrays.at(this.place);
  }

  /** The numbers of one plane; the planes used last are kept. */
  plane(index) {
    const size = this.rows * this.columns;
    if (!this.scales) return this.codes.subarray(index * size, (index + 1) * size);
    let found = this.kept.get(index);
    if (found) this.kept.delete(index);
    else found = this.block(index, 0, this.rows, 0, this.columns);
    this.kept.set(index, found);
    if (this.kept.size > 1 && this.kept.size * size * 4 > KEPT_BYTES) {
      this.kept.delete(this.kept.keys().next().value);
    }
    return found;
  }

  /** Some rows and columns of one plane, row by row. */
  block(index, rowFrom, rowTo, columnFrom, columnTo) {
    const { codes } = this;
    const width = columnTo - columnFrom;
    const out = new Float32Array((rowTo - rowFrom) * width);
    for (let row = rowFrom; row < rowTo; row++) {
      const line = index * this.rows + row;
      const scale = this.scales ? this.scales[line] : 1;
      const from = line * this.columns + columnFrom;
      const to = (row - rowFrom) * width;
      for (let column = 0; column < width; column++) out[to + column] = codes[from + column] * scale;
    }
    return out;
  }

  /** A function of row and column; an axis of size 1 serves every position. */
  lookup(index) {
    const own = this.plane(this.planes > 1 ? index : 0);
    const down = this.rows > 1 ? this.columns : 0;
    const across = this.columns > 1 ? 1 : 0;
    return (row, column) => own[row * down + column * across];
  }
}
