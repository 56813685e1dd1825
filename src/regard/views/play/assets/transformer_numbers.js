// A sentence on its way through the translator: what the file carries, and what the page computes from it: waves of
// positions, residual sums and layer norms.

import { sinusoids } from "./attention_steps.js";

function bytesIn(text) {
  const signs = atob(text);
  return Uint8Array.from(signs, (sign) => sign.charCodeAt(0));
}

/** An array as the file carries it: numbers with a shape. */
export function unpackedArray({ shape, data, least = 0, span = null }) {
  const { buffer } = bytesIn(data);
  if (span === null) return { shape, values: new Float32Array(buffer) };
  return { shape, values: Float32Array.from(new Uint16Array(buffer), (level) => least + (level / 65535) * span) };
}

/** The rows of a matrix. */
function rowsOf({ shape, values }) {
  const [rows, columns] = shape;
  return Array.from({ length: rows }, (_, i) => Array.from(values.subarray(i * columns, (i + 1) * columns)));
}

/** LayerNorm of one row: its mean, its standard deviation, and the row with mean 0 and deviation 1, times γ, plus β. */
export function layerNorm(row, gain, shift, epsilon = 1e-5) {
  const mean = row.reduce((one, other) => one + other, 0) / row.length;
  const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
  const deviation = Math.sqrt(variance + epsilon);
  return { mean, deviation, row: row.map((value, c) => ((value - mean) / deviation) * gain[c] + shift[c]) };
}

const summed = (one, other) => one.map((row, i) => row.map((value, c) => value + other[i][c]));

export class TransformerNumbers {
  constructor(start) {
    this.start = start;
    this.sizes = start.sizes;
    this.kinds = start.kinds;
    /** What every block takes and gives, by its name. */
    this.blocks = new Map();
    this.arrays = Object.fromEntries(Object.entries(start.arrays).map(([name, array]) => [name, unpackedArray(array)]));
    this.context = this.projected(this.run("encoder", "source", ["attention", "feed_forward"]));
    this.final = this.run("decoder", "target", ["attention", "cross", "feed_forward"]);
  }

  tokens(side) {
    return this.start[side];
  }

  rows(name) {
    return rowsOf(this.arrays[name]);
  }

  run(stack, side, sublayers) {
    const { positions: kind, norm, embedding_norm: embeddingNorm, eps } = this.kinds[stack];
    const embedded = this.rows(`${side}.embedding`);
    const positions =
      kind === "learned" ? this.rows(`${side}.positions`) : sinusoids(embedded.length, this.sizes[`${stack}_width`]);
    let x = summed(embedded, positions);
    this.blocks.set(`${side}.embedding`, { output: embedded });
    this.blocks.set(`${side}.positions`, { input: embedded, added: positions.slice(0, embedded.length), output: x });
    if (embeddingNorm) x = this.normed(`${side}.norm`, x, eps);
    for (let layer = 0; layer < this.sizes[`${stack}_layers`]; layer++) {
      for (const name of sublayers) {
        const place = `${stack}.${layer}.${name}`;
        const input = norm === "pre" ? this.normed(`${place}_norm`, x, eps) : x;
        const given = this.rows(place);
        this.blocks.set(place, { input, output: given, ...this.inside(stack, layer, name) });
        const sum = summed(x, given);
        this.blocks.set(`${place}_add`, { input: x, added: given, output: sum });
        x = norm === "pre" ? sum : this.normed(`${place}_norm`, sum, eps);
      }
    }
    return `${stack}.norm` in this.arrays ? this.normed(`${stack}.norm`, x, eps) : x;
  }

  /** The encoder's vectors in the width of the decoder. */
  projected(x) {
    if (!this.kinds.encoder.projected) return x;
    const output = this.rows("encoder.projection");
    this.blocks.set("encoder.projection", { input: x, output });
    return this.normed("encoder.projection_norm", output);
  }

  normed(name, x, epsilon = undefined) {
    const [gain, shift] = this.rows(name);
    const found = x.map((row) => layerNorm(row, gain, shift, epsilon));
    const output = found.map(({ row }) => row);
    this.blocks.set(name, {
      input: x,
      output,
      means: found.map(({ mean }) => mean),
      deviations: found.map(({ deviation }) => deviation),
    });
    return output;
  }

  /** What is inside of a block: the weights of every head, or the hidden channels. */
  inside(stack, layer, name) {
    if (name === "feed_forward") return { hidden: this.rows(`${stack}.${layer}.hidden`) };
    const { shape, values } = this.arrays[`${stack}.${layer}.${name}_weights`];
    const [heads, queries, keys] = shape;
    const one = (head) =>
      rowsOf({ shape: [queries, keys], values: values.subarray(head * queries * keys, (head + 1) * queries * keys) });
    return { weights: Array.from({ length: heads }, (_, head) => one(head)) };
  }
}
