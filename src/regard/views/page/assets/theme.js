// Light and dark: the colours are CSS variables; drawings get their values here.

import { headColour, rampOf, signedRamp } from "./colours.js";

export const THEMES = ["auto", "light", "dark"];

const INK_NAMES = [
  "paper",
  "raised",
  "ink",
  "soft",
  "faint",
  "hair",
  "accent",
  "void",
  "hatch",
  "positive",
  "negative",
];

/** Whether a theme is dark now; "auto" asks the system. */
export function isDark(theme) {
  return theme === "auto" ? window.matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
}

/** Applies a theme to the page. */
export function wearTheme(theme) {
  document.documentElement.dataset.theme = isDark(theme) ? "dark" : "light";
}

/** All colours that a drawing needs, as plain values: inks.paper, inks.ink, …, inks.ramp, inks.signed, inks.head(3). */
export function inksOf(state) {
  const dark = isDark(state.theme);
  const style = getComputedStyle(document.documentElement);
  const inks = Object.fromEntries(INK_NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const ramps = { ramp: rampOf(state.palette, dark), signed: signedRamp(dark) };
  return { ...inks, dark, ...ramps, head: (head) => headColour(head, dark) };
}
