import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { Arrays } from "../../src/regard/views/page/assets/data/arrays.js";
import { bytesOf } from "../../src/regard/views/page/assets/data/digits.js";
import { inflate } from "../../src/regard/views/page/assets/data/inflate.js";
import { RowTable } from "../../src/regard/views/page/assets/data/rows.js";

const DIGITS = Array.from({ length: 85 }, (_, at) => String.fromCharCode(40 + at)).join("");

/** Base 85, written independently: five digits for four bytes, little-endian, filled up with zeros. */
function textOf(bytes) {
  const padded = Buffer.concat([Buffer.from(bytes), Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
  let text = "";
  for (let at = 0; at < padded.length; at += 4) {
    let number = padded.readUInt32LE(at);
    let five = "";
    for (let place = 0; place < 5; place += 1) {
      five = DIGITS[number % 85] + five;
      number = Math.floor(number / 85);
    }
    text += five;
  }
  return text;
}

const BYTES = Uint8Array.from({ length: 1021 }, (_, at) => (at * 197 + (at >> 3)) % 256);

test("bytes come out of base 85 as they were put in", () => {
  assert.deepEqual(bytesOf(textOf(BYTES), DIGITS).subarray(0, BYTES.length), BYTES);
  assert.deepEqual(
    [...bytesOf(textOf([255, 255, 255, 255, 0, 0, 0, 128]), DIGITS)],
    [255, 255, 255, 255, 0, 0, 0, 128],
  );
  assert.equal(bytesOf("", DIGITS).length, 0);
});

test("bytes that zlib compressed are inflated", async () => {
  assert.deepEqual(await inflate(new Uint8Array(deflateSync(BYTES))), BYTES);
});

/** The planes of an array, one after the other; some of them compressed. */
async function arraysOf(type, planes, compressed) {
  const parts = planes.map((plane, at) => (compressed[at] ? deflateSync(plane) : Buffer.from(plane)));
  const described = { type, planes: parts.map((part, at) => [part.length, compressed[at]]) };
  const arrays = new Arrays({ arrays: [described], digits: DIGITS }, [{ textContent: textOf(Buffer.concat(parts)) }]);
  await arrays.open();
  return arrays;
}

const planesOf = (typed, size) => {
  const bytes = new Uint8Array(typed.buffer);
  return Array.from({ length: size }, (_, plane) => bytes.filter((_, at) => at % size === plane));
};

test("planes of bytes become numbers again", async () => {
  for (const compressed of [
    [false, false],
    [true, false],
    [true, true],
  ]) {
    const numbers = Int16Array.from([0, 1, -1, 32767, -32768, 1234, -4321]);
    const arrays = await arraysOf("int16", planesOf(numbers, 2), compressed);
    assert.deepEqual(arrays.at(0), numbers);
    assert.equal(arrays.at(0), arrays.at(0));
  }
  const floats = Float32Array.from([0, 1.5, -Infinity, 3e-30]);
  assert.deepEqual((await arraysOf("float32", planesOf(floats, 4), [true, false, true, false])).at(0), floats);
});

test("numbers of three bytes keep their sign", async () => {
  const numbers = Int32Array.from([0, 1, -1, 8388607, -8388608, 70000]);
  const planes = planesOf(numbers, 4).slice(0, 3);
  assert.deepEqual((await arraysOf("int24", planes, [false, true, false])).at(0), numbers);
});

test("rows are codes times the scale of the row", () => {
  const stored = [Int8Array.from({ length: 30 }, (_, at) => at - 15), Float32Array.from([1, 0.5, 2, 0.25, 4, 8])];
  const table = new RowTable({ codes: 0, scales: 1, shape: [2, 3, 5] }, { at: (place) => stored[place] });
  assert.deepEqual(
    [...table.block(1, 1, 3, 2, 4)],
    [7 * 4, 8 * 4, 12 * 8, 13 * 8].map((value) => value - 0),
  );
  assert.deepEqual(
    [...table.plane(0).subarray(5, 10)],
    [-10, -9, -8, -7, -6].map((code) => code * 0.5),
  );
  assert.equal(table.plane(1), table.plane(1));
});

test("an axis of size 1 serves every position", () => {
  const table = new RowTable({ codes: 0, scales: null, shape: [1, 1, 3] }, { at: () => Float32Array.from([5, 6, 7]) });
  const look = table.lookup(4);
  assert.deepEqual([look(0, 1), look(9, 1), look(2, 2)], [6, 6, 7]);
});
