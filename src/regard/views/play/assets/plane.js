// A plane with axes, on which handles are dragged, by pointer, touch or arrow keys.

import { drawn } from "./drawing.js";

/** The plane shows −3 … 3 along both axes. */
export const PLANE_REACH = 3;

const PLANE_UNIT = 100;
const PLANE_STEP = 0.05;

/** An empty plane: its picture, the layer for what is on it, and how points become places. */
export function planeOf(label, reach) {
  const edge = (reach + 0.3) * PLANE_UNIT;
  const layer = drawn("g");
  const lines = [];
  for (let at = -reach; at <= reach; at += 1) {
    const name = at === 0 ? "axis" : "grid";
    const [from, to, where] = [-edge, edge, at * PLANE_UNIT];
    lines.push(drawn("line", { class: name, x1: where, x2: where, y1: from, y2: to }));
    lines.push(drawn("line", { class: name, y1: where, y2: where, x1: from, x2: to }));
  }
  const svg = drawn(
    "svg",
    { class: "plane", viewBox: `${-edge} ${-edge} ${2 * edge} ${2 * edge}`, role: "group", "aria-label": label },
    ...lines,
    layer,
  );
  return { svg, layer, reach, edge, place: ([x, y]) => [x * PLANE_UNIT, -y * PLANE_UNIT] };
}

/** A point inside the plane, at the nearest step. */
function fitted([x, y], reach) {
  return [x, y].map((c) => Math.round(Math.max(-reach, Math.min(reach, c)) / PLANE_STEP) * PLANE_STEP);
}

const PLANE_ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** Lets a handle be dragged, and moved by arrow keys, ten times as far with shift. */
export function glide(plane, handle, at, moved) {
  const inPlane = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.svg.getScreenCTM().inverse());
    return fitted([point.x / PLANE_UNIT, -point.y / PLANE_UNIT], plane.reach);
  };
  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    handle.focus();
    event.preventDefault();
  });
  handle.addEventListener("pointermove", (event) => {
    if (handle.hasPointerCapture(event.pointerId)) moved(inPlane(event));
  });
  handle.addEventListener("keydown", (event) => {
    const way = PLANE_ARROWS[event.key];
    if (!way) return;
    event.preventDefault();
    const step = PLANE_STEP * (event.shiftKey ? 10 : 1);
    const [x, y] = at();
    moved(fitted([x + way[0] * step, y + way[1] * step], plane.reach));
  });
}
