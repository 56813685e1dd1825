// Lines: queries on the left, keys on the right, a line for every weight, a colour for every head.

import { TokenColumn } from "../column.js";
import { fitCanvas, make, press } from "../elements.js";
import { say } from "../languages.js";
import { legendElement } from "../legend.js";
import { shareText } from "../numbers.js";
import { Readout } from "../readout.js";
import { oncePerFrame } from "../slices.js";
import { CanvasSurface } from "../surface.js";
import { drawLines, drawTokens } from "./lines_drawing.js";

export class LinesView {
  constructor(app) {
    this.app = app;
    this.hover = { side: "", index: -1 };
    this.repaint = oncePerFrame(() => this.paint());
    const column = (side, label) =>
      new TokenColumn(side, label, {
        hover: (index) => this.point(side, index),
        pin: (index) => this.pin(side, index),
        scroll: () => this.show(),
      });
    this.left = column("query", say("lines.queries"));
    this.right = column("key", say("lines.keys"));
    this.canvas = make("canvas", { class: "ink", "aria-hidden": "true" });
    this.chips = make("div", { class: "chips", role: "group", "aria-label": say("lines.heads") });
    this.readout = new Readout(say("lines.hint"));
    this.legend = make("span", { class: "legend-place" });
    const edge = (name, way) => press("", () => this.jump(way), { class: `edge ${name}`, hidden: true });
    this.above = edge("above", -1);
    this.below = edge("below", 1);
    this.middle = make("div", { class: "between", on: { wheel: (event) => this.scrollBoth(event) } });
    this.stage = make(
      "div",
      { class: "lines-stage" },
      this.canvas,
      this.left.root,
      this.middle,
      this.right.root,
      this.above,
      this.below,
    );
    this.titles = make(
      "div",
      { class: "lines-titles" },
      make("span", {}, say("lines.queries")),
      make("span", {}),
      make("span", {}, say("lines.keys")),
    );
    this.root = make(
      "section",
      { class: "view lines" },
      this.chips,
      this.readout.root,
      this.legend,
      this.titles,
      this.stage,
    );
    this.resized = new ResizeObserver(() => this.layout());
  }

  mounted() {
    this.resized.observe(this.root);
  }

  destroy() {
    this.resized.disconnect();
  }

  update(now) {
    const { app } = this;
    const before = this.look;
    this.look = app.look();
    this.shown = now.heads ?? this.look.call.heads.map((_, head) => head);
    this.renderChips();
    this.shading = app.shading(this.look.call, this.shown);
    this.legend.replaceChildren(...[legendElement(this.shading, app.inks)].filter(Boolean));
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
    this.show();
  }

  // ---- heads ------------------------------------------------------------------------------------

  renderChips() {
    const { call } = this.look;
    const { inks, state } = this.app;
    const chips = call.heads.map((number, head) => {
      // The second click of a double click comes after the first has switched the head.
      const chip = press(
        String(number),
        (event) => (event.detail === 2 ? state.set({ heads: [head], head }) : this.toggle(head)),
        {
          class: "chip",
          "aria-pressed": String(this.shown.includes(head)),
          "aria-label": say("head.n", { head: number }),
        },
      );
      chip.style.setProperty("--own", inks.head(head));
      return chip;
    });
    const at = [...this.chips.children].indexOf(document.activeElement);
    this.chips.replaceChildren(
      ...chips,
      press(say("lines.all"), () => state.set({ heads: null })),
      press(say("lines.none"), () => state.set({ heads: [] })),
    );
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
    this.show();
  }

  pin(side, index) {
    const axis = side === "query" ? this.look.rows : this.look.columns;
    const was = side === "query" ? this.left.pinned : this.right.pinned;
    this.app.state.set({ [side]: was === index ? null : axis.first[index] });
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
      if (out && Math.abs(weight) > best) [best, at] = [Math.abs(weight), column];
    });
    if (at >= 0) this.right.reveal(at, true);
  }

  /** The active query and key: what is pointed at, else what is pinned. */
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
      this.look.row(head, row).forEach((weight, column) => {
        if (!Number.isNaN(weight)) mean[column] += weight / this.shown.length;
      });
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
    this.show();
  }

  /** Updates the readout at once, the drawing with the next frame. */
  show() {
    this.tell();
    this.repaint();
  }

  /** Where things are: measured from the page, used for canvas and for export alike. */
  get geometry() {
    const stage = this.stage.getBoundingClientRect();
    const [left, right] = [this.left.root.getBoundingClientRect(), this.right.root.getBoundingClientRect()];
    return {
      width: stage.width,
      height: stage.height,
      from: left.right - stage.left + 4,
      to: right.left - stage.left - 4,
    };
  }

  paint() {
    if (!this.look || !this.root.isConnected) return;
    const { width, height } = this.geometry;
    drawLines(new CanvasSurface(fitCanvas(this.canvas, width, height)), this);
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
    const removed =
      row >= 0 && this.shown.length && look.what === "weight"
        ? this.shown.reduce((sum, head) => sum + look.removed(head)[row], 0) / this.shown.length
        : 0;
    const weight = column >= 0 && row >= 0 ? mean[column] : 0;
    this.readout.show(look, { row, column, weight, masked: false, removed });
    if (row >= 0 && column < 0 && look.what === "weight") this.tellOutside(mean);
  }

  /** How much of the row's weight is outside the window of keys. */
  tellOutside(mean) {
    const [first, last] = this.right.window;
    const sum = (from, to) => mean.subarray(from, to).reduce((total, weight) => total + weight, 0);
    for (const [edge, key, share] of [
      [this.above, "lines.above", sum(0, first)],
      [this.below, "lines.below", sum(last, mean.length)],
    ]) {
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
    drawLines(surface, this);
    for (const column of [this.left, this.right]) drawTokens(surface, this, column);
  }
}

function specialGroups(groups, special) {
  return groups.first.map((token) => special[token]);
}
