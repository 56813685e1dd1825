// Matrix: a heat map that computes what is on the screen. Far out, a pixel is the greatest weight of its block.

import { paintWeights, readableOn, shadeOf, toneOf } from "../colours.js";
import { blankCanvas, fitCanvas, make } from "../elements.js";
import { gestures } from "../gestures.js";
import { say } from "../languages.js";
import { cellText } from "../numbers.js";
import { Readout } from "../readout.js";
import { Slices } from "../slices.js";
import { CanvasSurface, textWidth } from "../surface.js";
import { thumbnailOf } from "../thumbnails.js";
import { TILE, Tiles } from "../tiles.js";
import { Viewport } from "../viewport.js";
import { drawAxes, LABEL_SIZE } from "../axes.js";
import { drawLegend, LEGEND_HEIGHT } from "../legend.js";

const MOST_RECTANGLES = 4096;
const LONGEST_LABEL = 132;

export class MatrixView {
  constructor(app) {
    this.app = app;
    this.slices = new Slices();
    this.pictures = new Map(); // tile → its colours, for the present ramp and scale
    this.pointer = null; // the pair under the pointer
    this.readout = new Readout(say("matrix.hint"));
    this.canvas = make("canvas", { class: "map", tabindex: "0", role: "img" });
    this.progress = make("div", { class: "progress", hidden: true });
    const button = (text, label, act) => make("button", { type: "button", "aria-label": label, on: { click: act } }, text);
    const tools = make("div", { class: "tools segments" },
      button("−", say("matrix.out"), () => this.zoomBy(1 / 1.6)),
      button(say("matrix.fit"), say("matrix.fit"), () => app.state.set({ zoom: null })),
      button("+", say("matrix.in"), () => this.zoomBy(1.6)));
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
    this.size = { width, height };
    const { rowNames, columnNames } = this.look;
    const most = Math.min(LONGEST_LABEL, width * 0.24);
    const above = Math.min(most, widest(columnNames));
    this.margin = { left: Math.min(most, widest(rowNames)) + 14, top: above * 0.8 + 16, right: above * 0.6, bottom: LEGEND_HEIGHT };
    this.viewport = new Viewport(this.look.rows.count, this.look.columns.count,
      { width: width - this.margin.left - this.margin.right, height: height - this.margin.top - this.margin.bottom }, this.app.state.now.zoom);
    this.margin.left += this.viewport.slack / 2; // a small matrix stands in the middle
    this.paint();
    this.refine();
  }

  moveTo(viewport) {
    this.viewport = viewport;
    this.app.state.set({ zoom: viewport.zoom });
  }

  zoomBy(factor, x = this.size.width / 2, y = this.size.height / 2) {
    this.moveTo(this.viewport.zoomed(factor, x - this.margin.left, y - this.margin.top));
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
      this.paint();
    });
  }

  // ---- pointing ---------------------------------------------------------------------------------

  point(x, y) {
    this.pointer = this.viewport.pairAt(x - this.margin.left, y - this.margin.top);
    this.paint();
  }

  pin(x, y) {
    const pair = this.viewport.pairAt(x - this.margin.left, y - this.margin.top);
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
    if (!this.viewport) return;
    const surface = new CanvasSurface(fitCanvas(this.canvas, this.size.width, this.size.height));
    this.tell(this.drawAll(surface));
  }

  drawAll(surface) {
    const { viewport, margin, look } = this;
    const { inks } = this.app;
    const marked = this.marked;
    const { width, height } = viewport.shown;
    surface.clip(margin.left, margin.top, width, height, () => {
      surface.rect(margin.left, margin.top, width, height, inks.void);
      this.drawCells(surface);
      if (marked) this.drawCrosshair(surface, marked);
    });
    for (const [x, y, right, bottom] of [[0, 0, width, 0], [0, height, width, height], [0, 0, 0, height], [width, 0, width, height]]) {
      surface.line(margin.left + x, margin.top + y, margin.left + right, margin.top + bottom, inks.hair);
    }
    drawAxes(surface, { viewport, margin, inks, look, marked });
    drawLegend(surface, { x: margin.left, y: margin.top + height + 16, width: Math.min(220, width), inks, scale: this.app.state.now.scale });
    return marked;
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
    const { viewport, margin, look } = this;
    const { inks } = this.app;
    const { scale } = this.app.state.now;
    const { top, bottom, left, right } = viewport.inSight;
    const weights = look.weights(this.tiles.head, top, bottom, left, right);
    const gap = viewport.cellWidth > 14 ? 1 : 0;
    for (let row = top; row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) {
        const weight = weights[(row - top) * (right - left) + column - left];
        if (!(weight > 0)) continue;
        const [x, y] = [margin.left + viewport.x(column), margin.top + viewport.y(row)];
        const tone = toneOf(weight, scale);
        surface.rect(x, y, viewport.cellWidth - gap, viewport.cellHeight - gap, shadeOf(inks.ramp, tone), { radius: gap * 2 });
        if (viewport.roomForValues) {
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
    const { viewport, margin } = this;
    const [x, y] = [margin.left + viewport.x(column), margin.top + viewport.y(row)];
    const [right, bottom] = [margin.left + viewport.x(column + columns), margin.top + viewport.y(row + rows)];
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
    const { viewport, margin } = this;
    const { inks } = this.app;
    const { width, height } = viewport.shown;
    const [w, h] = [Math.max(1, viewport.cellWidth), Math.max(1, viewport.cellHeight)];
    const [x, y] = [margin.left + viewport.x(column), margin.top + viewport.y(row)];
    if (row >= 0) {
      for (const at of [y - 0.5, y + h - 0.5]) surface.line(margin.left, at, margin.left + width, at, inks.accent, { opacity: 0.75 });
    }
    if (column >= 0) {
      for (const at of [x - 0.5, x + w - 0.5]) surface.line(at, margin.top, at, margin.top + height, inks.accent, { opacity: 0.75 });
    }
  }

  // ---- export -----------------------------------------------------------------------------------

  pictureSize() {
    return this.size;
  }

  draw(surface) {
    this.drawAll(surface);
  }
}

/** The width that labels need: the longest names, or the numbers of positions. */
function widest(names) {
  const longest = [...new Set(names)].sort((a, b) => b.length - a.length).slice(0, 12);
  return Math.max(textWidth(String(names.length), LABEL_SIZE), ...longest.map((name) => textWidth(name, LABEL_SIZE)));
}
