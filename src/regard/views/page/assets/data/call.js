// One attention call, and the one formula: the weight of key j for query i is exp(s − lse), with
// s = cap(scale · q_i · k_j) + bias_ij. Everything that a view shows is computed here, on demand.

import { RowTable } from "./rows.js";
import { scaledDots } from "./scaled_dots.js";

export class Call {
  constructor(index, described, data) {
    const { arrays, texts, masks, statistics, sentenceB } = data;
    this.index = index;
    this.name = described.name;
    this.layer = described.layer;
    this.kind = described.kind;
    this.run = described.run;
    this.heads = described.heads;
    this.queries = described.queries;
    this.keys = described.keys;
    this.offset = this.keys - this.queries;
    this.sentenceB = sentenceB;
    const query = texts[described.queryText];
    const key = texts[described.keyText];
    this.queryTokens = query.tokens;
    this.querySpecial = query.special;
    this.queryWords = query.words;
    this.keyTokens = key.tokens;
    this.keySpecial = key.special;
    this.keyWords = key.words;
    this.querySpaces = query.spaces;
    this.keySpaces = key.spaces;
    this.statisticNames = statistics;
    this.masks = (described.masks || [null]).map((place) => (place === null ? null : masks[place]));
    /** How far each head differs from the same head of another recording, and the call that it is compared with. */
    this.change = null;
    this.twin = null;
    /** For each head what it does, or null. */
    this.roles = this.heads.map(() => null);
    this.statisticValues = new Float32Array(statistics.length * this.heads.length).fill(Number.NaN);
    /** Null while they are not known. */
    this.thumbnails = null;
    this.summarise(described, arrays);
    this.carry(described, arrays);
  }

  /** Takes what the page has of each head besides its numbers: what it does, statistics, and a thumbnail. */
  summarise({ roles, statistics, thumbnails }, arrays) {
    if (roles) this.roles = roles.map(roleFrom);
    if (statistics !== undefined) this.statisticValues = arrays.at(statistics);
    if (thumbnails) this.thumbnails = { ...thumbnails, values: arrays.at(thumbnails.values) };
  }

  /** The numbers that weights are computed from; a page of a long text has those of one call at a time. */
  carry(described, arrays) {
    const rows = (where) => (where ? new RowTable(where, arrays) : null);
    const found = (place) => (place === undefined || place === null ? null : arrays.at(place));
    /** Whether the page has the numbers of this call. */
    this.present = Boolean(described.q || described.weights);
    this.error = described.error;
    this.compared = described.compared;
    this.dense = Boolean(described.weights);
    this.channels = described.channels || 0;
    this.q = rows(described.q);
    this.k = rows(described.k);
    this.v = rows(described.v);
    this.own = rows(described.weights);
    this.outputGradient = rows(described.outputGradient);
    /** W_O of each head, (head, channel, width); null where the page has none. */
    this.projection = rows(described.projection);
    this.projectionBias = found(described.projectionBias);
    /** What the layer adds its output to, (1, query, width); null where the page has none. */
    this.residual = rows(described.residual);
    /** Whether it was recorded, even if the page leaves it out. */
    this.residualFound = Boolean(described.residualFound);
    /** What each key has to give to the output, head by head. */
    this.given = found(described.given);
    /** Of every quantity besides the weight: its error, the greatest of each head, and its thumbnails. */
    this.quantities = Object.fromEntries(
      Object.entries(described.quantities ?? {}).map(([name, { error, greatest, thumbnails: pictures }]) => [
        name,
        { error, greatest: arrays.at(greatest), thumbnails: arrays.at(pictures), size: described.thumbnails },
      ]),
    );
    this.valueChannels = this.v ? this.v.columns : 0;
    this.lse = found(described.lse);
    this.scale = described.scale;
    this.softcap = described.softcap ?? null;
    this.sinks = described.sinks ?? null;
    this.line = found(described.bias?.line);
    this.table = described.bias ? rows(described.bias.table) : null;
    this.group = this.k ? this.heads.length / this.k.planes : 1;
  }

  /** The texts of a quantity: a difference belongs to both recordings, and so do its tokens where they differ. */
  tokensOf(what) {
    const { kind, queryTokens: query, keyTokens: key, twin } = this;
    if (what !== "difference" || !twin) return { kind, query, key };
    return { kind, query: bothTokens(query, twin.queryTokens), key: bothTokens(key, twin.keyTokens) };
  }

  /** One number per head. */
  statistic(name) {
    if (name === "change") return this.change;
    const place = this.statisticNames.indexOf(name);
    const count = this.heads.length;
    return this.statisticValues.subarray(place * count, (place + 1) * count);
  }

  /** The greatest weight of each block, 255 for weight 1; of other quantities what is furthest from 0, −128 if masked. */
  thumbnail(head, what = "weight") {
    const { rows, columns } = what === "weight" ? this.thumbnails : this.quantities[what].size;
    const values = what === "weight" ? this.thumbnails.values : this.quantities[what].thumbnails;
    return { rows, columns, values: values.subarray(head * rows * columns, (head + 1) * rows * columns) };
  }

  /** The greatest size of a quantity in a head. */
  greatest(what, head) {
    return what === "weight" ? 1 : this.quantities[what].greatest[head];
  }

  /** How far a quantity may be from the exact one. */
  errorOf(what) {
    return what === "weight" ? this.error : this.quantities[what].error;
  }

  /** Makes the difference from the twin a quantity; a call without a twin has nothing to show of it. */
  addDifference(described, arrays) {
    const { rows, columns } = this.thumbnails;
    const count = this.heads.length;
    const size = { rows, columns };
    this.quantities.difference = described
      ? {
          error: described.error,
          greatest: arrays.at(described.greatest),
          thumbnails: arrays.at(described.thumbnails),
          size,
        }
      : {
          error: 0,
          greatest: new Float32Array(count),
          thumbnails: new Int8Array(count * rows * columns).fill(-128),
          size,
        };
  }

  /** The place of the head of the twin that a head is compared with, or −1. */
  twinHead(head) {
    return this.twin ? this.twin.heads.indexOf(this.heads[head]) : -1;
  }

  /**
   * The weight in the twin minus the weight here; NaN where neither may see the key.
   * @param {number} head
   * @param {number} rowFrom
   * @param {number} rowTo exclusive
   * @param {number} columnFrom
   * @param {number} columnTo exclusive
   */
  differences(head, rowFrom, rowTo, columnFrom, columnTo) {
    const width = columnTo - columnFrom;
    const out = new Float32Array((rowTo - rowFrom) * width).fill(Number.NaN);
    const other = this.twinHead(head);
    if (other < 0) return out;
    const own = this.weights(head, rowFrom, rowTo, columnFrom, columnTo);
    const theirs = this.twin.weights(other, rowFrom, rowTo, columnFrom, columnTo);
    for (let query = rowFrom; query < rowTo; query += 1) {
      const at = (query - rowFrom) * width - columnFrom;
      for (const [from, to] of this.visible("difference", head, query)) {
        const last = Math.min(to, columnTo);
        for (let key = Math.max(from, columnFrom); key < last; key += 1)
          out[at + key] = theirs[at + key] - own[at + key];
      }
    }
    return out;
  }

  /** The keys for which a quantity is defined: those that a query may see, for differences in either call. */
  visible(what, head, query) {
    const own = this.allowed(head, query);
    const other = what === "difference" ? this.twinHead(head) : -1;
    return other < 0 ? own : [...own, ...this.twin.allowed(other, query)];
  }

  /** Whether a quantity is defined for a query and a key. */
  sees(what, head, query, key) {
    return this.visible(what, head, query).some(([from, to]) => key >= from && key < to);
  }

  /**
   * The keys that a query may see, as intervals whose ends are exclusive.
   * @param {number} head
   * @param {number} query
   * @returns {[from: number, to: number][]}
   */
  allowed(head, query) {
    const mask = this.masks.length > 1 ? this.masks[head] : this.masks[0];
    if (!mask) return this.keys ? [[0, this.keys]] : [];
    /** @type {[number, number][]} */
    const found = [];
    for (let at = mask.first[query]; at < mask.first[query + 1]; at++) {
      found.push([mask.bounds[2 * at], mask.bounds[2 * at + 1]]);
    }
    return found;
  }

  /**
   * The weights of some rows and columns, row by row; masked pairs are exactly 0.
   * @param {number} head
   * @param {number} rowFrom
   * @param {number} rowTo exclusive
   * @param {number} columnFrom
   * @param {number} columnTo exclusive
   * @returns {Float32Array}
   */
  weights(head, rowFrom, rowTo, columnFrom, columnTo) {
    if (this.dense) return this.own.block(head, rowFrom, rowTo, columnFrom, columnTo);
    const width = columnTo - columnFrom;
    const out = new Float32Array((rowTo - rowFrom) * width);
    const q = this.q.plane(head);
    const k = this.k.plane(Math.floor(head / this.group));
    const bend = this.bender(head);
    const scores = new Float64Array(this.keys);
    for (let i = rowFrom; i < rowTo; i++) {
      const lse = this.lse[head * this.queries + i];
      if (lse === -Infinity) continue;
      const at = (i - rowFrom) * width - columnFrom;
      for (const [from, to] of this.allowed(head, i)) {
        const first = Math.max(from, columnFrom);
        const last = Math.min(to, columnTo);
        scaledDots(scores, q, i, k, first, last, this.channels, this.scale);
        if (bend) for (let j = first; j < last; j++) scores[j] = bend(scores[j], i, j);
        for (let j = first; j < last; j++) out[at + j] = Math.exp(scores[j] - lse);
      }
    }
    return out;
  }

  /**
   * The gradient of the weights, ∂L/∂w = dO_i · v_j, of some rows and columns; it is defined at masked pairs too.
   * @param {number} head
   * @param {number} rowFrom
   * @param {number} rowTo exclusive
   * @param {number} columnFrom
   * @param {number} columnTo exclusive
   * @returns {Float32Array}
   */
  gradients(head, rowFrom, rowTo, columnFrom, columnTo) {
    const width = columnTo - columnFrom;
    const out = new Float32Array((rowTo - rowFrom) * width);
    const given = this.outputGradient.plane(head);
    const v = this.v.plane(Math.floor(head / this.group));
    const found = new Float64Array(this.keys);
    for (let i = rowFrom; i < rowTo; i++) {
      scaledDots(found, given, i, v, columnFrom, columnTo, this.valueChannels, 1);
      out.set(found.subarray(columnFrom, columnTo), (i - rowFrom) * width);
    }
    return out;
  }

  /**
   * A quantity of some rows and columns: the weight w, its gradient, their product w · ∂L/∂w, or the contribution
   * w · c_j. Masked pairs have weight 0, and no number (NaN) of the others.
   * @param {string} what
   * @param {number} head
   * @param {number} rowFrom
   * @param {number} rowTo exclusive
   * @param {number} columnFrom
   * @param {number} columnTo exclusive
   * @returns {Float32Array}
   */
  values(what, head, rowFrom, rowTo, columnFrom, columnTo) {
    const place = /** @type {const} */ ([head, rowFrom, rowTo, columnFrom, columnTo]);
    if (what === "weight") return this.weights(...place);
    if (what === "difference") return this.differences(...place);
    const weights = what === "gradient" ? null : this.weights(...place);
    const gradients = what === "contribution" ? null : this.gradients(...place);
    const width = columnTo - columnFrom;
    const out = new Float32Array((rowTo - rowFrom) * width).fill(Number.NaN);
    for (let i = rowFrom; i < rowTo; i++) {
      if (this.lse[head * this.queries + i] === -Infinity) continue;
      const at = (i - rowFrom) * width - columnFrom;
      for (const [from, to] of this.allowed(head, i)) {
        const last = Math.min(to, columnTo);
        for (let j = Math.max(from, columnFrom); j < last; j++) {
          if (what === "gradient") out[at + j] = gradients[at + j];
          else out[at + j] = weights[at + j] * (gradients ? gradients[at + j] : this.given[head * this.keys + j]);
        }
      }
    }
    return out;
  }

  /** The weights of one query. */
  row(head, query) {
    return this.weights(head, query, query + 1, 0, this.keys);
  }

  /** The whole calculation of one query; null where there are weights alone. */
  steps(head, query) {
    if (this.dense) return null;
    const { channels, scale, softcap } = this;
    const keyHead = Math.floor(head / this.group);
    const q = this.q.plane(head).slice(query * channels, (query + 1) * channels);
    const k = this.k.plane(keyHead);
    const v = this.v ? this.v.plane(keyHead) : null;
    const width = this.valueChannels;
    const lse = this.lse[head * this.queries + query];
    const biasOf = this.biaser(head);
    const open = this.allowed(head, query);
    const output = v ? new Float32Array(width) : null;
    const keys = [];
    for (let j = 0; j < this.keys; j++) {
      const own = k.subarray(j * channels, (j + 1) * channels);
      let dot = 0;
      for (let c = 0; c < channels; c++) dot += q[c] * own[c];
      const scaled = dot * scale;
      const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
      const bias = biasOf ? biasOf(query, j) : 0;
      const allowed = open.some(([from, to]) => from <= j && j < to);
      const score = allowed ? capped + bias : -Infinity;
      const weight = score === -Infinity || lse === -Infinity ? 0 : Math.fround(Math.exp(score - lse));
      const value = v ? v.subarray(j * width, (j + 1) * width) : null;
      if (value) for (let c = 0; c < width; c++) output[c] += weight * value[c];
      keys.push({ k: own, dot, scaled, capped, bias, score, allowed, weight, v: value });
    }
    for (const name of Object.keys(this.quantities)) {
      this.values(name, head, query, query + 1, 0, this.keys).forEach((found, j) => {
        keys[j][name] = found;
      });
    }
    const sink = this.sinks ? this.sinks[head] : null;
    return { q, scale, softcap, lse, sink, keys, output };
  }

  /** From the outputs of all heads for one query to that of the layer: o_h, o_h W_O, their sum, with bias, and x + y. */
  layerOutput(query) {
    if (!this.projection) return null;
    const { columns: width } = this.projection;
    const outputs = this.heads.map((_, head) => this.steps(head, query).output);
    const parts = outputs.map((output, head) => {
      const weight = this.projection.plane(head);
      const part = new Float32Array(width);
      output.forEach((value, channel) => {
        for (let at = 0; at < width; at++) part[at] += value * weight[channel * width + at];
      });
      return part;
    });
    const total = new Float32Array(width);
    for (const part of parts) for (let at = 0; at < width; at++) total[at] += part[at];
    const bias = this.projectionBias;
    const added = bias ? total.map((value, at) => value + bias[at]) : total;
    const before = this.residual ? this.residual.block(0, query, query + 1, 0, width) : null;
    const after = before ? added.map((value, at) => value + before[at]) : null;
    return { outputs, parts, total, bias, added, before, after };
  }

  /** What softcap and bias make of a scaled product, as a function; null where there is neither. */
  bender(head) {
    const { softcap } = this;
    const bias = this.biaser(head);
    if (softcap === null) return bias && ((score, i, j) => score + bias(i, j));
    if (!bias) return (score) => softcap * Math.tanh(score / softcap);
    return (score, i, j) => softcap * Math.tanh(score / softcap) + bias(i, j);
  }

  /** The bias of a pair, as a function of query and key; null without any. */
  biaser(head) {
    const ofLine = this.line ? this.lineOf(head) : null;
    const ofTable = this.table ? this.table.lookup(head) : null;
    if (ofLine && ofTable) return (i, j) => ofLine(i, j) + ofTable(i, j);
    return ofLine || ofTable;
  }

  lineOf(head) {
    const length = this.keys + this.queries - 1;
    const start = (this.line.length > length ? head * length : 0) + this.keys - 1 - this.offset;
    const { line } = this;
    return (i, j) => line[start + j - i];
  }
}

/** Tokens of two texts, joined; kept, so that layers with the same texts have the same tokens. */
const joinedTexts = new WeakMap();

/** The tokens of a text and of another one of the same length, both where they differ: "tired / wide". */
function bothTokens(own, theirs) {
  if (!joinedTexts.has(own)) joinedTexts.set(own, new WeakMap());
  const known = joinedTexts.get(own);
  if (!known.has(theirs)) {
    const same = own.every((token, at) => token === theirs[at]);
    known.set(theirs, same ? own : own.map((token, at) => (token === theirs[at] ? token : `${token} / ${theirs[at]}`)));
  }
  return known.get(theirs);
}

/** What a head does: its role, how far it plays it, and the pair of tokens that shows it. */
export function roleFrom(found) {
  if (!found) return null;
  const [role, score, query, key, weight] = found;
  return { role, score, query, key, weight };
}
