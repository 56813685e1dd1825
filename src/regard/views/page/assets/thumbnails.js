// The thumbnails of a page, as weights or as another quantity.

/**
 * { rows, columns, values, down, across }: the greatest weight of each block of down × across pairs; null while the
 * page does not have it.
 *
 * The bytes of a thumbnail cannot hold weights below 1/510. A block in which a query may see a key is at least
 * `SMALLEST`, so that only blocks that are wholly masked are exactly 0.
 */
export function thumbnailOf(call, head, what = "weight") {
  if (what === "weight" ? !call.thumbnails : !call.quantities[what]) return null;
  const { rows, columns, values } = call.thumbnail(head, what);
  const [down, across] = [Math.ceil(call.queries / rows), Math.ceil(call.keys / columns)];
  if (what !== "weight") {
    const greatest = call.greatest(what, head);
    const found = Float32Array.from(values, (tone) => greatest * shareOfTone(tone));
    return { rows, columns, values: found, down, across };
  }
  const weights = Float32Array.from(values, (value) => value / 255);
  for (let query = 0; query < call.queries; query += 1) {
    const row = Math.floor(query / down) * columns;
    for (const [from, to] of call.allowed(head, query)) {
      for (let block = Math.floor(from / across); block * across < to; block += 1) {
        if (weights[row + block] === 0) weights[row + block] = SMALLEST;
      }
    }
  }
  return { rows, columns, values: weights, down, across };
}

const SMALLEST = 1e-6;
const NO_NUMBER = -128; // the block is masked
const TONE_DECADES = 5;

/**
 * The share of the greatest number that a tone of a thumbnail represents, with its sign; NaN where it is masked.
 * @param {number} tone −127 … 127, or −128
 */
export function shareOfTone(tone) {
  if (tone === NO_NUMBER) return Number.NaN;
  return tone === 0 ? 0 : Math.sign(tone) * 10 ** (TONE_DECADES * (Math.abs(tone) / 127 - 1));
}

/** Paints a thumbnail, one pixel for each block. */
export function paintThumbnail(canvas, { rows, columns, values }, shading) {
  [canvas.width, canvas.height] = [columns, rows];
  canvas.classList.toggle("fine", columns > 40);
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  shading.paint(pixels.data, values);
  context.putImageData(pixels, 0, 0);
}
