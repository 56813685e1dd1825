// Matrix: a heat map that computes what is on the screen. Far out, a pixel is the greatest weight of its block.

import { drawAxes, widestLabel } from "../axes.js";
import { make, press } from "../elements.js";
import { say } from "../languages.js";
import { captionPlan, captionWidth, drawCaption } from "../legend.js";
import { maskedAreas } from "../masked_area.js";
import { MINIMAP_SIDE, Minimap } from "../minimap.js";
import { Readout } from "../readout.js";
import { oncePerFrame, Slices } from "../slices.js";
import { greatestPlaces } from "../text_weights.js";
import { thumbnailOf } from "../thumbnails.js";
import { TiledView } from "../tiled_view.js";
import { isFurther, TILE, Tiles } from "../tiles.js";
import { Viewport } from "../viewport.js";
import { WeightTable } from "../weight_table.js";

const MOST_RECTANGLES = 4096;
const LONGEST_LABEL = 104;
const LONG_MATRIX = 128; // tokens from which there is a minimap, where the view is wide enough
const MINIMAP_FROM = 720;
const CLOSE_ENOUGH = 14; // pixels of a cell whose tokens can be read

export class MatrixView extends TiledView {
  constructor(app) {
    super(app, TILE);
    this.look = null;
    this.tiles = null;
    this.coarse = null; // the thumbnail
    this.elsewhere = null; // the pair that is pointed at in another pane
    this.space = null; // { left, top }: the room for labels
    this.spaced = null; // the look that `space` was measured for
    this.slices = new Slices();
    this.repaint = oncePerFrame(() => this.paint());
    this.readout = new Readout(say("matrix.hint"));
    const tools = make(
      "div",
      { class: "segments", role: "group", "aria-label": say("matrix.zoom") },
      press("−", () => this.zoomBy(1 / 1.6), { class: null, "aria-label": say("matrix.out") }),
      press(say("matrix.fit"), () => app.state.set({ zoom: null }), { class: null }),
      press("+", () => this.zoomBy(1.6), { class: null, "aria-label": say("matrix.in") }),
    );
    this.minimap = new Minimap((row, column) => this.goTo(row, column));
    this.table = new WeightTable();
    this.stage.append(this.minimap.root);
    this.canvas.setAttribute("aria-describedby", `${app.prefix}matrix-readout`);
    this.readout.root.id = `${app.prefix}matrix-readout`;
    this.bar = make("div", { class: "view-bar" }, this.readout.root, this.table.root, tools);
    this.root = make("section", { class: "view matrix" }, this.bar, this.stage);
  }

  destroy() {
    super.destroy();
    this.slices.stop();
  }

  ready() {
    return this.slices.idle();
  }

  get home() {
    return this.canvas;
  }

  update(now, changed) {
    const look = this.app.look();
    const fresh = look !== this.look || this.tiles.head !== now.head;
    if (fresh) {
      this.tiles = new Tiles(look, now.head);
      this.pointer = null;
      this.elsewhere = null;
      this.coarse = null;
    }
    if (fresh || !changed || ["scale", "palette", "theme"].some((name) => changed.has(name))) {
      this.forgetPictures();
      this.minimap.show(look.call, now.head, this.app.shading(look.call, [now.head]));
    }
    this.look = look;
    this.table.show(look, now.head, look.rowOf(now.query));
    this.canvas.setAttribute(
      "aria-label",
      say("matrix.label", { what: say(look.named), queries: look.rows.count, keys: look.columns.count }),
    );
    this.layout();
  }

  /** One head fills the view, so it has the whole scale. */
  get shading() {
    return this.app.shading(this.look.call, [this.tiles.head]);
  }

  // ---- where ------------------------------------------------------------------------------------

  layout() {
    if (!this.look || !this.root.isConnected) return;
    const [width, height] = [this.stage.clientWidth, this.stage.clientHeight];
    if (width < 40 || height < 40) return;
    const { rows, columns } = this.look;
    if (this.size?.width !== width || this.spaced !== this.look) this.measure(width);
    this.size = { width, height };
    const [left, top] = [this.space.left + 14, this.space.top * 0.8 + 16];
    const long = Math.max(rows.count, columns.count) >= LONG_MATRIX && width >= MINIMAP_FROM;
    this.minimap.root.hidden = !long;
    const right = Math.max(this.space.top * 0.6, long ? MINIMAP_SIDE + 24 : 0);
    this.legend = captionPlan(this.look.call, left, width);
    const room = { width: width - left - right, height: height - top - this.legend.height };
    const area = { left, top, width: Math.max(1, room.width), height: Math.max(1, room.height) };
    this.viewport = new Viewport(rows.count, columns.count, area, this.app.state.now.zoom);
    this.minimap.root.style.top = `${top}px`;
    this.tell(this.marked);
    this.repaint();
    this.refine();
  }

  /** How much room the labels need. */
  measure(width) {
    const label = (names) =>
      Math.min(LONGEST_LABEL, width * 0.24, Math.max(widestLabel(names), widestLabel([String(names.length)])) + 1);
    this.space = { left: label(this.look.rowNames), top: label(this.look.columnNames) };
    this.spaced = this.look;
  }

  /** Brings the pinned pair into the middle: the query with its strongest key, if no key is pinned. */
  showPin() {
    const { now } = this.app.state;
    const { look } = this;
    const row = look.rowOf(now.query);
    const strongest = row >= 0 ? greatestPlaces(look.row(this.tiles.head, row), 1)[0] : -1;
    const column = now.key === null ? strongest : look.columnOf(now.key);
    const { viewport } = this;
    const close =
      viewport.cellHeight < CLOSE_ENOUGH ? viewport.zoomed(CLOSE_ENOUGH / viewport.cellHeight, 0, 0) : viewport;
    const middle = close.cellAt(close.left + close.width / 2, close.top + close.height / 2);
    this.moveTo(close.centred(row < 0 ? middle[0] : row, column === undefined || column < 0 ? middle[1] : column));
  }

  /** Brings a place into the middle, given as shares of the whole. */
  goTo(down, across) {
    const { viewport } = this;
    this.moveTo(viewport.centred(down * viewport.rows - 0.5, across * viewport.columns - 0.5));
  }

  refine() {
    const level = this.level;
    this.progress.hidden = false;
    this.slices.run(this.tiles.fill(level, this.range(level)), (done) => {
      if (done) this.progress.hidden = true;
      this.repaint();
    });
  }

  // ---- pointing ---------------------------------------------------------------------------------

  point(x, y) {
    this.pointer = this.viewport.pairAt(x, y);
    this.elsewhere = null;
    const { rows, columns } = this.look;
    this.app.onPoint?.(
      this.pointer && { query: rows.first[this.pointer.row], key: columns.first[this.pointer.column] },
    );
    this.tell(this.marked);
    this.repaint();
  }

  /** Marks what is pointed at in another pane. */
  pointTo(where) {
    const { look } = this;
    this.elsewhere = where && { row: look.rowOf(where.query), column: look.columnOf(where.key) };
    this.tell(this.marked);
    this.repaint();
  }

  pin(x, y) {
    const pair = this.viewport.pairAt(x, y);
    if (!pair) {
      this.unpin();
      return;
    }
    const { row, column } = this.greatestAt(pair);
    this.togglePinned(this.look.rows.first[row], this.look.columns.first[column]);
  }

  /** The greatest weight of the block that the pixel of a pair shows. */
  greatestAt({ row, column }) {
    const { look } = this;
    const step = 2 ** this.level;
    const [top, left] = [Math.floor(row / step) * step, Math.floor(column / step) * step];
    const [bottom, right] = [Math.min(top + step, look.rows.count), Math.min(left + step, look.columns.count)];
    const weights = look.values(this.tiles.head, top, bottom, left, right);
    let at = 0;
    weights.forEach((weight, index) => {
      if (isFurther(weight, weights[at])) at = index;
    });
    return {
      row: top + Math.floor(at / (right - left)),
      column: left + (at % (right - left)),
      weight: weights[at],
      count: weights.length,
    };
  }

  /** The pair that the crosshair marks: under the pointer, else pinned. */
  get marked() {
    if (this.pointer) return this.greatestAt(this.pointer);
    const { now } = this.app.state;
    const pinned = { row: this.look.rowOf(now.query), column: this.look.columnOf(now.key) };
    const { row, column } = this.elsewhere ?? pinned;
    if (row < 0 && column < 0) return null;
    const weight = row >= 0 && column >= 0 ? this.look.values(this.tiles.head, row, row + 1, column, column + 1)[0] : 0;
    return { row, column, weight, count: 1 };
  }

  tell(marked) {
    if (!marked) {
      this.readout.clear();
      return;
    }
    const { look, tiles } = this;
    const removed = look.what === "weight" && marked.row >= 0 ? look.removed(tiles.head)[marked.row] : 0;
    const note =
      marked.count > 1
        ? say(look.what === "weight" ? "matrix.greatest" : "matrix.furthest", { count: marked.count })
        : "";
    this.readout.show(look, { ...marked, removed, note, masked: !marked.weight && this.isMasked(marked) });
  }

  isMasked({ row, column }) {
    const { look } = this;
    if (row < 0 || column < 0) return false;
    return !look.call.sees(look.what, this.tiles.head, look.rows.first[row], look.columns.first[column]);
  }

  // ---- drawing ----------------------------------------------------------------------------------

  paint() {
    if (this.viewport) this.drawAll(this.surface());
  }

  drawAll(surface) {
    const { viewport, space, look } = this;
    const marked = this.marked;
    const { inks } = this.app;
    const { left, top, width, height } = viewport;
    const found = this.app.found();
    const matches = {
      rows: [...found.query].map((token) => look.rowOf(token)),
      columns: [...found.key].map((token) => look.columnOf(token)),
    };
    this.minimap.mark(viewport, matches.rows, inks);
    const masked = this.maskedRectangles();
    surface.clip(left, top, width, height, () => {
      this.drawCells(surface);
      if (masked.length) surface.hatch(masked, inks.hatch);
      if (marked) this.drawCrosshair(surface, marked.row, marked.column, { ink: inks.accent, opacity: 0.75 });
    });
    for (const [x, y] of [
      [0, 0],
      [width, height],
    ]) {
      surface.line(left, top + y, left + width, top + y, inks.hair);
      surface.line(left + x, top, left + x, top + height, inks.hair);
    }
    drawAxes(surface, { viewport, space, inks, look, marked });
    drawMatches(surface, viewport, inks, matches);
    this.drawCaption(surface, masked.length > 0);
  }

  /** Below the matrix; one in the middle of a narrow window leaves too little room to its right. */
  drawCaption(surface, masked) {
    const { left, top, width: across, height } = this.viewport;
    const { width } = this.size;
    const plan = { ...this.legend, bar: Math.min(this.legend.bar, across) };
    const x = plan.below ? left : Math.max(0, Math.min(left, width - captionWidth(plan, masked)));
    drawCaption(surface, { x, y: top + height + 16, width, plan, masked, inks: this.app.inks, shading: this.shading });
  }

  /** Where pairs are masked, in pixels. */
  maskedRectangles() {
    const { viewport, look, tiles } = this;
    const step = Math.max(1, Math.round(1 / viewport.cellHeight));
    return maskedAreas(look, tiles.head, viewport.inSight, step).map(({ top, bottom, left, right }) => [
      viewport.x(left),
      viewport.y(top),
      viewport.x(right) - viewport.x(left),
      viewport.y(bottom) - viewport.y(top),
    ]);
  }

  drawCells(surface) {
    const { viewport, level } = this;
    const { top, bottom, left, right } = viewport.inSight;
    const pairs = (bottom - top) * (right - left);
    if (level === 0 && pairs <= MOST_RECTANGLES && (surface.vector || viewport.roomForValues)) {
      const weights = this.look.values(this.tiles.head, top, bottom, left, right);
      this.drawRectangles(surface, (row, column) => weights[(row - top) * (right - left) + column - left]);
      return;
    }
    if (this.look.plain) this.drawThumbnail(surface);
    this.drawLevel(surface, level);
  }

  tileAt(level, down, across) {
    return this.tiles.get(level, down, across);
  }

  /** The thumbnail, until the tiles are computed. */
  drawThumbnail(surface) {
    this.coarse ??= thumbnailOf(this.look.call, this.tiles.head, this.look.what);
    this.drawPicture(surface, this.coarse, 0, 0, this.coarse.down, this.coarse.across);
  }
}

/** Ticks along the axes where the searched text is. */
function drawMatches(surface, viewport, inks, { rows, columns }) {
  const { left, top, width, height } = viewport;
  for (const row of rows) {
    const y = viewport.y(row + 0.5);
    if (row >= 0 && y > top && y < top + height) surface.line(left - 6, y, left, y, inks.negative, { width: 2 });
  }
  for (const column of columns) {
    const x = viewport.x(column + 0.5);
    if (column >= 0 && x > left && x < left + width) surface.line(x, top - 6, x, top, inks.negative, { width: 2 });
  }
}
