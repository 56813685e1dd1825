// Bytes from text: five digits for every four bytes; the page's header lists the digits.

/**
 * The bytes of a text, padded with up to three zeros.
 * @param {string} text
 * @param {string} digits
 */
export function bytesOf(text, digits) {
  const base = digits.length;
  const values = new Uint8Array(128);
  for (let i = 0; i < base; i++) values[digits.charCodeAt(i)] = i;
  const numbers = new Uint32Array(text.length / 5);
  for (let i = 0, at = 0; i < numbers.length; i++, at += 5) {
    const four =
      ((values[text.charCodeAt(at)] * base + values[text.charCodeAt(at + 1)]) * base +
        values[text.charCodeAt(at + 2)]) *
        base +
      values[text.charCodeAt(at + 3)];
    // The product may wrap to a negative integer; the unsigned array undoes that.
    numbers[i] = Math.imul(four, base) + values[text.charCodeAt(at + 4)];
  }
  return new Uint8Array(numbers.buffer);
}
