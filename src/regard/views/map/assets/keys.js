// The keyboard of the map, and its help.

import { make } from "../page/elements.js";
import { say } from "../page/languages.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const TYPED_IN = "input, select, textarea";

export function listenForMapKeys(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.(TYPED_IN)) {
      if (event.key === "Escape") event.target.blur();
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
  if (key === "/") return () => app.search.input.focus();
  if (key === "?") return () => app.help.toggle();
  if (key === "Escape") return app.help.dialog.open ? null : () => state.set({ query: null, key: null });
  if (key === "[" || key === "]") return () => stepHead(app, key === "]" ? 1 : -1);
  if (key === "{" || key === "}") return () => stepLayer(app, key === "}" ? 1 : -1);
  return null;
}

function stepPair({ state }, down, right) {
  const { now, call } = state;
  const next = (at, by, length) => (by === 0 ? at : Math.min(length - 1, Math.max(0, (at ?? -1) + by)));
  state.set({ query: next(now.query, down, call.queries), key: next(now.key, right, call.keys) });
}

function stepHead({ state }, by) {
  const head = state.now.head + by;
  if (head >= 0 && head < state.call.heads.length) state.set({ head });
}

function stepLayer({ recording, state }, by) {
  const alike = recording.calls.filter((one) => one.kind === state.call.kind && one.run === state.call.run);
  const next = alike[alike.indexOf(state.call) + by];
  if (next) state.set({ call: next.index });
}

const KEY_ROWS = [
  [["↑", "↓", "←", "→"], "map.help.move"], [["+", "−", "0"], "map.help.zoom"], [["[", "]"], "map.help.heads"], [["{", "}"], "map.help.layers"],
  [["⇧", "↑ ↓ ← →"], "map.help.tokens"], [["/"], "map.help.search"], [["Esc"], "map.help.unpin"], [["?"], "help.this"],
];

/** A dialog that is built when it opens. */
export class MapHelp {
  constructor() {
    this.dialog = make("dialog", { class: "help", on: { click: (event) => event.target === this.dialog && this.dialog.close() } });
  }

  toggle() {
    if (this.dialog.open) {
      this.dialog.close();
      return;
    }
    const rows = KEY_ROWS.flatMap(([keys, text]) => [make("dt", { translate: "no" }, ...keys.map((key) => make("kbd", {}, key))), make("dd", {}, say(text))]);
    this.dialog.setAttribute("aria-label", say("map.help.title"));
    this.dialog.replaceChildren(make("div", {},
      make("button", { type: "button", class: "quiet close", "aria-label": say("close"), on: { click: () => this.dialog.close() } }, "×"),
      make("h2", {}, say("map.help.title")), make("dl", {}, ...rows), make("p", {}, say("map.help.about"))));
    this.dialog.showModal();
  }
}
