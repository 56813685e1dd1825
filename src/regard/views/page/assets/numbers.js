// How numbers are written: always the same few forms, so that columns line up.

const MINUS = "−";

/**
 * A weight between 0 and 1: 0.1234, or 1.20e−5 where four places would lose it.
 * @param {number} weight
 */
export function weightText(weight) {
  if (!(weight > 0)) return "0";
  return weight < 0.001 ? exponential(weight, 2) : weight.toFixed(4);
}

/**
 * A weight inside a cell: ".12", "1.0", at most three characters.
 * @param {number} weight
 */
export function cellText(weight) {
  if (!(weight > 0)) return "";
  if (weight >= 0.995) return "1.0";
  return weight < 0.005 ? "" : weight.toFixed(2).slice(1);
}

/**
 * Any real number to a few places: −12.345, 1.23e+6.
 * @param {number} value
 * @param {number} places
 */
export function numberText(value, places = 3) {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return `${MINUS}∞`;
  if (Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 0.5 * 10 ** -places)) return exponential(value, 2);
  return value.toFixed(places).replace("-", MINUS);
}

/**
 * A number of any size to three digits: 0.0123, −1.20e−5.
 * @param {number} value
 */
export function valueText(value) {
  if (Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e5) return exponential(value, 2).replace("e+", "e");
  return (size < 999.5 ? value.toPrecision(3) : value.toFixed(0)).replace("-", MINUS);
}

/**
 * A quantity of a pair: weights as they always are, others to three digits.
 * @param {number} value
 * @param {string} what
 */
export function quantityText(value, what) {
  if (what === "weight") return weightText(value);
  return what === "difference" ? differenceText(value) : valueText(value);
}

/**
 * A difference, always with its sign: +0.0123.
 * @param {number} value
 */
export function differenceText(value) {
  return value > 0 ? `+${valueText(value)}` : valueText(value);
}

/**
 * A share in percent: 63%, 0.4%.
 * @param {number} share
 */
export function shareText(share) {
  const hundredths = share * 100;
  if (hundredths > 0 && hundredths < 0.05) return "<0.1%";
  return `${hundredths >= 9.95 || hundredths === 0 ? Math.round(hundredths) : hundredths.toFixed(1)}%`;
}

function exponential(value, places) {
  return value.toExponential(places).replace(/-/g, MINUS);
}
