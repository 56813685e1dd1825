// The alignment of a translation, played once word by word when the page opens. It hands over to the pointer.

const STEP_MS = 620;

export class AlignmentPlay {
  constructor(view) {
    this.view = view;
    this.timer = 0;
  }

  get running() {
    return this.timer !== 0;
  }

  /** Plays through the target once, unless the reader asked for less motion. */
  start() {
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const { units, marks } = this.view.blocks.query;
    const words = units.first.flatMap((token, unit) => (marks[token] ? [] : [unit]));
    if (words.length > 60) return; // nobody waits for a whole chapter
    const next = (at) => {
      this.view.pointed = at < words.length ? { side: "query", unit: words[at] } : null;
      this.timer = at < words.length ? window.setTimeout(() => next(at + 1), STEP_MS) : 0;
      this.view.paint();
    };
    this.timer = window.setTimeout(() => next(0), STEP_MS);
  }

  stop() {
    if (!this.running) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.view.pointed = null;
  }
}
