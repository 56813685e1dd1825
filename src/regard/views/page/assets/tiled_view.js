// A matrix of weights drawn in tiles, which can be zoomed, moved and pointed at. The matrix of the page and the map
// of the app are such views; they differ in where tiles come from and in what is around them.

import { blankCanvas, fitCanvas, make } from "./elements.js";
import { gestures } from "./gestures.js";
import { cellText, valueText } from "./numbers.js";
import { Shading } from "./shading.js";
import { CanvasSurface } from "./surface.js";
import { levelFor, middleFirst, tileRange } from "./tile_places.js";

/**
 * @typedef {import("./viewport.js").Viewport} Viewport
 * @typedef {{ rows: number, columns: number, values: Float32Array }} Tile
 */

const WIDE_CELL = 52; // pixels, enough for the text of any number

/** What both views share. The methods below "what a view adds" are written by each of them. */
export class TiledView {
  /**
   * @param {any} app what the parts of a page share: its state and its inks
   * @param {number} side cells along a tile
   */
  constructor(app, side) {
    this.app = app;
    this.side = side;
    /** @type {Viewport | null} */
    this.viewport = null;
    /** @type {{ width: number, height: number } | null} the canvas, in CSS pixels */
    this.size = null;
    /** @type {{ row: number, column: number } | null} the pair under the pointer */
    this.pointer = null;
    /** @type {WeakMap<Tile, HTMLCanvasElement>} a tile in the current ramp and scale */
    this.pictures = new WeakMap();
    this.canvas = make("canvas", { class: "map", tabindex: "0", role: "img" });
    this.progress = make("div", { class: "progress", hidden: true });
    this.stage = make("div", { class: "map-stage" }, this.canvas, this.progress);
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
  }

  // ---- what a view adds -------------------------------------------------------------------------

  /** Makes `size` and `viewport`, and draws. */
  layout() {}

  /**
   * The pointer is at (x, y).
   * @param {number} x
   * @param {number} y
   */
  point(x, y) {}

  /**
   * A click at (x, y).
   * @param {number} x
   * @param {number} y
   * @returns {void | Promise<void>}
   */
  pin(x, y) {}

  /**
   * Draws everything.
   * @param {any} surface
   * @returns {any}
   */
  drawAll(surface) {}

  /**
   * A tile, if it is there.
   * @param {number} level
   * @param {number} down
   * @param {number} across
   * @returns {Tile | undefined}
   */
  tileAt(level, down, across) {
    return undefined;
  }

  /** Draws what shows through where a tile has nothing to show. */
  drawBelow(surface, tile, rectangle) {}

  /** Which number has which colour. */
  get shading() {
    const { inks, state } = this.app;
    return new Shading({ ramp: inks.ramp, scale: state.now.scale });
  }

  /**
   * What the state keeps of a viewport.
   * @param {Viewport} viewport
   * @returns {number[] | null}
   */
  zoomOf(viewport) {
    return viewport.zoom;
  }

  // ---- where ------------------------------------------------------------------------------------

  /** @param {Viewport} viewport */
  moveTo(viewport) {
    this.viewport = viewport;
    this.app.state.set({ zoom: this.zoomOf(viewport) });
  }

  /** Zooms so that the point (x, y) stays where it is; by default the middle of what is in sight. */
  zoomBy(factor, x = this.viewport.left + this.viewport.width / 2, y = this.viewport.top + this.viewport.height / 2) {
    this.moveTo(this.viewport.zoomed(factor, x, y));
  }

  /** The coarsest level that has tiles. */
  get coarsest() {
    return Infinity;
  }

  /** The level whose tiles are drawn at this zoom. */
  get level() {
    return levelFor(this.viewport.cellSide * (window.devicePixelRatio || 1), this.coarsest);
  }

  /** The tiles in sight. */
  range(level) {
    return tileRange(this.viewport.inSight, level, this.side);
  }

  // ---- pinning ----------------------------------------------------------------------------------

  unpin() {
    this.app.state.set({ query: null, key: null });
  }

  /** Pins a pair; unpins it if it is pinned already. */
  togglePinned(query, key) {
    const { state } = this.app;
    if (state.now.query === query && state.now.key === key) this.unpin();
    else state.set({ query, key });
  }

  // ---- drawing ----------------------------------------------------------------------------------

  /** The canvas as an empty surface of the right size. */
  surface() {
    return new CanvasSurface(fitCanvas(this.canvas, this.size.width, this.size.height));
  }

  forgetPictures() {
    this.pictures = new WeakMap();
  }

  /** Draws the tiles of a level that are there. */
  drawLevel(surface, level) {
    const step = 2 ** level;
    const size = this.side * step;
    for (const [down, across] of middleFirst(this.range(level))) {
      const tile = this.tileAt(level, down, across);
      if (tile) this.drawPicture(surface, tile, down * size, across * size, step, step);
    }
  }

  /**
   * Draws a tile whose first cell is at (row, column); each of its cells is `down` × `across` pairs.
   * @param {any} surface
   * @param {Tile} tile
   * @param {number} row
   * @param {number} column
   * @param {number} down
   * @param {number} across
   */
  drawPicture(surface, tile, row, column, down, across) {
    const { viewport } = this;
    const density = window.devicePixelRatio || 1;
    const snap = (value) => Math.round(value * density) / density;
    const [x, y] = [snap(viewport.x(column)), snap(viewport.y(row))];
    const [right, bottom] = [
      snap(viewport.x(column + tile.columns * across)),
      snap(viewport.y(row + tile.rows * down)),
    ];
    surface.rect(x, y, right - x, bottom - y, this.app.inks.void); // hides what was drawn coarsely
    this.drawBelow(surface, tile, [x, y, right - x, bottom - y]);
    surface.image(this.pictureOf(tile), x, y, right - x, bottom - y);
  }

  /**
   * The colours of a tile.
   * @param {Tile} tile
   */
  pictureOf(tile) {
    if (!this.pictures.has(tile)) {
      const picture = blankCanvas(tile.columns, tile.rows);
      const context = picture.getContext("2d");
      const pixels = context.createImageData(tile.columns, tile.rows);
      this.shading.paint(pixels.data, tile.values);
      context.putImageData(pixels, 0, 0);
      this.pictures.set(tile, picture);
    }
    return this.pictures.get(tile);
  }

  /**
   * Few cells: a rectangle for each, with its value where there is room.
   * @param {any} surface
   * @param {(row: number, column: number) => number} weightAt
   */
  drawRectangles(surface, weightAt) {
    const { viewport } = this;
    const { shading } = this;
    const { top, bottom, left, right } = viewport.inSight;
    const { cellWidth, cellHeight } = viewport;
    const gap = cellWidth > 14 ? 1 : 0;
    const textOf = shading.what === "weight" ? cellText : cellWidth >= WIDE_CELL ? valueText : () => "";
    for (let row = top; row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) {
        const weight = weightAt(row, column);
        const place = weight === null ? -1 : shading.place(weight);
        if (place < 0) continue;
        const [x, y] = [viewport.x(column), viewport.y(row)];
        surface.rect(x, y, cellWidth - gap, cellHeight - gap, shading.colour(place), { radius: gap * 2 });
        if (viewport.roomForValues && textOf(weight)) {
          surface.text(x + cellWidth / 2, y + cellHeight / 2, textOf(weight), {
            fill: shading.ink(place),
            size: 11,
            anchor: "middle",
          });
        }
      }
    }
  }

  /** Lines around a row and a column (−1 means none); one line in the middle of cells that are at most `thin` pixels. */
  drawCrosshair(surface, row, column, { ink, opacity, thin = 0 }) {
    const { viewport } = this;
    const { left, top, width, height } = viewport;
    const lines = (at, size) => (size > thin ? [at - 0.5, at + size - 0.5] : [at + size / 2]);
    if (row >= 0) {
      for (const y of lines(viewport.y(row), Math.max(1, viewport.cellHeight)))
        surface.line(left, y, left + width, y, ink, { opacity });
    }
    if (column >= 0) {
      for (const x of lines(viewport.x(column), Math.max(1, viewport.cellWidth)))
        surface.line(x, top, x, top + height, ink, { opacity });
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
