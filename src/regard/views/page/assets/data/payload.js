// The recording inside a page: a header in JSON and arrays as text.

import { Arrays } from "./arrays.js";
import { Call } from "./call.js";
import { NextTokens } from "./next_tokens.js";
import { openSpeech } from "./speech.js";

const PAGE_FORMAT = "regard page 2";

export async function openRecording(root) {
  const header = JSON.parse(root.querySelector('script[data-regard="header"]').textContent);
  if (header.format !== PAGE_FORMAT) throw new Error(`This page holds ${header.format}, not ${PAGE_FORMAT}.`);
  const elements = root.querySelectorAll('script[data-regard="array"]');
  const arrays = new Arrays(header, elements);
  await arrays.open();
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
  // The heads that the role cards show, and whether their roles are more than chance.
  const cards = header.cards ?? { clear: true, heads: [] };
  // What can be shown of a pair, whether contributions have a direction and so a sign, and rows of relevance.
  const { what = ["weight"], directed = false } = header;
  const relevance = (header.relevance ?? []).map(({ run, row, own, source }) => ({
    run,
    row,
    own: arrays.at(own),
    source: source === null ? null : arrays.at(source),
  }));
  const next = header.next ? new NextTokens(header.next, arrays) : null;
  const speech = header.speech ? openSpeech(header.speech, arrays) : null;
  const shown = { what, directed, relevance, picture: header.picture ?? null, speech };
  return { model, title, language, start, sentenceB, statistics, calls, cards, next, ...shown };
}
