// A flat record of plain values that others listen to: the state of the page and of the map.

/** A state with its listeners; the page and the map say what fits their recordings. */
export class Store {
  constructor(recording, first) {
    this.recording = recording;
    this.first = first;
    this.now = first;
    this.listeners = [];
  }

  /**
   * The state after a change, with only values that fit the recording.
   * @param {Record<string, any>} patch
   * @returns {Record<string, any>}
   */
  fitted(patch) {
    return { ...this.now, ...patch };
  }

  /**
   * Whether a pinned token of one call means the same in another.
   * @param {any} one
   * @param {any} other
   * @returns {boolean}
   */
  keepsPins(one, other) {
    return one === other;
  }

  get call() {
    return this.recording.calls[this.now.call];
  }

  /**
   * Changes some values; listeners are called once, with the names that changed.
   * @param {Record<string, any>} patch
   * @param {string} cause
   */
  set(patch, cause = "user") {
    const next = this.fitted(patch);
    if (next.call !== this.now.call && !this.keepsPins(this.recording.calls[next.call], this.call)) {
      Object.assign(next, { query: patch.query ?? null, key: patch.key ?? null, zoom: patch.zoom ?? null });
    }
    const changed = Object.keys(next).filter((name) => String(next[name]) !== String(this.now[name]));
    if (changed.length === 0) return;
    this.now = next;
    for (const listener of this.listeners) listener(next, new Set(changed), cause);
  }

  /** @param {(now: Record<string, any>, changed: Set<string>, cause: string) => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }
}

/**
 * Whether a value is an index of something that has `length` entries.
 * @param {unknown} value
 * @param {number} length
 */
export function isIndex(value, length) {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < length;
}
