// Masks as the library has them: patterns, combined by & | ~. Positions are absolute; the last query is at the
// last key. A pattern depends on the key alone, on the query alone, or on both, and then says for each query which
// runs of keys it allows.

import { MaskProblem } from "./mask_problem.js";
import { broadcastShapes, tableText } from "./mask_tables.js";
import { tupleText } from "./python_text.js";

/** What all masks have; each kind says what it is. */
class MaskNode {
  constructor() {
    /** @type {string | undefined} */
    this.ownKey = undefined;
    /** @type {string | null} what a pattern depends on: "key", "query" or "pair" */
    this.axis = null;
  }

  /**
   * The leading axes along which the mask differs.
   * @returns {number[]}
   */
  get lead() {
    return [];
  }

  /** Equal for equal masks only. */
  get key() {
    return this.text();
  }

  /**
   * The mask of one element of the leading axes.
   * @param {number[]} _index
   * @returns {MaskNode}
   */
  select(_index) {
    return this;
  }

  /** Raises if the mask does not fit these lengths. */
  check(_extent) {}

  /**
   * The patterns it is built from.
   * @returns {Generator<MaskNode>}
   */
  *patterns() {
    yield this;
  }

  /**
   * The lengths that its tables fix.
   * @returns {{ queries: number | null, keys: number | null } | null}
   */
  get fixed() {
    return null;
  }

  text() {
    return "";
  }

  /**
   * With queries and keys exchanged.
   * @returns {MaskNode}
   */
  transposed() {
    return this;
  }

  /**
   * For a pattern of both axes: the runs of keys that a query sees, whose ends are exclusive.
   * @param {number} _query
   * @param {{ queries: number, keys: number }} _extent
   * @returns {number[][]}
   */
  runs(_query, _extent) {
    return [];
  }

  /**
   * For a pattern of one axis: whether it holds at a position.
   * @param {number} _position
   * @param {{ queries: number, keys: number }} _extent
   * @returns {boolean}
   */
  holds(_position, _extent) {
    return false;
  }
}

export class ConstantMask extends MaskNode {
  constructor(value) {
    super();
    this.value = value;
  }

  text() {
    return this.value ? "everything()" : "nothing()";
  }
}

// ---- combinations ------------------------------------------------------------------------------

export class CombinedMask extends MaskNode {
  constructor(sign, parts) {
    super();
    this.sign = sign;
    this.parts = parts;
  }

  get key() {
    this.ownKey ??= `${this.sign}(${this.parts.map((part) => part.key).join(";")})`;
    return this.ownKey;
  }

  get lead() {
    return this.parts.reduce((shape, part) => broadcastShapes(shape, part.lead), []);
  }

  get fixed() {
    return this.parts.map((part) => part.fixed).find(Boolean) ?? null;
  }

  text() {
    const inside = (part) =>
      part instanceof CombinedMask && part.sign === "|" && this.sign === "&" ? `(${part.text()})` : part.text();
    return this.parts.map(inside).join(` ${this.sign} `);
  }

  select(index) {
    return combineMasks(
      this.sign,
      this.parts.map((part) => part.select(index)),
    );
  }

  check(extent) {
    for (const part of this.parts) part.check(extent);
  }

  *patterns() {
    for (const part of this.parts) yield* part.patterns();
  }

  transposed() {
    return combineMasks(
      this.sign,
      this.parts.map((part) => part.transposed()),
    );
  }
}

/** Combines masks by one sign: nested ones are flattened, constants resolved, repeated ones dropped. */
export class MaskCombiner {
  constructor(sign) {
    this.sign = sign;
    this.parts = new Map();
    this.lead = [];
    this.decided = false;
  }

  add(mask) {
    const same = mask instanceof CombinedMask && mask.sign === this.sign;
    for (const part of same ? mask.parts : [mask]) {
      if (part instanceof ConstantMask) this.decided ||= part.value !== (this.sign === "&");
      else if (!this.decided) {
        const lead = broadcastShapes(this.lead, part.lead);
        if (lead === null) {
          throw new MaskProblem("Masks that are combined must have leading axes that broadcast.", {
            got: "{lead} and {other}",
            advice: "Give the tables the same leading shape, or size 1 where they do not vary.",
            lead: tupleText(this.lead),
            other: tupleText(part.lead),
          });
        }
        this.lead = lead;
        if (!this.parts.has(part.key)) this.parts.set(part.key, part);
      }
    }
  }

  mask() {
    if (this.decided) return new ConstantMask(this.sign === "|");
    const parts = [...this.parts.values()];
    if (parts.length < 2) return parts[0] ?? new ConstantMask(this.sign === "&");
    return new CombinedMask(this.sign, parts);
  }
}

export function combineMasks(sign, parts) {
  const combiner = new MaskCombiner(sign);
  for (const part of parts) combiner.add(part);
  return combiner.mask();
}

export class NotMask extends MaskNode {
  constructor(part) {
    super();
    this.part = part;
  }

  get key() {
    this.ownKey ??= `~${this.part.key}`;
    return this.ownKey;
  }

  get lead() {
    return this.part.lead;
  }

  get fixed() {
    return this.part.fixed;
  }

  text() {
    return this.part instanceof CombinedMask ? `~(${this.part.text()})` : `~${this.part.text()}`;
  }

  select(index) {
    return invertMask(this.part.select(index));
  }

  check(extent) {
    this.part.check(extent);
  }

  *patterns() {
    yield* this.part.patterns();
  }

  transposed() {
    return invertMask(this.part.transposed());
  }
}

export function invertMask(mask) {
  if (mask instanceof ConstantMask) return new ConstantMask(!mask.value);
  return mask instanceof NotMask ? mask.part : new NotMask(mask);
}

// ---- distance ----------------------------------------------------------------------------------

/** Keys from `before` positions before the query to `after` positions after it; null means no limit. */
export class WindowMask extends MaskNode {
  constructor(before, after) {
    super();
    this.before = before;
    this.after = after;
    this.axis = "pair";
  }

  text() {
    const { before, after } = this;
    if (before === null && after === 0) return "causal()";
    if (before === 0 && after === null) return "causal().T";
    return `window(${before ?? "None"}, ${after ?? "None"})`;
  }

  runs(query, { keys }) {
    const from = this.before === null ? 0 : Math.max(0, query - this.before);
    const to = this.after === null ? keys : Math.min(keys, query + this.after + 1);
    return from < to ? [[from, to]] : [];
  }

  transposed() {
    return new WindowMask(this.after, this.before);
  }
}

// ---- one axis ----------------------------------------------------------------------------------

/** A pattern of the position of the key or, transposed, of the query. */
class AxisMask extends MaskNode {
  constructor(turned) {
    super();
    this.turned = turned;
    this.axis = turned ? "query" : "key";
  }

  own() {
    return "";
  }

  text() {
    return this.own() + (this.turned ? ".T" : "");
  }
}

export class SpanMask extends AxisMask {
  constructor(start, stop, turned = false) {
    super(turned);
    this.start = start;
    this.stop = stop;
  }

  own() {
    return this.start ? `span(${this.start}, ${this.stop})` : `prefix(${this.stop})`;
  }

  holds(position) {
    // Where there are more queries than keys, the first queries are before position 0, which a prefix includes.
    return (this.start === 0 || position >= this.start) && position < this.stop;
  }

  transposed() {
    return new SpanMask(this.start, this.stop, !this.turned);
  }
}

export class EveryMask extends AxisMask {
  constructor(stride, turned = false) {
    super(turned);
    this.stride = stride;
  }

  own() {
    return `every(${this.stride})`;
  }

  holds(position) {
    return position % this.stride === 0;
  }

  transposed() {
    return new EveryMask(this.stride, !this.turned);
  }
}

/** The positions that are not padding; the table's last entry belongs to the last position. */
export class PaddingMask extends AxisMask {
  constructor(keep, turned = false) {
    super(turned);
    this.keep = keep;
    this.length = keep.shape.at(-1);
  }

  get key() {
    return `padding${this.turned}${this.keep.key}`;
  }

  get lead() {
    return this.keep.shape.slice(0, -1);
  }

  get fixed() {
    return { queries: this.length, keys: this.length };
  }

  own() {
    return `padding(${tableText(withoutHead(this.keep))})`;
  }

  holds(position, { keys }) {
    return this.keep.values[position + this.length - keys];
  }

  select(index) {
    return this.lead.length ? new PaddingMask(this.keep.at(index, 1), this.turned) : this;
  }

  check(extent) {
    const { length, turned } = this;
    const fits = length === extent.keys || (turned && length === extent.queries);
    if (!fits || (turned && length < extent.queries)) {
      throw new MaskProblem("padding(keep) needs one value per position ({extent}).", {
        got: turned ? "{length} values for the queries" : "{length} values for the keys",
        advice: "Pass keep with shape (batch, keys), True = a real token.",
        extent: extentText(extent),
        length,
      });
    }
  }

  transposed() {
    return new PaddingMask(this.keep, !this.turned);
  }
}

/** The first positions of every batch element. */
export class LengthsMask extends AxisMask {
  constructor(lengths, turned = false) {
    super(turned);
    this.lengths = lengths;
  }

  get key() {
    return `lengths${this.turned}${this.lengths.key}`;
  }

  get lead() {
    return this.lengths.shape;
  }

  own() {
    return `padding(lengths=${tableText(this.lengths.shaped(this.lengths.shape.slice(0, -1)))})`;
  }

  select(index) {
    return this.lead.length ? new SpanMask(0, this.lengths.at(index, 0).values[0], this.turned) : this;
  }

  transposed() {
    return new LengthsMask(this.lengths, !this.turned);
  }
}

/** A table without its axis of heads, which has size 1: what was written. */
export function withoutHead(table) {
  return table.axes > 1 ? table.shaped([...table.shape.slice(0, -2), table.shape.at(-1)]) : table;
}

/** How errors name the lengths. */
export function extentText({ queries, keys }) {
  return `queries = ${queries}, keys = ${keys}`;
}

// ---- tables over both axes ---------------------------------------------------------------------

/** Pairs within one document. */
export class DocumentsMask extends MaskNode {
  constructor(queryIds, keyIds) {
    super();
    this.queryIds = queryIds;
    this.keyIds = keyIds;
    this.axis = "pair";
    /** @type {{ keys: number, found: Map<any, number[][]> } | null} */
    this.runsOfKeys = null;
  }

  get key() {
    return `documents${this.queryIds.key}${this.keyIds.key}`;
  }

  get lead() {
    return broadcastShapes(this.queryIds.shape.slice(0, -1), this.keyIds.shape.slice(0, -1));
  }

  get fixed() {
    return { queries: this.queryIds.shape.at(-1), keys: this.keyIds.shape.at(-1) };
  }

  get shared() {
    return this.queryIds.key === this.keyIds.key;
  }

  text() {
    const tables = this.shared ? [this.queryIds] : [this.queryIds, this.keyIds];
    return `documents(${tables.map((table) => tableText(withoutHead(table))).join(", ")})`;
  }

  /** The runs of keys of every document. */
  keyRuns(keys) {
    if (this.runsOfKeys?.keys === keys) return this.runsOfKeys.found;
    const found = new Map();
    const ids = this.keyIds.values;
    const shift = ids.length - keys;
    for (let from = 0; from < keys; ) {
      let to = from + 1;
      while (to < keys && ids[to + shift] === ids[from + shift]) to += 1;
      const id = ids[from + shift];
      if (!found.has(id)) found.set(id, []);
      found.get(id).push([from, to]);
      from = to;
    }
    this.runsOfKeys = { keys, found };
    return found;
  }

  runs(query, { keys }) {
    const ids = this.queryIds.values;
    return this.keyRuns(keys).get(ids[query + ids.length - keys]) ?? [];
  }

  select(index) {
    return this.lead.length ? new DocumentsMask(this.queryIds.at(index, 1), this.keyIds.at(index, 1)) : this;
  }

  check(extent) {
    const { queries, keys } = this.fixed;
    const shared = this.shared && queries === Math.max(extent.queries, extent.keys);
    if (!shared && (queries !== extent.queries || keys !== extent.keys)) {
      throw new MaskProblem("documents(ids) needs one id per position ({extent}).", {
        got: "{queries} ids for the queries and {keys} for the keys",
        advice: "Pass ids of shape (batch, length) or (length,), or documents(query_ids, key_ids).",
        extent: extentText(extent),
        queries,
        keys,
      });
    }
  }

  transposed() {
    return new DocumentsMask(this.keyIds, this.queryIds);
  }
}

/** Any table of truth values; axes of size 1 broadcast. */
export class DenseMask extends MaskNode {
  constructor(table) {
    super();
    this.table = table.axes < 2 ? table.shaped([1, table.size]) : table;
    this.axis = "pair";
  }

  get key() {
    return `dense${this.table.key}`;
  }

  get lead() {
    return this.table.shape.slice(0, -2);
  }

  get fixed() {
    const [rows, columns] = this.table.shape.slice(-2);
    return rows === 1 && columns === 1
      ? null
      : { queries: rows === 1 ? null : rows, keys: columns === 1 ? null : columns };
  }

  text() {
    return this.table.shape.at(-2) ? `dense(${tableText(this.table)})` : `${this.transposed().text()}.T`;
  }

  runs(query, { queries, keys }) {
    const [rows, columns] = this.table.shape;
    const start = (rows === 1 ? 0 : query - keys + queries) * columns;
    const at = (j) => this.table.values[start + (columns === 1 ? 0 : j)];
    const found = [];
    for (let from = 0; from < keys; from++) {
      if (!at(from)) continue;
      let to = from + 1;
      while (to < keys && at(to)) to += 1;
      found.push([from, to]);
      from = to;
    }
    return found;
  }

  select(index) {
    if (!this.lead.length) return this;
    const own = this.table.at(index, 2);
    return own.size === 1 && own.shape[0] === 1 ? new ConstantMask(Boolean(own.values[0])) : new DenseMask(own);
  }

  check(extent) {
    const [rows, columns] = this.table.shape.slice(-2);
    if ((rows !== 1 && rows !== extent.queries) || (columns !== 1 && columns !== extent.keys)) {
      throw new MaskProblem("A dense mask must broadcast to (..., queries, keys) ({extent}).", {
        got: "shape {shape}",
        advice: "Give it one row per query and one column per key; for padding use masks.padding(keep).",
        extent: extentText(extent),
        shape: tupleText(this.table.shape),
      });
    }
  }

  transposed() {
    return new DenseMask(this.table.turned());
  }
}

// ---- grids -------------------------------------------------------------------------------------

/** Points of a grid at most `radius` away along every axis; their positions count row by row. */
export class NeighbourhoodMask extends MaskNode {
  constructor(shape, radius, shifted, turned = false) {
    super();
    this.shape = shape;
    this.radius = radius;
    this.shifted = shifted;
    this.turned = turned;
    this.axis = "pair";
    this.points = shape.reduce((one, other) => one * other, 1);
    this.bounds = shape.map((size, axis) => axisBounds(size, radius[axis], shifted, turned));
  }

  get fixed() {
    return { queries: this.points, keys: this.points };
  }

  text() {
    const radius = new Set(this.radius).size === 1 ? this.radius[0] : `[${this.radius.join(", ")}]`;
    const shifted = this.shifted ? ", shifted=True" : "";
    return `neighbourhood([${this.shape.join(", ")}], ${radius}${shifted})${this.turned ? ".T" : ""}`;
  }

  runs(query) {
    let found = [[0, 1]];
    let rest = this.points;
    let left = query;
    this.shape.forEach((size, axis) => {
      rest /= size;
      const along = Math.floor(left / rest);
      left -= along * rest;
      const [low, high] = this.bounds[axis][along];
      // Each run so far is one point of the axes before; it becomes a run of this axis.
      found = found.flatMap(([from]) =>
        axis === this.shape.length - 1
          ? [[from * size + low, from * size + high + 1]]
          : Array.from({ length: high - low + 1 }, (_, step) => [from * size + low + step, 0]),
      );
    });
    return found;
  }

  check(extent) {
    if (extent.keys !== this.points || extent.queries > extent.keys) {
      throw new MaskProblem(
        "neighbourhood(shape) needs one key for every point of its grid ({shape}: keys = {points}), and no more queries than keys.",
        {
          got: "{extent}",
          advice: "Give the height and width of the image, in patches.",
          shape: this.shape.join(" × "),
          points: this.points,
          extent: extentText(extent),
        },
      );
    }
  }

  transposed() {
    return this.shifted ? new NeighbourhoodMask(this.shape, this.radius, this.shifted, !this.turned) : this;
  }
}

/** For each coordinate of the query along an axis, the first and last coordinate of the keys that it sees. */
function axisBounds(size, reach, shifted, turned) {
  const centre = (along) => {
    if (!shifted) return along;
    return size > 2 * reach ? Math.min(Math.max(along, reach), size - 1 - reach) : Math.floor(size / 2);
  };
  return Array.from({ length: size }, (_, along) => {
    if (!turned) return [Math.max(0, centre(along) - reach), Math.min(size - 1, centre(along) + reach)];
    const seen = Array.from({ length: size }, (__, other) => other).filter(
      (other) => along >= centre(other) - reach && along <= centre(other) + reach,
    );
    return [seen[0] ?? 0, seen.at(-1) ?? -1];
  });
}
