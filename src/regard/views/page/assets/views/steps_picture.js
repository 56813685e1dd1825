// The steps on paper: the query, the keys that are shown, the output.

import { say } from "../languages.js";
import { weightText } from "../numbers.js";
import { drawVector, greatestSize } from "../vector.js";
import { formulaOf, quantityColumns, sinkShare, stepColumns } from "./steps_table.js";

const STEP_LINE = 26;
const STEP_WIDTH = 92;
const TOKEN_WIDTH = 240;

/** The size of the picture. */
export function stepsPaper(steps, table) {
  if (!steps) return { width: 900, height: 40 };
  const width = Math.max(
    640,
    TOKEN_WIDTH + STEP_WIDTH * (stepColumns(steps).length + 1 + quantityColumns(steps).length),
  );
  return { width, height: 150 + STEP_LINE * (table.shown(steps).shown.length + 3) + (steps.output ? 110 : 0) };
}

export function drawSteps(surface, { steps, table, query, call, inks }) {
  if (!steps) {
    surface.text(0, 20, say("steps.dense"), { fill: inks.ink, size: 12 });
    return;
  }
  const { width } = stepsPaper(steps, table);
  const weight = { name: "weight", text: (key) => weightText(key.weight) };
  const columns = [...stepColumns(steps), weight, ...quantityColumns(steps)];
  const weightAt = stepColumns(steps).length;
  const bars = (vector, y) =>
    drawVector(surface, vector, { x: 0, y, width, height: 56, greatest: greatestSize([vector]), inks });
  let y = 132;
  const line = (texts, style) => {
    texts.forEach((text, at) => {
      const place = at ? { anchor: "end", limit: STEP_WIDTH - 8 } : { limit: TOKEN_WIDTH - 50 };
      if (text) surface.text(at ? TOKEN_WIDTH + STEP_WIDTH * at - 12 : 36, y, text, { size: 12, ...place, ...style });
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
}
