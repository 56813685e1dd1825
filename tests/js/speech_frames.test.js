import assert from "node:assert/strict";
import { test } from "node:test";

import { frameGroup, groupedFrames, timeMarks, timeText } from "../../src/regard/views/page/assets/speech_frames.js";

test("weights of frames are summed over groups, the last of which may be smaller", () => {
  const sums = groupedFrames([1, 2, 3, 4, 5, 10, 20, 30, 40, 50], 2, 5, 2);
  assert.deepEqual([...sums], [3, 7, 5, 30, 70, 50]);
});

test("one frame to a group changes nothing", () => {
  assert.deepEqual([...groupedFrames([1, 2, 3], 1, 3, 1)], [1, 2, 3]);
});

test("groups are large enough to be seen", () => {
  assert.equal(frameGroup(1500, 1000), 5);
  assert.equal(frameGroup(100, 1000), 1);
  assert.equal(frameGroup(100, 0), 300);
});

test("marks are round seconds inside the window", () => {
  assert.deepEqual(timeMarks(0, 3, 300), [0, 1, 2, 3]);
  assert.deepEqual(
    timeMarks(0, 0.5, 300).map((time) => time.toFixed(1)),
    ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"],
  );
  assert.deepEqual(timeMarks(28.4, 58.4, 600), [30, 35, 40, 45, 50, 55]);
  assert.deepEqual(timeMarks(0, 3600, 100).slice(0, 2), [0, 60]);
});

test("times are written as people write them", () => {
  assert.equal(timeText(0.356), "0.36");
  assert.equal(timeText(62.5), "1:02.50");
  assert.equal(timeText(125, 0), "2:05");
});
