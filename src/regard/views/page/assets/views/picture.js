// The picture that the model read, each patch shaded by what one token attends to; or, through all layers, by what the
// token is made of (rollout) or by what mattered to it (relevance).

import { blankCanvas, choice, datum, fitCanvas, make, press } from "../elements.js";
import { say } from "../languages.js";
import { quantityText, shareText, valueText } from "../numbers.js";
import { otherTokens, patchAt, patchValues } from "../picture_patches.js";
import { Shading } from "../shading.js";
import { CanvasSurface } from "../surface.js";
import { greatestSizeOf, meanOf, strongestColour } from "../text_weights.js";

const LONGEST_SIDE = 560;
const CAPTION = 34;
const MOST_OTHERS = 300;

/** The view of a picture. */
export class PictureView {
  constructor(app) {
    this.app = app;
    this.picture = app.recording.picture;
    const { width, height } = this.picture;
    const side = Math.min(LONGEST_SIDE, window.innerWidth - 40, window.innerHeight - 300);
    const scale = Math.max(side, 160) / Math.max(width, height);
    this.size = { width: Math.round(width * scale), height: Math.round(height * scale) };
    this.besides = otherTokens(app.state.call.keys, this.picture.tokens);
    this.hovered = null; // the token under the pointer
    this.strength = 0.8;
    this.borders = false;
    this.grey = null;
    this.canvas = make("canvas", {
      class: "picture-canvas",
      role: "img",
      on: {
        pointermove: (event) => this.point(this.tokenAt(event)),
        pointerleave: () => this.point(null),
        click: (event) => this.pin(this.tokenAt(event)),
      },
    });
    this.caption = make("p", { class: "picture-caption", role: "status", "aria-live": "polite" });
    this.others = make("div", { class: "picture-others", role: "group", "aria-label": say("picture.others") });
    const strength = make("input", {
      type: "range",
      min: "0",
      max: "1",
      step: "0.05",
      value: String(this.strength),
      on: { input: (event) => this.choose({ strength: Number(event.target.value) }) },
    });
    const borders = make("input", {
      type: "checkbox",
      on: { change: (event) => this.choose({ borders: event.target.checked }) },
    });
    this.groups = make("div", { class: "picture-tools" });
    this.root = make(
      "div",
      { class: "view picture-view" },
      this.groups,
      this.caption,
      make("div", { class: "picture-body" }, this.canvas, this.others),
      make(
        "div",
        { class: "picture-tools" },
        make("label", {}, make("span", {}, say("picture.strength")), strength),
        make("label", {}, borders, make("span", {}, say("picture.borders"))),
      ),
    );
    this.loaded = this.load();
  }

  /** The picture without its colours, so that only attention has any. */
  async load() {
    const image = new Image();
    image.src = this.picture.source;
    await image.decode();
    const { width, height } = this.picture;
    const canvas = blankCanvas(width, height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, width, height);
    const pixels = context.getImageData(0, 0, width, height);
    for (let at = 0; at < pixels.data.length; at += 4) {
      const [red, green, blue] = pixels.data.slice(at, at + 3);
      pixels.data.fill(0.2126 * red + 0.7152 * green + 0.0722 * blue, at, at + 3);
    }
    context.putImageData(pixels, 0, 0);
    this.grey = canvas;
    this.paint();
  }

  ready() {
    return this.loaded;
  }

  choose(patch) {
    Object.assign(this, patch);
    this.paint();
  }

  tokenAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const patch = patchAt(event.clientX - box.left, event.clientY - box.top, box, this.picture.grid);
    return patch < 0 ? null : this.picture.tokens[patch];
  }

  point(token) {
    if (token === this.hovered) return;
    this.hovered = token;
    this.app.onPoint?.(token === null ? null : { key: token });
    this.paint();
  }

  /** Shows what is pointed at in another pane. */
  pointTo(where) {
    this.hovered = where ? where.key : null;
    this.paint();
  }

  pin(token) {
    if (token !== null) this.app.state.set({ query: token });
  }

  update(now, changed) {
    if (changed === null || !this.shown) this.hovered = null;
    if (!changed || changed.has("group")) this.showGroups(now);
    this.paint();
  }

  /** Where the numbers come from: one head, the mean of its layer, or all layers. */
  showGroups({ group }) {
    const { recording, state } = this.app;
    const names = ["head", "mean", ...["rollout", "relevance"].filter((name) => recording[name].length)];
    const options = names.map((name) => [name, say(`text.${name}`)]);
    const shown = names.includes(group) ? group : "head";
    const select = choice(options, shown, (chosen) => state.set({ group: chosen }), {
      "aria-label": say("text.group"),
      title: names.includes("rollout") ? say("text.rollout.about") : null,
    });
    const focused = this.groups.contains(document.activeElement);
    this.groups.replaceChildren(select);
    if (focused) select.focus();
  }

  /**
   * The numbers that are shown, by token, and what they are: one head's, a mean, or those of all layers.
   * @returns {{ of: string, values: ArrayLike<number>, columnOf: (token: number) => number, query: number }}
   */
  numbers() {
    const { recording, state } = this.app;
    const { group, head } = state.now;
    const { call } = state;
    const same = (token) => token;
    const flow = recording.rollout.find(({ run }) => run === call.run);
    if (group === "rollout" && flow?.shares.columns === call.keys)
      return {
        of: group,
        values: flow.shares.plane(0).subarray(...rowSpan(this.query, call.keys)),
        columnOf: same,
        query: this.query,
      };
    const known = recording.relevance.filter(({ run, own }) => run === call.run && own.length === call.keys);
    if (group === "relevance" && known.length) {
      const found = known.find(({ row }) => row === this.query) ?? known[0];
      const values = found.own.slice();
      values[found.row] = 0; // a position is always relevant for itself
      return { of: group, values, columnOf: same, query: found.row };
    }
    const look = this.app.look();
    const row = look.rowOf(this.query);
    const heads = group === "mean" ? call.heads.map((_, at) => at) : [head];
    const values = row < 0 ? new Float32Array(look.columns.count) : meanOf(heads.map((at) => look.row(at, row)));
    return {
      of: heads.length > 1 ? "mean" : "head",
      values,
      columnOf: (token) => look.columnOf(token),
      query: this.query,
    };
  }

  /** The token whose attention is shown: under the pointer, pinned, or the first beside the picture that sees all of it. */
  get query() {
    const { now, call } = this.app.state;
    const last = this.picture.tokens.at(-1);
    const first = () => this.besides.find((token) => token < call.queries && this.sees(token, last));
    return Math.min(this.hovered ?? now.query ?? first() ?? 0, call.queries - 1);
  }

  sees(query, key) {
    const { now, call } = this.app.state;
    return call.sees(now.what, now.head, query, key);
  }

  paint() {
    const { state } = this.app;
    const found = this.numbers();
    const { what } = state.now;
    const { values } = found;
    const columnOf = state.call.keyTokens.map((_, token) => found.columnOf(token));
    const patches = patchValues(values, columnOf, this.picture.tokens);
    this.shown = { ...found, patches, shading: this.shadingOf(found, what) };
    this.say();
    this.listOthers();
    const { width, height } = this.size;
    const context = fitCanvas(this.canvas, width, height);
    this.drawPicture(new CanvasSurface(context));
  }

  /** As in the text: a head that looks everywhere looks pale. Through all layers, others than the token itself count. */
  shadingOf({ of, values, query }, what) {
    const { state, inks } = this.app;
    if (of === "head" || of === "mean") {
      const plain = this.app.shading(state.call, [state.now.head]);
      const greatest = what === "weight" ? strongestColour(values) : greatestSizeOf(values);
      return new Shading({ ...plain, scale: "linear", greatest });
    }
    const others = Float32Array.from(values, (value, token) => (token === query ? 0 : value));
    return new Shading({
      ramp: inks.ramp,
      scale: "linear",
      greatest: greatestSizeOf(others),
      what: of,
      named: `text.${of}`,
    });
  }

  /** In words: who attends, how much of it lies on the picture, and where most. */
  say() {
    const { of, patches, query, values } = this.shown;
    const { call, now } = this.app.state;
    // Weights and rollout sum to 1, relevance to anything.
    const sum = sumOf(patches) / (of === "relevance" ? sumOf(values) || 1 : 1);
    const [, columns] = this.picture.grid;
    const placeOf = (patch) => `${Math.floor(patch / columns)}, ${patch % columns}`;
    const own = this.picture.tokens.indexOf(query);
    const best = patches.reduce((place, value, at) => (value > (patches[place] ?? -Infinity) ? at : place), 0);
    const key = of === "rollout" || of === "relevance" ? of : now.what === "weight" ? "weight" : "quantity";
    const said = say(of === "mean" && key === "weight" ? "picture.mean" : `picture.${key}`, {
      layer: call.layer,
      head: call.heads[now.head],
      count: call.heads.length,
      query: own < 0 ? (call.queryTokens[query] ?? "") : say("picture.patch", { place: placeOf(own) }),
      share: shareText(sum),
      place: placeOf(best),
      best: this.numberText(patches[best]),
    });
    this.said = said;
    this.caption.replaceChildren(datum(said));
    this.canvas.setAttribute("aria-label", said);
  }

  /** As in the text: weights and rollout are shares, other quantities are not. */
  numberText(value) {
    const { of } = this.shown;
    const { what } = this.app.state.now;
    if (of === "relevance") return valueText(value);
    return of === "rollout" || what === "weight" ? shareText(value) : quantityText(value, what);
  }

  listOthers() {
    const { values, shading, columnOf, query } = this.shown;
    const names = this.app.state.call.keyTokens;
    this.others.replaceChildren(
      ...this.besides.slice(0, MOST_OTHERS).map((token) => {
        const column = columnOf(token);
        const value = column < 0 ? NaN : values[column];
        const place = shading.place(value);
        const said = this.sees(query, token) ? this.numberText(value || 0) : say("matrix.masked");
        const button = press([datum(names[token]), " ", datum(said, "number")], () => this.pin(token), {
          class: "picture-token",
          "aria-pressed": String(token === this.query),
        });
        // Not as an attribute: the policy of the app forbids styles in markup.
        if (place >= 0) Object.assign(button.style, { background: shading.colour(place), color: shading.ink(place) });
        return button;
      }),
    );
  }

  drawPicture(surface) {
    const { width, height } = this.size;
    const [rows, columns] = this.picture.grid;
    if (this.grey) surface.image(this.grey, 0, 0, width, height);
    const [wide, tall] = [width / columns, height / rows];
    const { shading, patches } = this.shown;
    patches.forEach((value, patch) => {
      const place = shading.place(value);
      if (place < 0) return;
      const opacity = this.strength * Math.sqrt(shading.strength(value));
      const [x, y] = [(patch % columns) * wide, Math.floor(patch / columns) * tall];
      surface.rect(x, y, wide, tall, shading.colour(place), { opacity });
    });
    const { inks } = this.app;
    if (this.borders) {
      for (let row = 1; row < rows; row += 1)
        surface.line(0, row * tall, width, row * tall, inks.paper, { opacity: 0.5 });
      for (let at = 1; at < columns; at += 1)
        surface.line(at * wide, 0, at * wide, height, inks.paper, { opacity: 0.5 });
    }
    const own = this.picture.tokens.indexOf(this.shown.query);
    if (own >= 0) this.outline(surface, (own % columns) * wide, Math.floor(own / columns) * tall, wide, tall);
  }

  /** A light line with a dark one in it can be seen on every picture. */
  outline(surface, x, y, width, height) {
    const { paper, accent } = this.app.inks;
    for (const [ink, style] of [
      [paper, { width: 5 }],
      [accent, { width: 2 }],
    ]) {
      surface.line(x, y, x + width, y, ink, style);
      surface.line(x, y + height, x + width, y + height, ink, style);
      surface.line(x, y, x, y + height, ink, style);
      surface.line(x + width, y, x + width, y + height, ink, style);
    }
  }

  pictureSize() {
    return { width: Math.max(this.size.width, 480), height: this.size.height + CAPTION };
  }

  /** The picture on paper, for exports. */
  draw(surface) {
    this.drawPicture(surface);
    surface.text(0, this.size.height + CAPTION / 2, this.said, {
      fill: this.app.inks.ink,
      size: 12,
      limit: this.pictureSize().width,
    });
  }
}

/** The sum of the numbers, without those that are missing. */
function sumOf(values) {
  return values.reduce((total, value) => total + (Number.isNaN(value) ? 0 : value), 0);
}

/** Where a row of a table is in its numbers. */
function rowSpan(row, width) {
  return [row * width, (row + 1) * width];
}
