// A page in which everything that is not immediate comes late: frames, timers, answers of the server, observers, and
// the events that a browser sends afterwards. A test that reads before the page has reacted fails here every time
// instead of once in a hundred runs. The tests of pages use it if REGARD_LATE_PAGES gives a delay in milliseconds.

// Events that come after the action that causes them.
const LATE_EVENTS = ["toggle", "hashchange", "popstate", "scroll"];

/** Delays everything by `delay` milliseconds. */
function comeLate(delay) {
  const { requestAnimationFrame, cancelAnimationFrame, setTimeout, clearTimeout, fetch, ResizeObserver } = window;
  const pause = () => new Promise((done) => setTimeout(done, delay));

  window.setTimeout = (act, time = 0, ...given) => setTimeout(act, time + delay, ...given);

  const frames = new Map(); // by number: how to cancel it
  let last = 0;
  window.requestAnimationFrame = (act) => {
    last += 1;
    const id = last;
    const later = setTimeout(() => {
      const frame = requestAnimationFrame((time) => {
        frames.delete(id);
        act(time);
      });
      frames.set(id, () => cancelAnimationFrame(frame));
    }, delay);
    frames.set(id, () => clearTimeout(later));
    return id;
  };
  window.cancelAnimationFrame = (id) => {
    frames.get(id)?.();
    frames.delete(id);
  };

  window.fetch = async (path, options) => {
    if (!options?.keepalive) await pause(); // a page that is left cannot wait
    return fetch(path, options);
  };

  window.ResizeObserver = class extends ResizeObserver {
    constructor(act) {
      super((entries, observer) => setTimeout(() => act(entries, observer), delay));
    }
  };

  const again = new WeakSet();
  for (const name of LATE_EVENTS)
    window.addEventListener(
      name,
      (event) => {
        if (again.has(event)) return;
        event.stopImmediatePropagation();
        const same = new event.constructor(event.type, event);
        again.add(same);
        const { target } = event;
        setTimeout(() => target.dispatchEvent(same), delay);
      },
      true,
    );
}

window.comeLate = comeLate;
