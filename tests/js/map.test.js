import assert from "node:assert/strict";
import { test } from "node:test";
import { lookAddress, mapAddress } from "../../src/regard/views/map/assets/links.js";
import { perPixel } from "../../src/regard/views/map/assets/margins.js";
import { readAddress } from "../../src/regard/views/page/assets/address.js";
import { TokenSearch } from "../../src/regard/views/page/assets/token_search.js";

test("text is found however it was cut into tokens", () => {
  const search = new TokenSearch(["The", "␣cat", "␣s", "at", "␣on", "␣the", "␣C", "at"]);
  assert.deepEqual(search.find("cat"), [1, 6]);
  assert.deepEqual(search.find("the cat"), [0, 5]);
  assert.deepEqual(search.find("SAT on"), [2]);
  assert.deepEqual(search.matches("sat on"), [{ from: 2, to: 5 }]);
  assert.deepEqual(new TokenSearch(["un", "##believ", "##able"]).find("unbelievable"), [0]);
  assert.deepEqual(search.find("dog"), []);
  assert.deepEqual(search.find("  "), []);
  assert.deepEqual(search.find("#7"), [7]);
  assert.deepEqual(search.find("#8"), []);
  assert.equal(new TokenSearch(Array(50).fill("a")).find("a", 20).length, 20);
});

test("an address says what it says, and nonsense is dropped", () => {
  assert.deepEqual(readAddress("#view=matrix&call=3&query=none&heads=0 2&descending=true&zoom=1.5 2 3"), {
    view: "matrix",
    call: 3,
    query: null,
    heads: [0, 2],
    descending: true,
    zoom: [1.5, 2, 3],
  });
  assert.deepEqual(readAddress("#layer=2&kind=cross"), { layer: 2, kind: "cross" });
  assert.deepEqual(readAddress("#view=lines&heads=all"), { view: "lines", heads: null });
  assert.deepEqual(readAddress("#call=-1&head=x&heads="), { heads: [] });
  assert.deepEqual(readAddress(""), {});
});

test("from the map to the views and back", () => {
  const now = { call: 2, head: 5, query: 7, key: null };
  assert.equal(
    lookAddress({ id: "a b", whole: true }, now, "lines"),
    "/look/a%20b#view=lines&call=2&head=5&heads=5&query=7",
  );
  assert.equal(lookAddress({ id: "x", whole: false }, now), "/look/x?call=2#call=2&head=5&query=7");
  assert.equal(
    mapAddress("x", { search: "?call=4", hash: "#head=1&query=3&view=lines" }),
    "/map/x#call=4&head=1&query=3",
  );
});

test("a pixel shows the greatest of the numbers that share it", () => {
  const values = [1, 5, 2, 9, 3, 4];
  assert.deepEqual([...perPixel(values, 0, 0.5, 3)], [5, 9, 4]);
  assert.deepEqual([...perPixel(values, 1, 2, 4)], [5, 5, 2, 2]);
  assert.deepEqual([...perPixel(values, 5, 1, 3)], [4, 0, 0]);
});
