// Bytes out of text: five digits for every four bytes, as the page's header names the digits.

/** The bytes of a text; at the end up to three zeros more than were put in. */
export function bytesOf(text, digits) {
  const base = digits.length;
  const values = new Uint8Array(128);
  for (let i = 0; i < base; i++) values[digits.charCodeAt(i)] = i;
  const numbers = new Uint32Array(text.length / 5);
  for (let i = 0, at = 0; i < numbers.length; i++, at += 5) {
    const four = ((values[text.charCodeAt(at)] * base + values[text.charCodeAt(at + 1)]) * base
      + values[text.charCodeAt(at + 2)]) * base + values[text.charCodeAt(at + 3)];
    // The product may need the sign of an integer; it wraps, and the array takes it back.
    numbers[i] = Math.imul(four, base) + values[text.charCodeAt(at + 4)];
  }
  return new Uint8Array(numbers.buffer);
}
