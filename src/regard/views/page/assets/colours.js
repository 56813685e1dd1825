// Colour: ramps for weights, whose lightness changes evenly, so that they work for the colour-blind and in grey
// print; and one colour per head.

export const PALETTES = ["blue", "viridis", "cividis"];

// Anchors from faint to strong on light paper; on dark paper the first ones are replaced by PALETTE_NIGHT.
const PALETTE_DAY = {
  blue: ["#eef3fb", "#cfdff6", "#a5c4ee", "#74a3e2", "#477fd0", "#275db3", "#153f88", "#0a2557"],
  viridis: ["#f4f6c4", "#c8e020", "#75d054", "#35b779", "#21918c", "#31688e", "#443983", "#440154"],
  cividis: ["#fff3bf", "#fee838", "#d6bf57", "#a69d75", "#7c7b78", "#575d6d", "#233e6c", "#00224e"],
};
const PALETTE_NIGHT = {
  blue: ["#18212e", "#16315a", "#1a4689", "#2a61b8", "#4a83d8", "#7aa8ec", "#b0cdf8", "#e9f2ff"],
  viridis: ["#22182f", "#440154", "#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#fde725"],
  cividis: ["#141a28", "#00224e", "#233e6c", "#575d6d", "#7c7b78", "#a69d75", "#d6bf57", "#fee838"],
};

// Eight colours for each paper, found by search: at least 3:1 against it, and as far apart as they can be for those who
// see no red or no green. After eight heads they come back with other dashes.
const HEADS_DAY = ["#0060b4", "#9c9000", "#60000c", "#0c1884", "#249090", "#905424", "#8478f0", "#304854"];
const HEADS_NIGHT = ["#549cfc", "#ccfc90", "#487818", "#3c60c0", "#fc9c18", "#e4d8fc", "#0cd89c", "#a86084"];

// Signed numbers: orange below 0, blue above, which every colour blindness tells apart; lightness says how far from 0.
const SIGNED_DAY = ["#7a3000", "#b35806", "#e08214", "#fbc078", "#f1f0ee", "#a3c6ee", "#4f8fd6", "#1f5fb0", "#0a2f6b"];
const SIGNED_NIGHT = [
  "#ffe2c4",
  "#fdb863",
  "#d98324",
  "#7d4712",
  "#20242a",
  "#1d4477",
  "#3f7fca",
  "#86b6f4",
  "#d9e9ff",
];
const HEAD_DASHES = [null, [7, 3], [2, 3], [9, 3, 2, 3]];

/**
 * 256 colours from faint to strong: r, g, b.
 * @param {string} palette
 * @param {boolean} dark
 */
export function rampOf(palette, dark) {
  return rampThrough((dark ? PALETTE_NIGHT : PALETTE_DAY)[palette]);
}

/**
 * 256 colours from far below 0, through the paper, to far above.
 * @param {boolean} dark
 */
export function signedRamp(dark) {
  return rampThrough(dark ? SIGNED_NIGHT : SIGNED_DAY);
}

function rampThrough(colours) {
  const anchors = colours.map(channelsOf);
  const ramp = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i += 1) {
    const at = (i / 255) * (anchors.length - 1);
    const low = Math.min(Math.floor(at), anchors.length - 2);
    for (let c = 0; c < 3; c += 1) {
      ramp[i * 3 + c] = anchors[low][c] + (anchors[low + 1][c] - anchors[low][c]) * (at - low);
    }
  }
  return ramp;
}

/**
 * The place of a weight on the ramp, 0 … 1: itself, or some decades of its logarithm.
 * @param {number} weight
 * @param {string} scale "linear" or "log"
 * @param {number} decades
 */
export function toneOf(weight, scale, decades = 4) {
  if (!(weight > 0)) return 0;
  if (scale === "log") return Math.min(1, Math.max(0, 1 + Math.log10(weight) / decades));
  return Math.min(1, weight);
}

/** A colour of a ramp as text. */
export function shadeOf(ramp, tone) {
  const at = 3 * Math.round(255 * tone);
  return `rgb(${ramp[at]},${ramp[at + 1]},${ramp[at + 2]})`;
}

/** Black or white, whichever is read better on a colour of the ramp. */
export function readableOn(ramp, tone) {
  const at = 3 * Math.round(255 * tone);
  return readableOver([ramp[at], ramp[at + 1], ramp[at + 2]]);
}

/** Black or white, whichever is read better on a colour; at least 4.5:1 on every colour. */
export function readableOver(channels) {
  return contrastOf(channels, [0, 0, 0]) >= contrastOf(channels, [255, 255, 255]) ? "#000000" : "#ffffff";
}

/** How often the colours were used up before this head. */
export function headRound(head) {
  return Math.floor(head / HEADS_DAY.length);
}

/** The dashes of a head's lines, null for a solid one. */
export function headDash(head) {
  return HEAD_DASHES[headRound(head) % HEAD_DASHES.length];
}

/** The colour of a head: at least 3:1 against the paper. */
export function headColour(head, dark) {
  const colours = dark ? HEADS_NIGHT : HEADS_DAY;
  return `rgb(${channelsOf(colours[head % colours.length]).join(",")})`;
}

/**
 * The contrast of two colours, 1 … 21, as WCAG defines it.
 * @param {number[]} one
 * @param {number[]} other
 */
export function contrastOf(one, other) {
  const [low, high] = [lightnessOf(one), lightnessOf(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function lightnessOf(channels) {
  const [r, g, b] = channels.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The channels of a colour written as rgb(1,2,3). */
export function channelsIn(text) {
  return text.match(/\d+/g).map(Number);
}

function channelsOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}
