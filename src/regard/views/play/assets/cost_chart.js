// Operations against length, both axes in powers: the whole matrix, the pairs that a mask allows, those that regard
// computes.

import { say } from "../../page/assets/languages.js";
import { drawn } from "./drawing.js";

const CHART = { width: 640, height: 300, left: 66, right: 150, top: 16, bottom: 40 };

/** A picture of a line for each way of computing. */
export function costChart(costs) {
  const { width, height, left, right, top, bottom } = CHART;
  const lengths = costs.map((one) => one.length);
  const ways = ["dense", "allowed", "regard"].filter((way) => costs[0][way]);
  const powers = costs.flatMap((one) => ways.map((way) => Math.log10(one[way].operations)));
  const [low, high] = [Math.floor(Math.min(...powers)), Math.ceil(Math.max(...powers))];
  const across = (length) =>
    left + ((width - left - right) * Math.log2(length / lengths[0])) / Math.log2(lengths.at(-1) / lengths[0]);
  const down = (operations) => top + ((height - top - bottom) * (high - Math.log10(operations))) / (high - low);
  const marks = [];
  for (let power = low; power <= high; power++) {
    const y = down(10 ** power);
    marks.push(drawn("line", { class: "grid", x1: left, x2: width - right, y1: y, y2: y }));
    marks.push(
      drawn(
        "text",
        { class: "mark", x: left - 10, y: y + 5, "text-anchor": "end" },
        "10",
        drawn("tspan", { dy: -6, "font-size": 11 }, String(power)),
      ),
    );
  }
  for (const length of lengths) {
    marks.push(
      drawn("text", { class: "mark", x: across(length), y: height - 14, "text-anchor": "middle" }, `${length / 1024}k`),
    );
  }
  const last = costs.at(-1);
  const ends = labelHeights(ways.map((way) => down(last[way].operations)));
  const lines = ways.flatMap((way, at) => [
    drawn("polyline", {
      class: `line ${way}`,
      points: costs.map((one) => `${across(one.length)},${down(one[way].operations)}`).join(" "),
    }),
    ...costs.map((one) =>
      drawn("circle", { class: `dot ${way}`, r: 4, cx: across(one.length), cy: down(one[way].operations) }),
    ),
    drawn("text", { class: `name ${way}`, x: width - right + 12, y: ends[at] + 5 }, say(`masks.way.${way}`)),
  ]);
  return drawn(
    "svg",
    { class: "cost-chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": say("masks.chart") },
    ...marks,
    ...lines,
  );
}

/** Heights of labels: where their lines end, but moved down where they would lie on each other. */
function labelHeights(ends) {
  const order = ends.map((_, at) => at).sort((one, other) => ends[one] - ends[other]);
  const heights = [...ends];
  order.slice(1).forEach((at, place) => {
    heights[at] = Math.max(heights[at], heights[order[place]] + 24);
  });
  return heights;
}
