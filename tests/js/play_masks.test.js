import assert from "node:assert/strict";
import { test } from "node:test";
import { allowedPairs, extentOf, maskCost, maskRows } from "../../src/regard/views/play/assets/mask_counts.js";
import { parseMask } from "../../src/regard/views/play/assets/mask_language.js";
import { tableText } from "../../src/regard/views/play/assets/mask_tables.js";
import { closeMatch, formatted, stringRepr, tupleText } from "../../src/regard/views/play/assets/python_text.js";

const rows = (text, queries, keys = queries) =>
  maskRows(parseMask(text), extentOf(queries, keys)).map((row) => row.map(Number).join(""));

test("a mask is drawn row by row, the last query at the last key", () => {
  assert.deepEqual(rows("causal", 3), ["100", "110", "111"]);
  assert.deepEqual(rows("causal", 2, 4), ["1110", "1111"]);
  assert.deepEqual(rows("causal & (window(1, 0) | prefix(1))", 4), ["1000", "1100", "1110", "1011"]);
  assert.deepEqual(rows("documents([0, 0, 1]) | every(2).T", 3), ["111", "110", "111"]);
  assert.deepEqual(rows("neighbourhood([2, 2], 0)", 4), ["1000", "0100", "0010", "0001"]);
});

test("masks are written as they can be read again", () => {
  for (const text of ["causal() & (window(4, 0) | prefix(2))", "~documents([0*8, 1*8]) | every(4).T", "causal().T"]) {
    assert.equal(parseMask(text).text(), text);
  }
  assert.equal(parseMask("causal & causal & everything()").text(), "causal()");
  assert.equal(parseMask("local_global(2)").text(), "window(2, 2) | every(2) | every(2).T");
  assert.equal(tableText(parseMask("dense([[1, 0]*6])").table), "[[1, 0]*6]");
});

test("errors point at their place", () => {
  const place = (text) => {
    try {
      parseMask(text);
    } catch (error) {
      return [error.position, error.inWords("en")];
    }
    return null;
  };
  assert.deepEqual(place("causal & widow(3)"), [9, "No mask is called 'widow'. Did you mean window?"]);
  assert.deepEqual(place("(causal"), [7, "Expected ')' to close the bracket. Got the end of the text."]);
  assert.deepEqual(place("😀"), [0, "A mask must be written with names, numbers and & | ~ ( ) [ ]. Got '😀'."]);
  assert.deepEqual(place("window(1)"), [0, "window is written window(before, after)."]);
  assert.equal(place("causal"), null);
});

test("pairs are counted as they are drawn", () => {
  for (const text of ["causal", "local_global(3)", "~every(2) & window(2, 1)", "span(2, 5).T | prefix(1)"]) {
    const mask = parseMask(text);
    const drawn = maskRows(mask, extentOf(11)).flat().filter(Boolean).length;
    assert.equal(allowedPairs(mask, extentOf(11)), drawn, text);
  }
  assert.equal(allowedPairs(parseMask("causal"), extentOf(131072)), (131072 * 131073) / 2);
});

test("the cost of all pairs does not depend on the mask", () => {
  const [one, other] = ["causal", "window(4, 0)"].map((text) => maskCost(parseMask(text), 1024));
  assert.deepEqual(one.dense, other.dense);
  assert.ok(one.allowed.operations > other.allowed.operations);
  assert.equal(one.allowed.pairs, 8 * ((1024 * 1025) / 2));
});

test("text as Python writes it", () => {
  assert.deepEqual(["a'b", "\n", "\u0000", "猫", "\\"].map(stringRepr), [
    '"a\'b"',
    "'\\n'",
    "'\\x00'",
    "'猫'",
    "'\\\\'",
  ]);
  assert.deepEqual([[], [2], [2, 3]].map(tupleText), ["()", "(2,)", "(2, 3)"]);
  assert.equal(formatted("{n:,} of {{x}} in {who!r}", { n: 1234567, who: "it" }, "en"), "1,234,567 of {x} in 'it'");
  assert.equal(closeMatch("windo", ["window", "causal"]), "window");
  assert.equal(closeMatch("zzz", ["window", "causal"]), null);
});
