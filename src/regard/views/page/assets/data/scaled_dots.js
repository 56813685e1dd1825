// The products of a query with keys: the inner loop of every page.

/** scale · q_i · k_j for the keys from `first` to `last`: four keys at a time, for each number of q is read once. */
export function scaledDots(scores, q, i, k, first, last, channels, scale) {
  const start = i * channels;
  const end = start + channels;
  let j = first;
  for (; j + 4 <= last; j += 4) {
    let [one, two, three, four] = [0, 0, 0, 0];
    let a = j * channels;
    let b = a + channels;
    let c = b + channels;
    let d = c + channels;
    for (let at = start; at < end; at++) {
      const x = q[at];
      one += x * k[a++];
      two += x * k[b++];
      three += x * k[c++];
      four += x * k[d++];
    }
    scores[j] = scale * one;
    scores[j + 1] = scale * two;
    scores[j + 2] = scale * three;
    scores[j + 3] = scale * four;
  }
  for (; j < last; j++) {
    let sum = 0;
    for (let at = start, a = j * channels; at < end; at++, a++) sum += q[at] * k[a];
    scores[j] = scale * sum;
  }
}
