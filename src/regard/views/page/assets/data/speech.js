// The speech of a recording: samples, words with their times, and for every window what the model heard.

/**
 * @param {any} described the header's part
 * @param {any} arrays
 */
export function openSpeech({ rate, samples, words, windows, heads, found }, arrays) {
  return {
    rate,
    samples: arrays.at(samples), // 16 bits each
    heads, // [layer, head] pairs that the times were read from
    found, // whether they were found rather than named by the model
    words: words.map(([word, start, end, probability, window, first, last]) => ({
      word,
      start,
      end,
      probability,
      window,
      first, // its rows in the calls of the window
      last,
    })),
    windows: windows.map(({ start, step, frames, bands, heard, begins }) => ({
      start, // seconds
      step, // seconds of a frame
      frames,
      bands,
      heard: arrays.at(heard), // (band, frame), 0 … 255, low tones first
      begins, // the first frame of each row, then the end
    })),
  };
}
