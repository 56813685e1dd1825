// Long work in short slices and drawing once per frame, so that the page stays responsive.

const SLICE_MS = 20;

/** `act`, at most once per frame however often it is called. */
export function oncePerFrame(act) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}

/** Runs a generator a slice at a time; a new task replaces the old one. */
export class Slices {
  constructor() {
    this.task = null;
    this.waiting = [];
  }

  /** Runs a generator; `onSlice(done)` is called after each slice. */
  run(task, onSlice) {
    const mine = { steps: task, onSlice };
    this.task = mine;
    setTimeout(() => this.slice(mine), 0);
  }

  stop() {
    this.task = null;
    this.settle();
  }

  /** Resolves when nothing is left to do. */
  idle() {
    return this.task ? new Promise((resolve) => this.waiting.push(resolve)) : Promise.resolve();
  }

  slice(task) {
    if (task === null || task !== this.task) return;
    const end = performance.now() + SLICE_MS;
    let done = false;
    while (!done && performance.now() < end) done = task.steps.next().done;
    if (done) this.task = null;
    task.onSlice(done);
    if (!done) setTimeout(() => this.slice(task), 0);
    else if (this.task === null) this.settle();
  }

  settle() {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
