// The tiles of one head, fetched when they are looked at: what is in the middle first, what is out of sight not at all.

import { greatestSizeOf } from "/assets/page/text_weights.js";
import { getNumbers } from "./client.js";

export const TILE_SIDE = 256;

const AT_A_TIME = 6;
const MOST_KEPT = 240;
// Levels from here on come from a pass over the whole head, which the server makes on demand.
const FIRST_BUILT = 3;

export class TileLayer {
  /** Tiles of the head that the state names, from below the address `path`; `onTile(error or null)` is called for each. */
  constructor(path, call, { head, show, sinks, what }, onTile) {
    this.path = path;
    this.call = call;
    this.head = call.heads[head];
    this.show = show;
    this.sinks = sinks;
    this.what = what;
    this.greatest = null; // the greatest size of what is shown, once the server has sent it
    this.seen = 0; // the greatest size in the tiles that have come
    this.grown = false; // whether it has grown since they were painted
    this.onTile = onTile;
    this.kept = new Map();
    this.loading = new Map();
    this.wanted = [];
    this.built = false;
    this.failed = false;
    this.coarsest = Math.max(0, Math.ceil(Math.log2(Math.max(call.queries, call.keys) / TILE_SIDE)));
  }

  /** A tile { level, rows, columns, values } or undefined. */
  get(level, row, column) {
    const key = `${level}/${row}/${column}`;
    const found = this.kept.get(key);
    if (found) {
      this.kept.delete(key);
      this.kept.set(key, found);
    }
    return found;
  }

  see(size) {
    this.grown ||= size > this.seen && this.what !== "weight";
    this.seen = Math.max(this.seen, size);
  }

  /** The size that has the strongest colour; means are smaller than the greatest of all. */
  get strongest() {
    return this.show === "max" && this.greatest !== null ? this.greatest : this.seen;
  }

  /** Which head it is, as in the address of a request. */
  get chosen() {
    return `sinks=${this.sinks}&what=${this.what}`;
  }

  /** Whether a level can be requested now. */
  has(level) {
    return this.built || level < FIRST_BUILT;
  }

  get idle() {
    return this.loading.size === 0 && this.wanted.length === 0;
  }

  /** Says which tiles are in sight; [level, row, column], the most urgent first. */
  want(places) {
    const named = places.filter(([level]) => this.has(level)).map((place) => ({ place, key: place.join("/") }));
    const keys = new Set(named.map(({ key }) => key));
    for (const [key, control] of this.loading) if (!keys.has(key)) control.abort();
    this.wanted = named.filter(({ key }) => !this.kept.has(key) && !this.loading.has(key));
    this.pump();
  }

  stop() {
    this.want([]);
  }

  pump() {
    while (this.loading.size < AT_A_TIME && this.wanted.length > 0) this.load(this.wanted.shift());
  }

  async load({ place: [level], key }) {
    const control = new AbortController();
    this.loading.set(key, control);
    try {
      const tile = await getNumbers(
        `${this.path}/tiles/${this.call.index}/${this.head}/${key}?kind=${this.show}&${this.chosen}`,
        control.signal,
      );
      // The server marks masked weights with −0; other quantities are NaN there already.
      if (this.what === "weight") tile.values = tile.values.map((weight) => (Object.is(weight, -0) ? NaN : weight));
      // A mean of a block is shown as what a query of the block gives to its keys: the mean times their number.
      if (this.show === "mean" && level > 0) tile.values = tile.values.map((mean) => mean * 2 ** level);
      this.kept.set(key, { ...tile, level, masked: tile.values.some(Number.isNaN) });
      this.see(greatestSizeOf(tile.values));
      if (this.kept.size > MOST_KEPT) this.kept.delete(this.kept.keys().next().value);
    } catch (error) {
      if (error.name !== "AbortError") this.onTile(error);
    } finally {
      this.loading.delete(key);
    }
    this.pump();
    this.onTile(null);
  }
}
