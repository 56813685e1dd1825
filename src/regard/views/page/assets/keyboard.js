// The keyboard: one table of keys.

import { chooseHead } from "./controls.js";
import { closeExplanation } from "./explained.js";
import { nextQuantity } from "./quantities.js";
import { viewsOf } from "./state.js";

const TYPING = "input, select, textarea";

/** Listens for keys as long as the page lives. */
export function listenForKeys(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key !== "Escape" && /** @type {Element} */ (event.target).closest?.(TYPING)) return;
    const act = actionFor(event, app);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function actionFor({ key, shiftKey }, app) {
  const { state } = app;
  const arrows = { ArrowUp: ["layer", -1], ArrowDown: ["layer", 1], ArrowLeft: ["head", -1], ArrowRight: ["head", 1] };
  if (key in arrows) {
    const [what, step] = arrows[key];
    if (shiftKey) return () => stepToken(app, what === "layer" ? "query" : "key", step);
    return () => (what === "layer" ? stepLayer(app, step) : stepHead(app, step));
  }
  const views = viewsOf(app.recording);
  if (key >= "1" && key <= String(views.length)) return () => state.set({ view: views[Number(key) - 1] });
  if (key === "w" && app.recording.what.length > 1)
    return () => state.set({ what: nextQuantity(app.recording, state.now.what) });
  if (key === "d" && app.recording.what.includes("difference"))
    return () => state.set({ what: state.now.what === "difference" ? "weight" : "difference" });
  if (key === "?") return () => app.help.toggle();
  if (key === "/") return () => app.find.open();
  if (key === "s") return () => app.toStrongest();
  if (key === "n" || key === "N") return () => app.find.step(key === "n" ? 1 : -1);
  if (key === "Escape") return () => leaveOpen(app);
  if (app.view.zoomBy) {
    if (key === "+" || key === "=") return () => app.view.zoomBy(1.6);
    if (key === "-") return () => app.view.zoomBy(1 / 1.6);
    if (key === "0") return () => state.set({ zoom: null });
  }
  return null;
}

/** Closes what is open, the smallest first; then unpins. */
function leaveOpen({ help, find, state }) {
  if (closeExplanation()) return;
  if (help.isOpen) help.close();
  else if (!find.root.hidden) find.close();
  else state.set({ query: null, key: null });
}

/** Shows the next layer of the same kind and run. */
export function stepLayer({ recording, state }, step) {
  const { call } = state;
  const alike = recording.calls.filter((one) => one.kind === call.kind && one.run === call.run);
  const next = alike[alike.indexOf(call) + step];
  if (next) state.set({ call: next.index });
}

/** Shows the next head. */
export function stepHead({ state }, step) {
  const head = state.now.head + step;
  if (head >= 0 && head < state.call.heads.length) state.set(chooseHead(state, head));
}

/** Pins the token beside the pinned one, as the lens shows them. */
function stepToken(app, side, step) {
  const look = app.look();
  const { now } = app.state;
  const [axis, at] = side === "query" ? [look.rows, look.rowOf(now.query)] : [look.columns, look.columnOf(now.key)];
  const next = at < 0 ? (step > 0 ? 0 : axis.count - 1) : at + step;
  if (next >= 0 && next < axis.count) app.state.set({ [side]: axis.first[next] });
}
