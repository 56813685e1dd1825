// The margins of the map: attention received by every key below it, entropy of every query beside it.

export const MARGIN_DEPTH = 34;
/** Room for the name of the margin beside the map. */
export const MARGIN_NAME = 20;
const NAME_SIZE = 11;

/**
 * Numbers along an axis as one number per pixel: the greatest of those that share it.
 * @param {ArrayLike<number>} values
 * @param {number} from the number at the first pixel, with a fraction
 * @param {number} size pixels per number
 * @param {number} pixels
 */
export function perPixel(values, from, size, pixels) {
  const found = new Float32Array(pixels);
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    const [first, last] = [Math.floor(from + pixel / size), Math.ceil(from + (pixel + 1) / size)];
    for (let at = Math.max(0, first); at < Math.min(last, values.length); at += 1)
      found[pixel] = Math.max(found[pixel], values[at]);
  }
  return found;
}

/** Draws both margins, with `names` { received, entropy } beside them. `received` is squeezed by a square root, because sinks receive thousands. */
export function drawMargins(surface, { viewport, inks, received, entropy, depth, names }) {
  const { left, top, width, height } = viewport;
  const columns = perPixel(received, viewport.column, viewport.cellWidth, Math.round(width));
  const rows = perPixel(entropy, viewport.row, viewport.cellHeight, Math.round(height));
  const most = Math.sqrt(Math.max(1e-9, ...columns));
  const widest = Math.log(Math.max(2, received.length));
  const below = top + height + 1;
  columns.forEach((value, x) => {
    const size = (Math.sqrt(value) / most) * depth;
    if (size > 0) surface.rect(left + x, below, 1, size, inks.accent, { opacity: 0.55 });
  });
  const right = left + width + 1;
  rows.forEach((value, y) => {
    const size = Math.min(1, value / widest) * depth;
    if (size > 0) surface.rect(right, top + y, size, 1, inks.negative, { opacity: 0.55 });
  });
  const name = { size: NAME_SIZE, fill: inks.faint };
  surface.text(left + width, below + depth + 7, names.received, { ...name, anchor: "end", limit: width });
  surface.text(right + depth + 9, top, names.entropy, { ...name, turn: 90, limit: height });
}
