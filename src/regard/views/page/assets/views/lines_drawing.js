// The drawing of the lines, on the screen and on paper alike.

import { valueText } from "../numbers.js";

const MOST_LINES = 4000;
const FAINTEST = 0.02;
const STRIP_WIDTH = 9;
// Unlike cells, lines cover each other: a line below one in a hundred would only hide others.
const LINE_DECADES = 2;

/** Every line of the window: { head, row, column, weight }, the faintest first; only the strongest of very many. */
export function linesInSight({ look, shown, active, left: queries, right: keys, shading }) {
  const [top, bottom] = active.row >= 0 ? [active.row, active.row + 1] : queries.window;
  const [left, right] = active.column >= 0 ? [active.column, active.column + 1] : keys.window;
  const lines = [];
  for (const head of shown) {
    look.values(head, top, bottom, left, right).forEach((weight, at) => {
      if (!(shading.strength(weight, LINE_DECADES) >= FAINTEST)) return;
      lines.push({ head, row: top + Math.floor(at / (right - left)), column: left + (at % (right - left)), weight });
    });
  }
  lines.sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight));
  return lines.slice(-MOST_LINES);
}

/** The lines of a view, and strips beside the tokens that the active one looks at. */
export function drawLines(surface, view) {
  const { active, shown, left, right, geometry, shading } = view;
  const { width, height, from, to } = geometry;
  const lines = linesInSight(view);
  const focused = active.row >= 0 || active.column >= 0;
  // Many lines together must not turn into a grey wall: the more there are, the thinner each is.
  const calm = focused ? 1 : Math.min(1, Math.sqrt(220 / Math.max(lines.length, 1)) + 0.25);
  // Heads that agree run side by side, not on top of each other.
  const spread = Math.min(2.5, (left.row - 12) / shown.length);
  if (focused && shown.length && (active.row < 0 || active.column < 0)) drawStrips(surface, view);
  surface.clip(0, 0, width, height, () => {
    for (const line of lines) {
      const tone = toneOfLine(shading, line.weight);
      const aside = (shown.indexOf(line.head) - (shown.length - 1) / 2) * spread;
      surface.curve(
        from,
        left.middleOf(line.row) + aside,
        to,
        right.middleOf(line.column) + aside,
        inkOf(view, line.head, line.weight),
        {
          width: (0.6 + 3 * tone) * (focused ? 1.15 : calm),
          opacity: Math.min(1, (focused ? 0.15 : 0.04) + 0.9 * tone * calm),
        },
      );
    }
  });
}

/** How strong a line is. The greatest gradient of a head is far from the others, so their root is taken. */
function toneOfLine(shading, value) {
  const strength = shading.strength(value, LINE_DECADES);
  return shading.what === "weight" || shading.scale === "log" ? strength : Math.sqrt(strength);
}

/** The colour of a head; where numbers have a sign, that of the sign. */
function inkOf({ shading, app: { inks } }, head, value) {
  if (!shading.signed) return inks.head(head);
  return value < 0 ? inks.negative : inks.positive;
}

/** At the outer edge of the other side, a strip for every head, and the mean over the heads. */
function drawStrips(surface, view) {
  const { active, shown, look, left, right, geometry, app, shading } = view;
  const toKeys = active.row >= 0;
  const side = toKeys ? right : left;
  const [first, last] = side.window;
  const weights = shown.map((head) =>
    toKeys
      ? look.values(head, active.row, active.row + 1, first, last)
      : look.values(head, first, last, active.column, active.column + 1),
  );
  const strip = Math.min(STRIP_WIDTH, (0.4 * geometry.from) / shown.length);
  const [edge, step] = toKeys ? [geometry.width - shown.length * strip, -6] : [0, shown.length * strip + 6];
  for (let at = first; at < last; at += 1) {
    const mean = weights.reduce((sum, row) => sum + (row[at - first] || 0), 0) / shown.length;
    shown.forEach((head, index) => {
      const value = weights[index][at - first];
      const opacity = shading.what === "weight" ? shading.strength(value) : toneOfLine(shading, value);
      if (opacity > 0.004)
        surface.rect(
          edge + index * strip,
          side.middleOf(at) - side.row / 2 + 3,
          strip - 1,
          side.row - 6,
          inkOf(view, head, value),
          { opacity },
        );
    });
    if (look.what === "weight" ? mean >= 0.0005 : shading.strength(mean, LINE_DECADES) >= FAINTEST)
      surface.text(edge + step, side.middleOf(at), look.what === "weight" ? mean.toFixed(3) : valueText(mean), {
        fill: app.inks.soft,
        size: 11,
        anchor: toKeys ? "end" : "start",
      });
  }
}

/** The tokens of a column, for export; on the screen they are elements. */
export function drawTokens(surface, { left, shown, geometry, app }, column) {
  const { inks } = app;
  const [first, last] = column.window;
  const space = geometry.from - shown.length * STRIP_WIDTH - 64;
  for (let index = first; index < last; index += 1) {
    surface.text(column === left ? geometry.from - 16 : geometry.to + 16, column.middleOf(index), column.names[index], {
      fill: column.special[index] ? inks.soft : inks.ink,
      size: 14,
      limit: Math.max(60, space),
      anchor: column === left ? "end" : "start",
      weight: index === column.pinned ? 600 : 400,
    });
  }
}
