// Lines: queries on the left, keys on the right, a line for every weight, a colour for every head.

import { channelsIn, headRound, readableOver } from "../colours.js";
import { TokenColumn } from "../column.js";
import { choice, fitCanvas, make, press } from "../elements.js";
import { term } from "../explained.js";
import { say } from "../languages.js";
import { legendElement } from "../legend.js";
import { shareText } from "../numbers.js";
import { Readout } from "../readout.js";
import { oncePerFrame } from "../slices.js";
import { LEAST } from "../state.js";
import { CanvasSurface } from "../surface.js";
import { greatestPlaces, restingKeys } from "../text_weights.js";
import {
  besideTokens,
  drawLines,
  drawLinesLegend,
  drawTokens,
  linesLegendHeight,
  whichLines,
} from "./lines_drawing.js";

export class LinesView {
  constructor(app) {
    this.app = app;
    this.hover = { side: "", index: -1 };
    this.repaint = oncePerFrame(() => this.paint());
    const column = (side, label) =>
      new TokenColumn(side, label, {
        hover: (index) => this.point(side, index),
        pin: (index) => this.pin(side, index),
        scroll: (by) => this.scrolled(side, by),
      });
    this.left = column("query", say("lines.queries"));
    this.right = column("key", say("lines.keys"));
    this.canvas = make("canvas", { class: "ink", "aria-hidden": "true" });
    this.chips = make("div", { class: "chips", role: "group", "aria-label": say("lines.heads") });
    this.readout = new Readout(say("lines.hint"));
    this.legend = make("span", { class: "legend-place" });
    this.least = choice(
      LEAST.map((name) => [name, whichLines(name, app.state.now.what)]),
      app.state.now.least,
      (least) => app.state.set({ least }),
      { "aria-label": say("lines.which") },
    );
    this.bests = new Map(); // the strongest key of a head and a query
    this.resting = new Map(); // the columns of the keys on which a head rests
    const edge = (name, way) => press("", () => this.jump(way), { class: `edge ${name}`, hidden: true });
    this.above = edge("above", -1);
    this.below = edge("below", 1);
    this.middle = make("div", { class: "between", on: { wheel: (event) => this.wheeled(event) } });
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
      make("span", {}, term("query", say("lines.queries")), " ", make("small", {}, say(crossed(app, "lines.from")))),
      make("span", {}),
      make("span", {}, term("key", say("lines.keys")), " ", make("small", {}, say("lines.to"))),
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

  /** The chip of the current head. */
  get home() {
    return this.chips.children[this.app.state.now.head];
  }

  update(now) {
    const { app } = this;
    const before = this.look;
    this.look = app.look();
    this.shown = now.heads ?? this.look.call.heads.map((_, head) => head);
    this.renderChips();
    this.shading = app.shading(this.look.call, this.shown);
    this.legend.replaceChildren(...[legendElement(this.shading, app.inks)].filter(Boolean));
    this.least.value = now.least;
    for (const option of this.least.options) option.textContent = whichLines(option.value, now.what);
    if (this.look !== before) {
      const { look } = this;
      this.bests.clear();
      this.resting.clear();
      this.hover = { side: "", index: -1 };
      this.left.setTokens(look.rowNames, specialGroups(look.rows, look.call.querySpecial));
      this.right.setTokens(look.columnNames, specialGroups(look.columns, look.call.keySpecial));
      this.layout();
    }
    const found = app.found();
    this.left.setFound(groupsOf(found.query, this.look.rows));
    this.right.setFound(groupsOf(found.key, this.look.columns));
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
      chip.style.setProperty("--on", readableOver(channelsIn(inks.head(head))));
      chip.style.setProperty("--style", ["solid", "dashed", "dotted"][headRound(head) % 3]);
      return chip;
    });
    const at = [...this.chips.children].indexOf(document.activeElement);
    this.chips.replaceChildren(
      ...chips,
      press(say("lines.all"), () => state.set({ heads: null }), { "aria-label": say("lines.all.heads") }),
      press(say("lines.none"), () => state.set({ heads: [] }), { "aria-label": say("lines.none.heads") }),
      make("span", { class: "push" }),
      this.least,
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
    const axis = side === "query" ? this.look.rows : this.look.columns;
    this.app.onPoint?.(index < 0 ? null : { [side]: axis.first[index] });
    this.show();
  }

  /** Shows what is pointed at in another pane. */
  pointTo(where) {
    const side = where && where.query !== null ? "query" : "key";
    const index = where ? (side === "query" ? this.look.rowOf(where.query) : this.look.columnOf(where.key)) : -1;
    this.hover = { side, index };
    this.show();
  }

  pin(side, index) {
    const axis = side === "query" ? this.look.rows : this.look.columns;
    const was = side === "query" ? this.left.pinned : this.right.pinned;
    this.app.state.set({ [side]: was === index ? null : axis.first[index] });
  }

  /** Between the columns the wheel moves both. */
  wheeled(event) {
    this.left.root.scrollTop += event.deltaY; // the other one follows
    event.preventDefault();
  }

  /** The user has moved one column: the other one follows. */
  scrolled(side, by) {
    if (by !== 0) (side === "query" ? this.right : this.left).moveBy(by);
    this.show();
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

  /** The column that a head attends to most in a row, besides sinks; −1 if there is none. */
  bestOf(head, row) {
    const name = `${head} ${row}`;
    if (!this.bests.has(name)) {
      const resting = this.restingColumns(head);
      this.bests.set(name, greatestPlaces(this.look.row(head, row), 1, (column) => !resting.has(column))[0] ?? -1);
    }
    return this.bests.get(name);
  }

  /** The columns of the keys on which a head rests its weight. */
  restingColumns(head) {
    if (!this.resting.has(head)) {
      const { call, columns } = this.look;
      const rests = restingKeys(call.keySpecial, call.statistic("first_weight")[head]);
      this.resting.set(head, new Set(columns.first.flatMap((key, column) => (rests[key] ? [column] : []))));
    }
    return this.resting.get(head);
  }

  /** The weights of a row as they are shown: sinks have none where their lines are left out. */
  shownRow(row) {
    const quiet = this.app.state.now.least === "best";
    return this.shown.length ? this.meanRow(row, quiet) : null;
  }

  meanRow(row = this.active.row, quiet = false) {
    const mean = new Float32Array(this.look.columns.count);
    if (row < 0) return mean;
    for (const head of this.shown) {
      const resting = quiet ? this.restingColumns(head) : null;
      this.look.row(head, row).forEach((weight, column) => {
        if (!Number.isNaN(weight) && !resting?.has(column)) mean[column] += weight / this.shown.length;
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
    // Tokens leave room for the strips and numbers beside them.
    const { row, column } = this.active;
    const beside = `${besideTokens(this)}px`;
    this.right.root.style.setProperty("--beside", row >= 0 && column < 0 ? beside : "0px");
    this.left.root.style.setProperty("--beside", column >= 0 && row < 0 ? beside : "0px");
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
    return { width: Math.ceil(width), height: Math.ceil(height) + linesLegendHeight(this) };
  }

  draw(surface) {
    drawLines(surface, this);
    for (const column of [this.left, this.right]) drawTokens(surface, this, column);
    drawLinesLegend(surface, this);
  }
}

/** The groups of some tokens. */
function groupsOf(tokens, { groupOf }) {
  return new Set([...tokens].map((token) => groupOf[token]).filter((group) => group >= 0));
}

/** The rows of cross-attention are what is being written. */
function crossed({ state }, key) {
  return state.call.kind === "cross" ? `${key}.cross` : key;
}

function specialGroups(groups, special) {
  return groups.first.map((token) => special[token]);
}
