// Lines: queries on the left, keys on the right, a line for every weight, a colour for every head.

import { toneOf } from "../colours.js";
import { TokenColumn } from "../column.js";
import { fitCanvas, make } from "../elements.js";
import { say } from "../languages.js";
import { shareText } from "../numbers.js";
import { Readout } from "../readout.js";
import { CanvasSurface } from "../surface.js";

const MOST_LINES = 4000;
const FAINTEST = 0.02;
const STRIP_WIDTH = 9;

export class LinesView {
  constructor(app) {
    this.app = app;
    this.hover = { side: "", index: -1 };
    const column = (side, label) =>
      new TokenColumn(side, label, {
        hover: (index) => this.point(side, index),
        pin: (index) => this.pin(side, index),
        scroll: () => this.paint(),
      });
    this.left = column("query", say("lines.queries"));
    this.right = column("key", say("lines.keys"));
    this.canvas = make("canvas", { class: "ink", "aria-hidden": "true" });
    this.chips = make("div", { class: "chips", role: "group", "aria-label": say("lines.heads") });
    this.readout = new Readout(say("lines.hint"));
    const edge = (name, way) => make("button", { type: "button", class: `edge ${name}`, hidden: true, on: { click: () => this.jump(way) } });
    [this.above, this.below] = [edge("above", -1), edge("below", 1)];
    this.middle = make("div", { class: "between", on: { wheel: (event) => this.scrollBoth(event) } });
    this.stage = make("div", { class: "lines-stage" }, this.canvas, this.left.root, this.middle, this.right.root, this.above, this.below);
    this.titles = make("div", { class: "lines-titles" }, make("span", {}, say("lines.queries")), make("span", {}), make("span", {}, say("lines.keys")));
    this.root = make("section", { class: "view lines" }, this.chips, this.readout.root, this.titles, this.stage);
    this.resized = new ResizeObserver(() => this.layout());
  }

  mounted() {
    this.resized.observe(this.root);
  }

  destroy() {
    this.resized.disconnect();
  }

  ready() {
    return Promise.resolve();
  }

  update(now) {
    const { app } = this;
    const before = this.look;
    this.look = app.look();
    this.shown = now.heads ?? this.look.call.heads.map((_, head) => head);
    this.renderChips();
    if (this.look !== before) {
      const { look } = this;
      this.hover = { side: "", index: -1 };
      this.left.setTokens(look.rowNames, specialGroups(look.rows, look.call.querySpecial));
      this.right.setTokens(look.columnNames, specialGroups(look.columns, look.call.keySpecial));
      this.layout();
    }
    this.left.setPinned(this.look.rowOf(now.query));
    this.right.setPinned(this.look.columnOf(now.key));
    const fresh = this.look !== before;
    if (this.left.pinned >= 0) this.left.reveal(this.left.pinned, fresh);
    if (this.right.pinned >= 0) this.right.reveal(this.right.pinned, fresh);
    else if (fresh && this.left.pinned >= 0) this.right.reveal(this.left.pinned, true);
    this.paint();
  }

  // ---- heads ------------------------------------------------------------------------------------

  renderChips() {
    const { call } = this.look;
    const { inks, state } = this.app;
    const chips = call.heads.map((number, head) => {
      const chip = make("button", {
        type: "button", class: "chip", "aria-pressed": String(this.shown.includes(head)), "aria-label": say("head.n", { head: number }),
        on: { click: () => this.toggle(head), dblclick: () => state.set({ heads: [head], head }) },
      }, String(number));
      chip.style.setProperty("--own", inks.head(head));
      return chip;
    });
    const all = make("button", { type: "button", class: "quiet", on: { click: () => state.set({ heads: null }) } }, say("lines.all"));
    const none = make("button", { type: "button", class: "quiet", on: { click: () => state.set({ heads: [] }) } }, say("lines.none"));
    const at = [...this.chips.children].indexOf(document.activeElement);
    this.chips.replaceChildren(...chips, all, none);
    this.chips.children[at]?.focus();
  }

  toggle(head) {
    const on = new Set(this.shown);
    if (!on.delete(head)) on.add(head);
    this.app.state.set({ heads: [...on] });
  }

  // ---- tokens -----------------------------------------------------------------------------------

  point(side, index) {
    this.hover = { side, index };
    this.paint();
  }

  pin(side, index) {
    const axis = side === "query" ? this.look.rows : this.look.columns;
    const token = axis.first[index];
    const { now } = this.app.state;
    const was = side === "query" ? this.left.pinned : this.right.pinned;
    this.app.state.set({ [side]: was === index ? null : token });
    if (this.app.state.now === now) this.paint();
  }

  scrollBoth(event) {
    this.left.root.scrollTop += event.deltaY;
    this.right.root.scrollTop += event.deltaY;
    event.preventDefault();
  }

  /** Brings the strongest key that is out of sight above (−1) or below (1) into sight. */
  jump(way) {
    const [first, last] = this.right.window;
    let [best, at] = [0, -1];
    this.meanRow().forEach((weight, column) => {
      const out = way < 0 ? column < first : column >= last;
      if (out && weight > best) [best, at] = [weight, column];
    });
    if (at >= 0) this.right.reveal(at, true);
  }

  /** The query and the key in question: what is pointed at, else what is pinned. */
  get active() {
    const { side, index } = this.hover;
    return {
      row: side === "query" && index >= 0 ? index : this.left.pinned,
      column: side === "key" && index >= 0 ? index : this.right.pinned,
    };
  }

  meanRow() {
    const { row } = this.active;
    const mean = new Float32Array(this.look.columns.count);
    if (row < 0) return mean;
    for (const head of this.shown) {
      this.look.row(head, row).forEach((weight, column) => (mean[column] += weight / this.shown.length));
    }
    return mean;
  }

  // ---- drawing ----------------------------------------------------------------------------------

  layout() {
    if (!this.look || !this.root.isConnected) return;
    const room = this.root.clientHeight - (this.stage.offsetTop - this.root.offsetTop) - 12;
    const longest = Math.max(this.look.rows.count, this.look.columns.count);
    for (const column of [this.left, this.right]) column.setRoom(room, longest);
    this.stage.style.height = `${Math.max(80, Math.min(longest * this.left.row, room))}px`;
    for (const column of [this.left, this.right]) column.render();
    this.paint();
  }

  /** Where things are: measured from the page, used for canvas and for export alike. */
  get geometry() {
    const stage = this.stage.getBoundingClientRect();
    const [left, right] = [this.left.root.getBoundingClientRect(), this.right.root.getBoundingClientRect()];
    return { width: stage.width, height: stage.height, from: left.right - stage.left + 4, to: right.left - stage.left - 4 };
  }

  paint() {
    if (!this.look || !this.root.isConnected) return;
    const shape = this.geometry;
    const surface = new CanvasSurface(fitCanvas(this.canvas, shape.width, shape.height));
    this.drawLines(surface, shape);
    this.tell();
  }

  /** Every line of the window: { head, row, column, weight }, the faintest first, the strongest kept. */
  linesInSight() {
    const { look, shown } = this;
    const { scale } = this.app.state.now;
    let [[top, bottom], [left, right]] = [this.left.window, this.right.window];
    const { row, column } = this.active;
    if (row >= 0) [top, bottom] = [row, row + 1];
    if (column >= 0) [left, right] = [column, column + 1];
    const lines = [];
    for (const head of shown) {
      const weights = look.weights(head, top, bottom, left, right);
      for (let i = 0; i < weights.length; i += 1) {
        if (toneOf(weights[i], scale) < FAINTEST) continue;
        lines.push({ head, row: top + Math.floor(i / (right - left)), column: left + (i % (right - left)), weight: weights[i] });
      }
    }
    lines.sort((a, b) => a.weight - b.weight);
    return lines.slice(-MOST_LINES);
  }

  drawLines(surface, shape) {
    const { inks } = this.app;
    const { scale } = this.app.state.now;
    const { row, column } = this.active;
    const lines = this.linesInSight();
    this.count = lines.length;
    this.drawStrips(surface, shape);
    const focused = row >= 0 || column >= 0;
    // Many lines together must not turn into a grey wall: the more there are, the thinner each is.
    const calm = focused ? 1 : Math.min(1, Math.sqrt(220 / Math.max(lines.length, 1)) + 0.25);
    // Heads that agree run side by side, not on top of each other.
    const spread = Math.min(2.5, (this.left.row - 12) / this.shown.length);
    surface.clip(0, 0, shape.width, shape.height, () => {
      for (const line of lines) {
        const tone = toneOf(line.weight, scale);
        const aside = (this.shown.indexOf(line.head) - (this.shown.length - 1) / 2) * spread;
        surface.curve(shape.from, this.left.middleOf(line.row) + aside, shape.to, this.right.middleOf(line.column) + aside, inks.head(line.head), {
          width: (0.6 + 3 * tone) * (focused ? 1.15 : calm), opacity: Math.min(1, (focused ? 0.15 : 0.04) + 0.9 * tone * calm),
        });
      }
    });
  }

  /** Beside each token on the other side, a strip for every head, and the mean over the heads. */
  drawStrips(surface, shape) {
    const { row, column } = this.active;
    if ((row < 0) === (column < 0) || this.shown.length === 0) return;
    const toKeys = row >= 0;
    const side = toKeys ? this.right : this.left;
    const [first, last] = side.window;
    const rows = this.shown.map((head) =>
      toKeys ? this.look.weights(head, row, row + 1, first, last) : this.look.weights(head, first, last, column, column + 1));
    const { inks } = this.app;
    const room = shape.width - shape.to;
    const width = Math.min(STRIP_WIDTH, (room * 0.4) / this.shown.length);
    for (let at = first; at < last; at += 1) {
      const top = side.middleOf(at) - side.row / 2 + 3;
      let mean = 0;
      rows.forEach((weights, index) => {
        const weight = weights[at - first];
        mean += weight / rows.length;
        const tone = toneOf(weight, this.app.state.now.scale);
        const x = toKeys ? shape.width - (rows.length - index) * width : index * width;
        if (tone > 0.004) surface.rect(x, top, width - 1, side.row - 6, inks.head(this.shown[index]), { opacity: tone });
      });
      if (mean < 0.0005) continue;
      const x = toKeys ? shape.width - rows.length * width - 6 : rows.length * width + 6;
      surface.text(x, side.middleOf(at), mean.toFixed(3), { fill: inks.soft, size: 11, anchor: toKeys ? "end" : "start" });
    }
  }

  tell() {
    const { row, column } = this.active;
    const { look } = this;
    this.above.hidden = this.below.hidden = true;
    if (row < 0 && column < 0) {
      this.readout.clear();
      return;
    }
    const mean = this.meanRow();
    const removed = row >= 0 && this.shown.length ? this.shown.reduce((sum, head) => sum + look.removed(head)[row], 0) / this.shown.length : 0;
    const weight = column >= 0 && row >= 0 ? mean[column] : 0;
    this.readout.show(look, { row, column, weight, masked: false, removed });
    if (row >= 0 && column < 0) this.tellOutside(mean);
  }

  /** How much of the row's weight lies outside of the window of keys. */
  tellOutside(mean) {
    const [first, last] = this.right.window;
    const sum = (from, to) => mean.subarray(from, to).reduce((total, weight) => total + weight, 0);
    for (const [edge, key, share] of [[this.above, "lines.above", sum(0, first)], [this.below, "lines.below", sum(last, mean.length)]]) {
      edge.hidden = share < 0.005;
      edge.textContent = say(key, { share: shareText(share) });
    }
  }

  // ---- export -----------------------------------------------------------------------------------

  pictureSize() {
    const { width, height } = this.geometry;
    return { width: Math.ceil(width), height: Math.ceil(height) };
  }

  draw(surface) {
    const shape = this.geometry;
    const { inks } = this.app;
    this.drawLines(surface, shape);
    const strips = this.shown.length * STRIP_WIDTH + 44;
    for (const [side, x, anchor, space] of [[this.left, shape.from - 12, "end", shape.from], [this.right, shape.to + 12, "start", shape.width - shape.to]]) {
      const [first, last] = side.window;
      for (let index = first; index < last; index += 1) {
        const pinned = index === side.pinned;
        surface.text(x, side.middleOf(index), side.names[index], {
          fill: side.special[index] ? inks.soft : inks.ink, size: 14, anchor, weight: pinned ? 600 : 400, limit: Math.max(60, space - 20 - strips),
        });
      }
    }
  }
}

function specialGroups(groups, special) {
  return groups.first.map((token) => special[token]);
}
