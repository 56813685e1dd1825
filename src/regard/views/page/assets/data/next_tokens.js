// What a language model expected after each token of a text.

export class NextTokens {
  constructor({ words, ranks, best, probabilities, own, generated }, arrays) {
    this.words = words;
    this.ranks = ranks;
    this.best = arrays.at(best);
    this.probabilities = arrays.at(probabilities);
    this.own = arrays.at(own);
    this.generated = generated; // the first token that the model wrote itself, or null
    this.positions = this.best.length / ranks;
  }

  /**
   * The likeliest tokens after a position, the likeliest first.
   * @param {number} position
   * @returns {{ token: string, probability: number }[]}
   */
  after(position) {
    if (position < 0 || position >= this.positions) return [];
    return Array.from({ length: this.ranks }, (_, rank) => {
      const at = position * this.ranks + rank;
      return { token: this.words[this.best[at]], probability: this.probabilities[at] };
    });
  }

  /**
   * How likely the token at a position was after those before it; null for the first one.
   * @param {number} position
   */
  probability(position) {
    return position >= 1 && position < this.positions ? this.own[position - 1] : null;
  }

  /**
   * Whether a token's probability is worth a colour: of a generation only what the model wrote.
   * @param {number} position
   */
  counts(position) {
    return position >= Math.max(1, this.generated ?? 1) && position < this.positions;
  }
}

/** The least probability of each colour but the last, the most probable first. */
export const PROBABLE = [0.5, 0.2, 0.05, 0.01];

/**
 * The colour of a probability: 0 for a likely token, the last for a surprise.
 * @param {number} probability
 */
export function surprise(probability) {
  const found = PROBABLE.findIndex((least) => probability >= least);
  return found < 0 ? PROBABLE.length : found;
}
