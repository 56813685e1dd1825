// Wheel, drag, pinch, hover and click on one element, told apart in one place.

const CLICK_REACH = 4;

/** Calls on.zoom(factor, x, y), on.pan(dx, dy), on.point(x, y), on.leave(), on.click(x, y). */
export function gestures(element, on) {
  const fingers = new Map();
  let travelled = 0;
  const place = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x, y } = place(event);
      const lines = event.deltaMode === 1 ? 24 : 1;
      on.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0018)), x, y);
    },
    { passive: false },
  );
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    if (fingers.size === 0) travelled = 0;
    fingers.set(event.pointerId, place(event));
  });
  element.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      on.point(now.x, now.y);
      return;
    }
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (fingers.size === 1) {
      if (travelled > CLICK_REACH) on.pan(now.x - before.x, now.y - before.y);
    } else pinch(event.pointerId, before, now);
    fingers.set(event.pointerId, now);
  });
  const pinch = (id, before, now) => {
    const [, other] = [...fingers].find(([key]) => key !== id);
    const [was, is] = [before, now].map((finger) => Math.hypot(finger.x - other.x, finger.y - other.y));
    on.zoom(is / Math.max(was, 1), (now.x + other.x) / 2, (now.y + other.y) / 2);
    on.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  };
  const lift = (event) => {
    const last = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    if (last && event.type === "pointerup" && fingers.size === 0 && travelled <= CLICK_REACH) on.click(last.x, last.y);
  };
  element.addEventListener("pointerup", lift);
  element.addEventListener("pointercancel", lift);
  element.addEventListener("pointerleave", () => {
    if (fingers.size === 0) on.leave();
  });
}
