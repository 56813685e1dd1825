// The steps on paper: the query, the keys that are shown, the output, and what the layer makes of it.

import { say } from "../languages.js";
import { weightText } from "../numbers.js";
import { drawVector, greatestSize } from "../vector.js";
import { formulaOf, quantityColumns, sinkShare, stepColumns } from "./steps_table.js";

const STEP_LINE = 26;
const STEP_WIDTH = 92;
const QUANTITY_WIDTH = 124;
const TOKEN_WIDTH = 240;
const OUTPUT = 110;
const TITLE = 34;
const LAYER_LINE = 70;

/** The size of the picture; `layer` has the steps behind the head. */
export function stepsPaper(steps, table, layer) {
  if (!steps) return { width: 900, height: 40 };
  const columns = STEP_WIDTH * (stepColumns(steps).length + 1) + QUANTITY_WIDTH * quantityColumns(steps).length;
  const width = Math.max(640, TOKEN_WIDTH + columns);
  const keys = 150 + STEP_LINE * (table.shown(steps).shown.length + 3);
  const behind = layer.reduce((sum, { lines = [] }) => sum + TITLE + LAYER_LINE * lines.length, 0);
  return { width, height: keys + (steps.output ? OUTPUT + behind : 0) };
}

export function drawSteps(surface, { steps, table, layer, query, call, inks }) {
  if (!steps) {
    surface.text(0, 20, say("steps.dense"), { fill: inks.ink, size: 12 });
    return;
  }
  const { width } = stepsPaper(steps, table, layer);
  const weight = { name: "weight", text: (key) => weightText(key.weight) };
  const columns = [...stepColumns(steps), weight, ...quantityColumns(steps)];
  const weightAt = stepColumns(steps).length;
  const bars = (vector, y, height = 56) =>
    drawVector(surface, vector, { x: 0, y, width, height, greatest: greatestSize([vector]), inks });
  const rightOf = (at) =>
    TOKEN_WIDTH + STEP_WIDTH * at + (QUANTITY_WIDTH - STEP_WIDTH) * Math.max(0, at - weightAt - 1);
  let y = 132;
  const line = (texts, style) => {
    texts.forEach((text, at) => {
      const wide = at > weightAt + 1 ? QUANTITY_WIDTH : STEP_WIDTH;
      const place = at ? { anchor: "end", limit: wide - 8 } : { limit: TOKEN_WIDTH - 50 };
      if (text) surface.text(at ? rightOf(at) - 12 : 36, y, text, { size: 12, ...place, ...style });
    });
    y += STEP_LINE;
  };
  surface.text(0, 10, `${query}  ${call.queryTokens[query]}`, { fill: inks.ink, size: 15, weight: 600 });
  bars(steps.q, 28);
  surface.text(0, 104, formulaOf(steps), { fill: inks.soft, size: 13 });
  line([say("steps.key"), ...columns.map(({ name }, at) => say(at > weightAt ? `what.${name}` : `steps.${name}`))], {
    fill: inks.soft,
    weight: 600,
  });
  for (const index of table.shown(steps).shown) {
    const key = steps.keys[index];
    surface.rect(
      TOKEN_WIDTH + STEP_WIDTH * weightAt,
      y - 10,
      (STEP_WIDTH - 8) * Math.min(1, key.weight),
      20,
      inks.accent,
      { opacity: 0.16 },
    );
    surface.text(0, y, String(index), { fill: inks.faint, size: 11 });
    line([call.keyTokens[index], ...columns.map((column) => column.text(key))], {
      fill: key.allowed ? inks.ink : inks.faint,
    });
  }
  const foot = (name, weight) =>
    line([say(`steps.${name}`), ...stepColumns(steps).map(() => ""), weightText(weight)], {
      fill: inks.ink,
      weight: 600,
    });
  surface.line(0, y - STEP_LINE / 2, width, y - STEP_LINE / 2, inks.hair);
  if (steps.sink !== null) foot("sink", sinkShare(steps));
  foot(
    "total",
    steps.keys.reduce((sum, key) => sum + key.weight, sinkShare(steps)),
  );
  if (!steps.output) return;
  surface.text(0, y + 8, say("steps.output"), { fill: inks.soft, size: 13 });
  bars(steps.output, y + 22);
  y += OUTPUT;
  for (const { title, formula, lines = [], note } of layer) {
    surface.text(0, y, note ?? `${title}   ${formula}`, { fill: inks.soft, size: 13, limit: width });
    y += lines[0]?.name ? TITLE : TITLE / 2;
    for (const { name, vector } of lines) {
      if (name) surface.text(0, y - 8, name, { fill: inks.faint, size: 11, limit: width });
      bars(vector, y, 48);
      y += LAYER_LINE;
    }
  }
}
