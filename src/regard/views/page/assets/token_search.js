// Finds text among tokens: they are joined without spaces, so that words are found however they were split.

const SPACES = /[\s␣⏎]+/g;

/** All places of a text, as numbers of tokens; "#12" is token 12. */
export class TokenSearch {
  constructor(tokens) {
    this.starts = [];
    let text = "";
    for (const token of tokens) {
      this.starts.push(text.length);
      text += plain(token.replace(/^##/, ""));
    }
    this.text = text;
  }

  /**
   * The tokens at which a text begins.
   * @param {string} wanted
   * @param {number} most
   * @returns {number[]}
   */
  find(wanted, most = 2000) {
    return this.matches(wanted, most).map(({ from }) => from);
  }

  /**
   * The tokens that hold a text: from the first to the last, exclusive.
   * @param {string} wanted
   * @param {number} most
   * @returns {{ from: number, to: number }[]}
   */
  matches(wanted, most = 2000) {
    const number = /^#(\d{1,9})$/.exec(wanted.trim());
    if (number) {
      const from = Number(number[1]);
      return from < this.starts.length ? [{ from, to: from + 1 }] : [];
    }
    const needle = plain(wanted);
    const found = [];
    if (!needle) return found;
    for (let at = this.text.indexOf(needle); at >= 0 && found.length < most; at = this.text.indexOf(needle, at + 1)) {
      const from = this.tokenAt(at);
      if (found.at(-1)?.from !== from) found.push({ from, to: this.tokenAt(at + needle.length - 1) + 1 });
    }
    return found;
  }

  /** The last token that begins at or before a character. */
  tokenAt(place) {
    let [low, high] = [0, this.starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function plain(text) {
  return text.toLocaleLowerCase().replace(SPACES, "");
}
