// The drawing of the lines, on the screen and on paper alike.

import { headDash } from "../colours.js";
import { say } from "../languages.js";
import { shareText, valueText } from "../numbers.js";
import { textWidth } from "../surface.js";

const MOST_LINES = 4000;
const FAINTEST = 0.02;
const STRIP_WIDTH = 9;
// Unlike cells, lines cover each other: a line below one in a hundred would only hide others.
const LINE_DECADES = 2;
const SMALL_STAGE = 560;
const NUMBER_WIDTH = 44; // of a weight beside a token
const LEGEND_SPACE = 22; // above the legend of an export
const LEGEND_LINE = 18;
const LEGEND_SAMPLE = 22;

/** Every line of the window: { head, row, column, weight }, the faintest first; only the strongest of very many. */
export function linesInSight(view) {
  const { look, shown, active, left: queries, right: keys, app, shading } = view;
  const { least } = app.state.now;
  // All lines of one token are shown, besides those to sinks; of many tokens, only the strongest.
  const best = least === "best" && !isFocused(active);
  const quiet = least === "best" && active.column < 0;
  // A share of the weights, or of the greatest number of another quantity.
  const threshold = least === "best" ? 0 : Number(least) * (look.what === "weight" ? 1 : shading.greatest);
  const [top, bottom] = active.row >= 0 ? [active.row, active.row + 1] : queries.window;
  const [left, right] = active.column >= 0 ? [active.column, active.column + 1] : keys.window;
  const lines = [];
  for (const head of shown) {
    const resting = quiet ? view.restingColumns(head) : null;
    look.values(head, top, bottom, left, right).forEach((weight, at) => {
      if (!(shading.strength(weight, LINE_DECADES) >= FAINTEST) || Math.abs(weight) < threshold) return;
      const [row, column] = [top + Math.floor(at / (right - left)), left + (at % (right - left))];
      if (resting?.has(column)) return;
      if (!best || view.bestOf(head, row) === column) lines.push({ head, row, column, weight });
    });
  }
  lines.sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight));
  return lines.slice(-MOST_LINES);
}

/** Whether a token is pointed at or pinned. */
function isFocused({ row, column }) {
  return row >= 0 || column >= 0;
}

/** The lines of a view, and strips beside the tokens that the active one looks at. */
export function drawLines(surface, view) {
  const { active, shown, left, right, geometry, shading } = view;
  const { width, height, from, to } = geometry;
  const lines = linesInSight(view);
  const focused = isFocused(active);
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
          dash: headDash(line.head),
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
  const strip = stripWidth(geometry, shown);
  const [edge, step] = toKeys ? [geometry.width - shown.length * strip, -6] : [0, shown.length * strip + 6];
  for (let at = first; at < last; at += 1) {
    const mean = weights.reduce((sum, row) => sum + (row[at - first] || 0), 0) / shown.length;
    shown.forEach((head, index) => {
      const value = weights[index][at - first];
      const opacity = shading.what === "weight" ? shading.strength(value) : toneOfLine(shading, value);
      if (strip > 0 && opacity > 0.004)
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

function stripWidth(geometry, shown) {
  // A small screen has no room for many strips: there the numbers alone stand beside the tokens.
  if (geometry.width < SMALL_STAGE && shown.length > 3) return 0;
  return Math.min(STRIP_WIDTH, (0.4 * geometry.from) / Math.max(1, shown.length));
}

/** The room that strips and numbers take beside the tokens. */
export function besideTokens({ geometry, shown }) {
  return Math.ceil(shown.length * stripWidth(geometry, shown)) + NUMBER_WIDTH;
}

/** Where each head is in the legend of an export, in rows. */
function legendPlaces({ shown, geometry, look }) {
  const places = [];
  let [x, y] = [0, 0];
  for (const head of shown) {
    const text = say("head.n", { head: look.call.heads[head] });
    const width = LEGEND_SAMPLE + textWidth(text, 11) + 24;
    if (x > 0 && x + width > geometry.width) [x, y] = [0, y + LEGEND_LINE];
    places.push({ head, text, x, y });
    x += width;
  }
  return places;
}

/** How high the legend of an export is. */
export function linesLegendHeight(view) {
  return LEGEND_SPACE + (legendPlaces(view).at(-1)?.y ?? 0) + 2 * LEGEND_LINE;
}

/** For an export: which colour and dash is which head, which lines are drawn, and how thick they are. */
export function drawLinesLegend(surface, view) {
  const { app, geometry, shading, look } = view;
  const { inks, state } = app;
  const top = geometry.height + LEGEND_SPACE;
  for (const { head, text, x, y } of legendPlaces(view)) {
    // Lines in the colour of their sign are told apart by their dashes alone.
    const ink = shading.signed ? inks.soft : inks.head(head);
    surface.line(x, top + y, x + LEGEND_SAMPLE, top + y, ink, { width: 2.5, dash: headDash(head) });
    surface.text(x + LEGEND_SAMPLE + 6, top + y, text, { fill: inks.soft, size: 11 });
  }
  const below = top + linesLegendHeight(view) - LEGEND_SPACE - LEGEND_LINE;
  const { least } = state.now;
  // One token has all its lines, but for sinks.
  const every = view.active.column < 0 ? "lines.best.token" : "lines.all";
  const which = least === "best" && isFocused(view.active) ? say(every) : whichLines(least, look.what);
  surface.text(0, below, which, { fill: inks.soft, size: 11 });
  let x = textWidth(which, 11) + 28;
  for (const share of shading.signed ? [-1, -0.1, 0.1, 1] : [0.1, 0.5, 1]) {
    const value = share * shading.greatest;
    const tone = toneOfLine(shading, value);
    const ink = shading.signed ? inkOf(view, 0, value) : inks.soft;
    const text = look.what === "weight" ? String(share) : valueText(value);
    surface.line(x, below, x + LEGEND_SAMPLE, below, ink, { width: 0.6 + 3 * tone, opacity: 0.15 + 0.85 * tone });
    surface.text(x + LEGEND_SAMPLE + 6, below, text, { fill: inks.soft, size: 11 });
    x += LEGEND_SAMPLE + textWidth(text, 11) + 26;
  }
}

/** Which lines are drawn, in words: a share is of all weight of a query, or of the greatest number. */
export function whichLines(least, what) {
  if (least === "best") return say("lines.best");
  return say(what === "weight" ? "lines.least" : "lines.least.what", { share: shareText(Number(least)) });
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
