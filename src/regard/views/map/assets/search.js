// Finds text among tokens: they are joined without spaces, so that words are found however they were split.

const SPACES = /[\s␣⏎]+/g;

/** All places of a text, as numbers of tokens; "#12" is token 12. */
export class TokenSearch {
  constructor(tokens) {
    this.starts = [];
    let text = "";
    for (const token of tokens) {
      this.starts.push(text.length);
      text += plain(token);
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
    const number = /^#(\d{1,9})$/.exec(wanted.trim());
    if (number) return Number(number[1]) < this.starts.length ? [Number(number[1])] : [];
    const needle = plain(wanted);
    const found = [];
    if (!needle) return found;
    for (let at = this.text.indexOf(needle); at >= 0 && found.length < most; at = this.text.indexOf(needle, at + 1)) {
      const token = this.tokenAt(at);
      if (found.at(-1) !== token) found.push(token);
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
