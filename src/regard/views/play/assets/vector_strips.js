// Vectors of many channels as strips of colour, a row for each token; one row can be read as numbers.

import { fitCanvas, make } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { cellNumber } from "./cell_grid.js";

const STRIP_HEIGHT = 20;
const FIRST_NUMBERS = 8;

/** A token as displayed: without the sign for a space before a word. */
export const shownToken = (token) => token.replace(/^(▁|##)/, "") || "␣";

/**
 * @param {string[]} tokens
 * @param {number[][]} rows
 * @param {{ title: string, inks: any, chosen: number, choose: (row: number) => void, greatest?: number | null,
 *   positive?: boolean }} options
 */
export function vectorStrips(tokens, rows, { title, inks, chosen, choose, greatest = null, positive = false }) {
  const most =
    greatest ?? rows.reduce((most, row) => row.reduce((far, value) => Math.max(far, Math.abs(value)), most), 1e-9);
  const lines = rows.map((row, i) => {
    const canvas = make("canvas", { class: "strip" });
    paintStrip(canvas, row, most, positive ? inks.ramp : inks.signed, positive);
    return make(
      "button",
      {
        type: "button",
        class: "strip-row",
        "aria-pressed": String(i === chosen),
        "aria-label": `${title}: ${shownToken(tokens[i])}`,
        on: { click: () => choose(i) },
      },
      make("span", { class: "token", translate: "no" }, shownToken(tokens[i])),
      canvas,
    );
  });
  const numbers = rows[chosen] ?? [];
  return make(
    "figure",
    { class: "strips" },
    make("figcaption", {}, title, " ", make("small", {}, `${rows.length} × ${numbers.length}`)),
    ...lines,
    make(
      "p",
      { class: "first-numbers" },
      make("b", { translate: "no" }, shownToken(tokens[chosen])),
      " = [ ",
      numbers.slice(0, FIRST_NUMBERS).map(cellNumber).join(", "),
      numbers.length > FIRST_NUMBERS
        ? `, … ${say("transformer.more", { count: numbers.length - FIRST_NUMBERS })} ]`
        : " ]",
    ),
  );
}

/** One pixel for each channel; the browser stretches it. */
function paintStrip(canvas, row, most, ramp, positive) {
  canvas.width = row.length;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  const image = context.createImageData(row.length, 1);
  row.forEach((value, c) => {
    const tone = positive
      ? Math.sqrt(Math.min(1, value / most))
      : 0.5 + 0.5 * Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value) / most));
    const at = 3 * Math.round(255 * tone);
    image.data.set([ramp[at], ramp[at + 1], ramp[at + 2], 255], 4 * c);
  });
  context.putImageData(image, 0, 0);
  canvas.style.height = `${STRIP_HEIGHT}px`;
}

/** A matrix of weights of one head. */
export function weightPicture(weights, inks, size) {
  const canvas = make("canvas", { class: "head-picture" });
  const context = fitCanvas(canvas, weights[0].length * size, weights.length * size);
  weights.forEach((row, i) => {
    row.forEach((weight, j) => {
      const at = 3 * Math.round(255 * Math.min(1, weight));
      context.fillStyle = `rgb(${inks.ramp[at]},${inks.ramp[at + 1]},${inks.ramp[at + 2]})`;
      context.fillRect(j * size, i * size, size - 1, size - 1);
    });
  });
  return canvas;
}
