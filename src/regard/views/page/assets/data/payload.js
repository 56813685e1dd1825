// The recording inside a page: a header in JSON and arrays as text.

import { Arrays } from "./arrays.js";
import { Call } from "./call.js";
import { Layers } from "./layers.js";
import { NextTokens } from "./next_tokens.js";
import { RowTable } from "./rows.js";
import { openSpeech } from "./speech.js";

const PAGE_FORMAT = "regard page 2";

export async function openRecording(root) {
  const { header, arrays } = await openData(root);
  const recording = readRecording(header, arrays);
  if (!header.other) return recording;
  const other = readRecording(header.other, arrays);
  compareRecordings(recording, other, header, arrays);
  return recording;
}

/** One call out of another page of the same recording: its description, and the arrays that it names. */
export async function openCall(root, index) {
  const { header, arrays } = await openData(root);
  return { described: header.calls[index], arrays };
}

async function openData(root) {
  const header = JSON.parse(root.querySelector('script[data-regard="header"]').textContent);
  if (header.format !== PAGE_FORMAT) throw new Error(`This page holds ${header.format}, not ${PAGE_FORMAT}.`);
  const arrays = new Arrays(header, root.querySelectorAll('script[data-regard="array"]'));
  await arrays.open();
  return { header, arrays };
}

/** One recording, from its header. */
function readRecording(header, arrays) {
  const texts = header.texts.map(({ tokens, special, words, spaces }) => {
    const flags = new Array(tokens.length).fill(false);
    for (const at of special) flags[at] = true;
    return { tokens, special: flags, words, spaces: Array.from(spaces ?? tokens, (one) => one !== "0") };
  });
  const masks = header.masks.map(({ first, bounds }) => ({ first: arrays.at(first), bounds: arrays.at(bounds) }));
  // sentenceB: where the second of two sentences begins, or null.
  const { model, title, language, start, sentenceB, statistics } = header;
  const data = { arrays, texts, masks, statistics, sentenceB };
  const calls = header.calls.map((described, index) => new Call(index, described, data));
  // The heads that the role cards show, and how many of their roles, the first ones, are more than chance.
  const cards = header.cards ?? { clear: 0, heads: [] };
  // What can be shown of a pair, whether contributions have a direction and so a sign, and rows of relevance.
  const { what = ["weight"], directed = false } = header;
  const relevance = (header.relevance ?? []).map(({ run, row, own, source }) => ({
    run,
    row,
    own: arrays.at(own),
    source: source === null ? null : arrays.at(source),
  }));
  const next = header.next ? new NextTokens(header.next, arrays) : null;
  const rollout = (header.rollout ?? []).map(({ run, shares }) => ({ run, shares: new RowTable(shares, arrays) }));
  const speech = header.speech ? openSpeech(header.speech, arrays) : null;
  const shown = { what, directed, relevance, rollout, picture: header.picture ?? null, speech };
  const recording = { model, title, language, start, sentenceB, statistics, calls, cards, next, ...shown };
  return Object.assign(recording, { layers: new Layers(recording) });
}

/** Two recordings that are compared: calls know their twins, and by how much each head changed. */
function compareRecordings(recording, other, header, arrays) {
  const changed = header.changed ?? [];
  const pairs = header.pairs.map(([call, twin, same]) => ({ call, twin, same }));
  const differs = recording.what.includes("difference");
  for (const [one, described] of [
    [recording, header],
    [other, header.other],
  ]) {
    one.calls.forEach((call, at) => {
      const { change } = described.calls[at];
      call.change = change === undefined ? new Float32Array(call.heads.length).fill(Number.NaN) : arrays.at(change);
    });
    if (differs) one.statistics = ["change", ...one.statistics];
    one.side = described.side;
  }
  for (const { call, twin, same } of pairs) if (same) recording.calls[call].twin = other.calls[twin];
  if (differs)
    recording.calls.forEach((call, at) => {
      call.addDifference(header.calls[at].difference ?? null, arrays);
    });
  recording.changed = changed;
  other.changed = changed.map(([call, head]) => {
    const { twin } = pairs.find((pair) => pair.call === call);
    return [twin, other.calls[twin].heads.indexOf(recording.calls[call].heads[head])];
  });
  Object.assign(recording, { other, pairs });
}
