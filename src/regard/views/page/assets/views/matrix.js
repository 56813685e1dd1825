// Matrix: a heat map that computes what is on the screen. Far out, a pixel is the greatest weight of its block.

import { drawAxes, widestLabel } from "../axes.js";
import { paintWeights, readableOn, shadeOf, toneOf } from "../colours.js";
import { blankCanvas, fitCanvas, make, press } from "../elements.js";
import { gestures } from "../gestures.js";
import { say } from "../languages.js";
import { drawLegend, LEGEND_HEIGHT } from "../legend.js";
import { cellText } from "../numbers.js";
import { Readout } from "../readout.js";
import { oncePerFrame, Slices } from "../slices.js";
import { CanvasSurface } from "../surface.js";
import { thumbnailOf } from "../thumbnails.js";
import { TILE, Tiles } from "../tiles.js";
import { Viewport } from "../viewport.js";

const MOST_RECTANGLES = 4096;
const LONGEST_LABEL = 104;

export class MatrixView {
  constructor(app) {
    this.app = app;
    this.slices = new Slices();
    this.repaint = oncePerFrame(() => this.paint());
    this.pictures = new Map(); // tile → its colours, for the present ramp and scale
    this.pointer = null; // the pair under the pointer
    this.readout = new Readout(say("matrix.hint"));
    this.canvas = make("canvas", { class: "map", tabindex: "0", role: "img" });
    this.progress = make("div", { class: "progress", hidden: true });
    const tools = make("div", { class: "segments" },
      press("−", () => this.zoomBy(1 / 1.6), { class: null, "aria-label": say("matrix.out") }),
      press(say("matrix.fit"), () => app.state.set({ zoom: null }), { class: null }),
      press("+", () => this.zoomBy(1.6), { class: null, "aria-label": say("matrix.in") }));
    this.bar = make("div", { class: "view-bar" }, this.readout.root, tools);
    this.stage = make("div", { class: "map-stage" }, this.canvas, this.progress);
    this.root = make("section", { class: "view matrix" }, this.bar, this.stage);
    gestures(this.canvas, {
      zoom: (factor, x, y) => this.zoomBy(factor, x, y),
      pan: (dx, dy) => this.moveTo(this.viewport.panned(dx, dy)),
      point: (x, y) => this.point(x, y),
      leave: () => this.point(-1, -1),
      click: (x, y) => this.pin(x, y),
    });
    this.resized = new ResizeObserver(() => this.layout());
  }

  mounted() {
    this.resized.observe(this.stage);
  }

  destroy() {
    this.resized.disconnect();
    this.slices.stop();
  }

  ready() {
    return this.slices.idle();
  }

  update(now, changed) {
    const look = this.app.look();
    const fresh = look !== this.look || this.tiles.head !== now.head;
    if (fresh) {
      this.tiles = new Tiles(look, now.head);
      this.pointer = null;
      this.coarse = null;
    }
    if (fresh || !changed || ["scale", "palette", "theme"].some((name) => changed.has(name))) this.pictures.clear();
    this.look = look;
    this.canvas.setAttribute("aria-label", say("matrix.label", { queries: look.rows.count, keys: look.columns.count }));
    this.layout();
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
    const area = { left, top, width: width - left - this.space.top * 0.6, height: height - top - LEGEND_HEIGHT };
    this.viewport = new Viewport(rows.count, columns.count, area, this.app.state.now.zoom);
    this.tell(this.marked);
    this.repaint();
    this.refine();
  }

  /** How much room the labels need. */
  measure(width) {
    const label = (names) => Math.min(LONGEST_LABEL, width * 0.24, Math.max(widestLabel(names), widestLabel([String(names.length)])) + 1);
    this.space = { left: label(this.look.rowNames), top: label(this.look.columnNames) };
    this.spaced = this.look;
  }

  moveTo(viewport) {
    this.viewport = viewport;
    this.app.state.set({ zoom: viewport.zoom });
  }

  zoomBy(factor, x = this.size.width / 2, y = this.size.height / 2) {
    this.moveTo(this.viewport.zoomed(factor, x, y));
  }

  /** The level at which a cell of a tile is at least one pixel of the screen. */
  get level() {
    const finest = Math.min(this.viewport.cellWidth, this.viewport.cellHeight) * (window.devicePixelRatio || 1);
    return Math.max(0, Math.ceil(-Math.log2(finest) - 0.01));
  }

  /** The tiles in sight. */
  range(level) {
    const size = TILE * 2 ** level;
    const { top, bottom, left, right } = this.viewport.inSight;
    return { top: Math.floor(top / size), bottom: Math.ceil(bottom / size), left: Math.floor(left / size), right: Math.ceil(right / size) };
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
    this.tell(this.marked);
    this.repaint();
  }

  pin(x, y) {
    const pair = this.viewport.pairAt(x, y);
    const { state } = this.app;
    if (!pair) {
      state.set({ query: null, key: null });
      return;
    }
    const { row, column } = this.greatestAt(pair);
    const [query, key] = [this.look.rows.first[row], this.look.columns.first[column]];
    const same = state.now.query === query && state.now.key === key;
    state.set(same ? { query: null, key: null } : { query, key });
  }

  /** The greatest weight of the block that the pixel of a pair shows. */
  greatestAt({ row, column }) {
    const { look } = this;
    const step = 2 ** this.level;
    const [top, left] = [Math.floor(row / step) * step, Math.floor(column / step) * step];
    const [bottom, right] = [Math.min(top + step, look.rows.count), Math.min(left + step, look.columns.count)];
    const weights = look.weights(this.tiles.head, top, bottom, left, right);
    let at = 0;
    weights.forEach((weight, index) => {
      if (weight > weights[at]) at = index;
    });
    return { row: top + Math.floor(at / (right - left)), column: left + (at % (right - left)), weight: weights[at], count: weights.length };
  }

  /** The pair that the crosshair marks: under the pointer, else pinned. */
  get marked() {
    if (this.pointer) return this.greatestAt(this.pointer);
    const { now } = this.app.state;
    const [row, column] = [this.look.rowOf(now.query), this.look.columnOf(now.key)];
    if (row < 0 && column < 0) return null;
    const weight = row >= 0 && column >= 0 ? this.look.weights(this.tiles.head, row, row + 1, column, column + 1)[0] : 0;
    return { row, column, weight, count: 1 };
  }

  tell(marked) {
    if (!marked) {
      this.readout.clear();
      return;
    }
    const { look, tiles } = this;
    const removed = marked.row >= 0 ? look.removed(tiles.head)[marked.row] : 0;
    const note = marked.count > 1 ? say("matrix.greatest", { count: marked.count }) : "";
    this.readout.show(look, { ...marked, removed, note, masked: marked.weight === 0 && this.isMasked(marked) });
  }

  isMasked({ row, column }) {
    const { look } = this;
    if (row < 0 || column < 0) return false;
    const key = look.columns.first[column];
    return !look.call.allowed(this.tiles.head, look.rows.first[row]).some(([from, to]) => key >= from && key < to);
  }

  // ---- drawing ----------------------------------------------------------------------------------

  paint() {
    if (this.viewport) this.drawAll(new CanvasSurface(fitCanvas(this.canvas, this.size.width, this.size.height)));
  }

  drawAll(surface) {
    const { viewport, space, look } = this;
    const marked = this.marked;
    const { inks, state } = this.app;
    const { left, top, width, height } = viewport;
    surface.clip(left, top, width, height, () => {
      this.drawCells(surface);
      if (marked) this.drawCrosshair(surface, marked);
    });
    for (const [x, y] of [[0, 0], [width, height]]) {
      surface.line(left, top + y, left + width, top + y, inks.hair);
      surface.line(left + x, top, left + x, top + height, inks.hair);
    }
    drawAxes(surface, { viewport, space, inks, look, marked });
    drawLegend(surface, { x: left, y: top + height + 16, width: Math.min(220, width), inks, scale: state.now.scale });
  }

  drawCells(surface) {
    const { viewport, level } = this;
    const { top, bottom, left, right } = viewport.inSight;
    const pairs = (bottom - top) * (right - left);
    if (level === 0 && pairs <= MOST_RECTANGLES && (surface.vector || viewport.roomForValues)) {
      this.drawRectangles(surface);
      return;
    }
    if (this.look.plain) this.drawThumbnail(surface);
    const range = this.range(level);
    for (let down = range.top; down < range.bottom; down += 1) {
      for (let across = range.left; across < range.right; across += 1) {
        const tile = this.tiles.get(level, down, across);
        const size = TILE * 2 ** level;
        if (tile) this.drawImage(surface, this.pictureOf(tile), down * size, across * size, tile.rows * 2 ** level, tile.columns * 2 ** level);
      }
    }
  }

  /** Few cells: a rectangle and its value each. */
  drawRectangles(surface) {
    const { viewport, look } = this;
    const { inks } = this.app;
    const { scale } = this.app.state.now;
    const { top, bottom, left, right } = viewport.inSight;
    const weights = look.weights(this.tiles.head, top, bottom, left, right);
    const gap = viewport.cellWidth > 14 ? 1 : 0;
    for (let row = top; row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) {
        const weight = weights[(row - top) * (right - left) + column - left];
        if (!(weight > 0)) continue;
        const [x, y] = [viewport.x(column), viewport.y(row)];
        const tone = toneOf(weight, scale);
        surface.rect(x, y, viewport.cellWidth - gap, viewport.cellHeight - gap, shadeOf(inks.ramp, tone), { radius: gap * 2 });
        if (viewport.roomForValues && cellText(weight)) {
          surface.text(x + viewport.cellWidth / 2, y + viewport.cellHeight / 2, cellText(weight), { fill: readableOn(inks.ramp, tone), size: 11, anchor: "middle" });
        }
      }
    }
  }

  /** The coarse picture that came with the page, until the tiles are there. */
  drawThumbnail(surface) {
    this.coarse ??= thumbnailOf(this.look.call, this.tiles.head);
    const { rows, columns, down, across } = this.coarse;
    this.drawImage(surface, this.pictureOf(this.coarse), 0, 0, rows * down, columns * across);
  }

  drawImage(surface, picture, row, column, rows, columns) {
    const { viewport } = this;
    const [x, y] = [viewport.x(column), viewport.y(row)];
    const [right, bottom] = [viewport.x(column + columns), viewport.y(row + rows)];
    const snap = (value) => Math.round(value * (window.devicePixelRatio || 1)) / (window.devicePixelRatio || 1);
    const area = [snap(x), snap(y), snap(right) - snap(x), snap(bottom) - snap(y)];
    surface.rect(...area, this.app.inks.void); // what was drawn coarsely must not show through
    surface.image(picture, ...area);
  }

  pictureOf(tile) {
    if (!this.pictures.has(tile)) {
      const picture = blankCanvas(tile.columns, tile.rows);
      const context = picture.getContext("2d");
      const pixels = context.createImageData(tile.columns, tile.rows);
      paintWeights(pixels.data, tile.values, this.app.inks.ramp, this.app.state.now.scale);
      context.putImageData(pixels, 0, 0);
      this.pictures.set(tile, picture);
    }
    return this.pictures.get(tile);
  }

  drawCrosshair(surface, { row, column }) {
    const { viewport } = this;
    const { inks } = this.app;
    const { left, top, width, height } = viewport;
    const [x, y, opacity] = [viewport.x(column) - 0.5, viewport.y(row) - 0.5, 0.75];
    for (const at of row < 0 ? [] : [y, y + Math.max(1, viewport.cellHeight)]) surface.line(left, at, left + width, at, inks.accent, { opacity });
    for (const at of column < 0 ? [] : [x, x + Math.max(1, viewport.cellWidth)]) surface.line(at, top, at, top + height, inks.accent, { opacity });
  }

  // ---- export -----------------------------------------------------------------------------------

  pictureSize() {
    return this.size;
  }

  draw(surface) {
    this.drawAll(surface);
  }
}
