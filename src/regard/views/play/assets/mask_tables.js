// Tables of a mask text: what NumPy makes of nested lists, and how they are written.

import { valueRepr } from "./python_text.js";

const SHORTEST_RUN = 6;

/** Numbers or truth values with a shape, row by row. */
export class MaskTable {
  /**
   * @param {string} dtype "bool", "int64", "float64" (only empty ones) or "object" (None)
   * @param {number[]} shape
   * @param {any[]} values
   */
  constructor(dtype, shape, values) {
    this.dtype = dtype;
    this.shape = shape;
    this.values = values;
    /** @type {string | undefined} */
    this.ownKey = undefined;
  }

  get size() {
    return this.values.length;
  }

  get axes() {
    return this.shape.length;
  }

  /** Equal for equal tables only. */
  get key() {
    this.ownKey ??= `${this.dtype}${this.shape}:${this.values.map(Number).join(",")}`;
    return this.ownKey;
  }

  /** With another shape. */
  shaped(shape) {
    return new MaskTable(this.dtype, shape, this.values);
  }

  /** One element of the first axis. */
  part(index) {
    const inner = this.shape.slice(1);
    const size = inner.reduce((one, other) => one * other, 1);
    return new MaskTable(this.dtype, inner, this.values.slice(index * size, (index + 1) * size));
  }

  /** The table of one element of the leading axes; the last `own` axes remain. An axis of size 1 fits any index. */
  at(index, own) {
    /** @type {MaskTable} */
    let found = this;
    const lead = this.axes - own;
    for (const place of index.slice(index.length - lead)) found = found.part(found.shape[0] === 1 ? 0 : place);
    return found;
  }

  /** Rows and columns exchanged, for the last two axes. */
  turned() {
    const [rows, columns] = this.shape.slice(-2);
    const each = rows * columns;
    const out = new Array(this.size);
    for (let start = 0; start < this.size; start += each) {
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) out[start + j * rows + i] = this.values[start + i * columns + j];
      }
    }
    return new MaskTable(this.dtype, [...this.shape.slice(0, -2), columns, rows], out);
  }

  /** With truth values. */
  truths() {
    return new MaskTable("bool", this.shape, this.values.map(Boolean));
  }

  /** As NumPy prints it, on as many lines as it has rows. */
  repr() {
    const texts = this.values.map((value) => (this.dtype === "bool" ? valueRepr(value) : String(value)));
    const widest = Math.max(0, ...texts.map((text) => text.length));
    const padded = texts.map((text) => text.padStart(widest));
    const written = (shape, from, depth) => {
      if (!shape.length) return padded[from];
      const size = shape.slice(1).reduce((one, other) => one * other, 1);
      const rows = Array.from({ length: shape[0] }, (_, i) => written(shape.slice(1), from + i * size, depth + 1));
      return `[${rows.join(shape.length > 1 ? `,${"\n".repeat(shape.length - 1)}${" ".repeat(7 + depth)}` : ", ")}]`;
    };
    if (!this.size)
      return this.axes === 1
        ? "array([], dtype=float64)"
        : `array([], shape=(${this.shape.join(", ")}), dtype=float64)`;
    return `array(${written(this.shape, 0, 0)})`;
  }
}

/** What a list of values becomes, each repeated; null if its rows have different lengths. */
export function tableOf(values, counts) {
  if (!counts.some((count) => count > 0)) return new MaskTable("float64", [0], []);
  const inner = values.map((value) => (value instanceof MaskTable ? value : scalarTable(value)));
  const [first] = inner;
  if (inner.some((one) => String(one.shape) !== String(first.shape))) return null;
  const dtypes = new Set(inner.map((one) => one.dtype));
  const dtype = ["float64", "int64", "bool"].find((one) => dtypes.has(one));
  const out = [];
  let rows = 0;
  inner.forEach((one, index) => {
    rows += counts[index];
    const own = dtype === "bool" ? one.values : one.values.map(plainNumber);
    for (let time = 0; time < counts[index]; time++) for (const value of own) out.push(value);
  });
  return new MaskTable(dtype, [rows, ...first.shape], out);
}

const plainNumber = (value) => (typeof value === "boolean" ? Number(value) : value);

/** A single value as a table without axes. */
export function scalarTable(value) {
  if (value === null) return new MaskTable("object", [], [null]);
  return new MaskTable(typeof value === "boolean" ? "bool" : "int64", [], [value]);
}

/** A table as a text that can be parsed again; runs of equal values are abbreviated. */
export function tableText(table) {
  if (!table.axes) return valueRepr(table.values[0]);
  if (table.axes === 1) return `[${runsOf(table.values.map(valueRepr)).join(", ")}]`;
  const rows = Array.from({ length: table.shape[0] }, (_, i) => {
    const row = table.part(i);
    return tableText(row.dtype === "bool" ? new MaskTable("int64", row.shape, row.values.map(Number)) : row);
  });
  return `[${runsOf(rows).join(", ")}]`;
}

function runsOf(texts) {
  const words = [];
  for (let from = 0; from < texts.length; ) {
    let to = from;
    while (to < texts.length && texts[to] === texts[from]) to += 1;
    if (to - from >= SHORTEST_RUN) words.push(`${texts[from]}*${to - from}`);
    else words.push(...texts.slice(from, to));
    from = to;
  }
  return words;
}

/** The shape that two shapes broadcast to; null if they do not. */
export function broadcastShapes(one, other) {
  const length = Math.max(one.length, other.length);
  const shape = [];
  for (let at = 0; at < length; at++) {
    const a = one[at - length + one.length] ?? 1;
    const b = other[at - length + other.length] ?? 1;
    if (a !== b && a !== 1 && b !== 1) return null;
    shape.push(a === 1 ? b : a);
  }
  return shape;
}
