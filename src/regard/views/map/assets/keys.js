// The keyboard of the map, and its help.

import { make } from "/assets/page/elements.js";
import { keyRows } from "/assets/page/help.js";
import { stepHead, stepLayer } from "/assets/page/keyboard.js";
import { say } from "/assets/page/languages.js";
import { explainedQuantity, nextQuantity, quantityKey } from "/assets/page/quantities.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SCREENS = { PageUp: -1, PageDown: 1 };
const TYPED_IN = "input, select, textarea";

export function listenForMapKeys(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest?.(TYPED_IN)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const act = actionOf(event, app);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function actionOf({ key, shiftKey }, app) {
  const { state, view } = app;
  if (key in MOVES) {
    const [right, down] = MOVES[key];
    if (shiftKey) return () => stepPair(app, down, right);
    return () => view.pan(right, down);
  }
  if (key === "+" || key === "=") return () => view.zoomBy(2);
  if (key === "-") return () => view.zoomBy(0.5);
  if (key === "0") return () => state.set({ zoom: null });
  if (key in SCREENS && state.now.view === "text") return () => app.text.scrollScreen(SCREENS[key]);
  if (key === "t") return () => state.set({ view: state.now.view === "text" ? "map" : "text" });
  if (key === "/") return () => app.search.input.focus();
  if (key === "w" && app.recording.what.length > 1)
    return () => state.set({ what: nextQuantity(app.recording, state.now.what) });
  if (key === "?") return () => app.help.toggle();
  if (key === "Escape") return app.help.isOpen ? null : () => state.set({ query: null, key: null });
  if (key === "[" || key === "]") return () => stepHead(app, key === "]" ? 1 : -1);
  if (key === "{" || key === "}") return () => stepLayer(app, key === "}" ? 1 : -1);
  return null;
}

function stepPair({ state }, down, right) {
  const { now, call } = state;
  const next = (at, by, length) => (by === 0 ? at : Math.min(length - 1, Math.max(0, (at ?? -1) + by)));
  state.set({ query: next(now.query, down, call.queries), key: next(now.key, right, call.keys) });
}

const MAP_KEYS = [
  [["↑", "↓", "←", "→"], "map.help.move"],
  [["+", "−", "0"], "map.help.zoom"],
  [["[", "]"], "map.help.heads"],
  [["{", "}"], "map.help.layers"],
  [["⇧", "↑ ↓ ← →"], "map.help.tokens"],
  [["t"], "map.help.text"],
  [["/"], "map.help.search"],
  [["Esc"], "map.help.unpin"],
  [["?"], "help.this"],
];

/** The title and the content of the help. */
export function mapHelp(recording) {
  const more = recording.what.length > 1;
  const keys = more ? [...MAP_KEYS, [["w"], "help.what"]] : MAP_KEYS;
  const quantities = more ? recording.what.map((what) => explainedQuantity(quantityKey(recording, what))) : [];
  return {
    title: say("map.help.title"),
    content: [
      make("dl", {}, ...keyRows(keys)),
      ...[...quantities, say("map.help.about")].map((text) => make("p", {}, text)),
    ],
  };
}
