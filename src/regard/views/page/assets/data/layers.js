// A page of a long text has the numbers of one call. A server gives those of the others when they are opened, and
// small pictures, statistics and roles of all heads, call by call.

const MOST_PRESENT = 4; // calls whose numbers are kept; the one used longest ago goes first
const TELL_EVERY = 400; // milliseconds

/**
 * What a server gives.
 * @typedef {object} LayerSource
 * @property {(call: number, signal: AbortSignal, onShare: (share: number) => void) => Promise<any>} load
 * @property {(call: number, onFound: (found: any) => void, onShare: (share: number) => void) => Promise<void>} summarise
 */

export class Layers {
  /** @param {any} recording */
  constructor(recording) {
    this.recording = recording;
    this.used = recording.calls.filter((call) => call.present).map((call) => call.index);
    /** Whether the page has all numbers, as most pages do. */
    this.whole = this.used.length === recording.calls.length;
    /** The call that is on its way: { call, share, error }. @type {any} */
    this.loading = null;
    /** How far the summaries of all heads are: { share, error, done }; null before they are asked for. @type {any} */
    this.summaries = null;
    /** @type {((what: "loading" | "summaries") => void)[]} */
    this.listeners = [];
    /** @type {Promise<LayerSource>} */
    this.source = new Promise((resolve) => {
      this.use = resolve;
    });
  }

  /** @param {(what: "loading" | "summaries") => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  tell(what) {
    for (const listener of this.listeners) listener(what);
  }

  // ---- the numbers of a call --------------------------------------------------------------------

  /** Gets the numbers of a call, then does something; asking for another one leaves it. */
  async open(index, then) {
    this.leave();
    const stop = new AbortController();
    const mine = { call: index, share: 0, error: "", stop };
    this.loading = mine;
    this.tell("loading");
    try {
      const source = await this.source;
      const found = await source.load(index, stop.signal, (share) => {
        mine.share = share;
        this.tell("loading");
      });
      if (this.loading !== mine) return;
      this.take(index, found);
      this.loading = null;
      this.tell("loading");
      then();
    } catch (error) {
      if (this.loading !== mine) return;
      mine.error = error.message;
      this.tell("loading");
    }
  }

  /** No longer waits for a call. */
  leave() {
    if (!this.loading) return;
    this.loading.stop.abort();
    this.loading = null;
    this.tell("loading");
  }

  take(index, { described, arrays }) {
    const { calls } = this.recording;
    calls[index].carry(described, arrays);
    if (!calls[index].thumbnails) calls[index].summarise(described, arrays);
    this.used = [index, ...this.used.filter((one) => one !== index)];
    for (const old of this.used.splice(MOST_PRESENT)) calls[old].carry({}, arrays);
  }

  // ---- all heads --------------------------------------------------------------------------------

  /** Gets what is shown of all heads, once; those of a call first. */
  async summarise(call) {
    if (this.whole || (this.summaries && !this.summaries.error)) return;
    this.summaries = { share: 0, error: "", done: false };
    const soon = this.oftenEnough();
    try {
      const source = await this.source;
      await source.summarise(
        call,
        (found) => {
          this.takeSummaries(found);
          soon();
        },
        (share) => {
          this.summaries.share = share;
          soon();
        },
      );
      this.summaries.done = true;
    } catch (error) {
      this.summaries.error = error.message;
    }
    this.tell("summaries");
  }

  takeSummaries({ summaries, roles, cards }) {
    const { calls, statistics: names } = this.recording;
    for (const { call, statistics, thumbnails } of summaries) {
      const one = calls[call];
      const numbers = names.flatMap((name) => statistics[name] ?? one.heads.map(() => null));
      one.statisticValues = Float32Array.from(numbers, (value) => value ?? Number.NaN);
      if (thumbnails) one.thumbnails = thumbnails;
    }
    roles?.forEach((found, call) => {
      calls[call].summarise({ roles: found }, null);
    });
    if (cards) this.recording.cards = cards;
  }

  /** Tells of summaries, but not so often that views do nothing else. */
  oftenEnough() {
    let last = 0;
    return () => {
      if (performance.now() - last < TELL_EVERY) return;
      last = performance.now();
      this.tell("summaries");
    };
  }
}
