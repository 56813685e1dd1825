// The map itself: tiles on a canvas, a crosshair, margins, and moving about as on a street map.

import { drawAxes, widestLabel } from "../page/axes.js";
import { paintWeights, readableOn, shadeOf, toneOf } from "../page/colours.js";
import { blankCanvas, fitCanvas, make } from "../page/elements.js";
import { gestures } from "../page/gestures.js";
import { say } from "../page/languages.js";
import { drawLegend, LEGEND_HEIGHT } from "../page/legend.js";
import { cellText } from "../page/numbers.js";
import { CanvasSurface } from "../page/surface.js";
import { Viewport } from "../page/viewport.js";
import { getJson } from "./client.js";
import { drawMargins, MARGIN_DEPTH } from "./margins.js";
import { PairReadout } from "./readout.js";
import { TILE_SIDE } from "./sheet.js";

const LONGEST_NAME = 92;
const ASK_AFTER = 70;
const CLOSE_CELL = 18;

export class MapView {
  constructor(app) {
    this.app = app;
    this.pictures = new WeakMap();
    this.pointer = null; // the pair under the pointer
    this.peaks = new Map(); // what the server said of cells
    this.readout = new PairReadout();
    this.canvas = make("canvas", { class: "map", tabindex: "0", role: "img" });
    this.progress = make("div", { class: "progress", hidden: true });
    this.notice = make("div", { class: "map-notice", hidden: true });
    this.scale = make("div", { class: "map-scale", translate: "no" });
    const button = (text, label, act) => make("button", { type: "button", title: label, "aria-label": label, on: { click: act } }, text);
    const tools = make("div", { class: "zoom-tools" }, button("−", say("map.out"), () => this.zoomBy(0.5)),
      button(say("map.fit"), say("map.fit"), () => app.state.set({ zoom: null })), button("+", say("map.in"), () => this.zoomBy(2)));
    this.stage = make("div", { class: "map-stage" }, this.canvas, this.progress, this.notice, this.scale, tools);
    this.root = make("section", { class: "view map-view" }, this.stage);
    gestures(this.canvas, {
      zoom: (factor, x, y) => this.zoomBy(factor, x, y),
      pan: (dx, dy) => this.moveTo(this.viewport.panned(dx, dy)),
      point: (x, y) => this.point(x, y),
      leave: () => this.point(-1, -1),
      click: (x, y) => this.pin(x, y),
    });
    this.canvas.addEventListener("dblclick", (event) => this.zoomBy(4, event.offsetX, event.offsetY));
    this.resized = new ResizeObserver(() => this.layout());
  }

  mounted() {
    this.resized.observe(this.stage);
  }

  destroy() {
    this.resized.disconnect();
  }

  /** Resolves when every tile in sight is there. */
  async ready() {
    while (!this.app.sheet.idle) await new Promise((resolve) => setTimeout(resolve, 30));
  }

  update(now, changed) {
    if (!changed || ["call", "head", "sinks", "show"].some((name) => changed.has(name))) {
      this.pointer = null;
      this.peaks.clear();
    }
    if (!changed || ["scale", "palette", "theme", "show"].some((name) => changed.has(name))) this.pictures = new WeakMap();
    const { queries, keys } = this.app.state.call;
    this.canvas.setAttribute("aria-label", say("map.label", { queries, keys }));
    this.layout();
  }

  // ---- where ------------------------------------------------------------------------------------

  layout() {
    const [width, height] = [this.stage.clientWidth, this.stage.clientHeight];
    if (!this.root.isConnected || width < 40 || height < 40) return;
    const { call, now } = this.app.state;
    const small = width < 560;
    this.depth = small ? 22 : MARGIN_DEPTH;
    this.size = { width, height };
    const names = small ? Math.min(64, width * 0.18) : Math.min(LONGEST_NAME, width * 0.16);
    this.space = { left: Math.min(names, widest(this.app.queryTokens)), top: Math.min(names, widest(this.app.keyTokens)) };
    const [left, top] = [this.space.left + 14, this.space.top * 0.8 + 14];
    const area = { left, top, width: width - left - this.depth - 8, height: height - top - LEGEND_HEIGHT - this.depth - 4 };
    this.viewport = viewportAt(call.queries, call.keys, area, now.zoom);
    this.paint();
    this.refine();
  }

  moveTo(viewport) {
    this.viewport = viewport;
    this.app.state.set({ zoom: middleOf(viewport) });
  }

  zoomBy(factor, x = this.viewport.left + this.viewport.width / 2, y = this.viewport.top + this.viewport.height / 2) {
    this.moveTo(this.viewport.zoomed(factor, x, y));
  }

  pan(right, down) {
    const { width, height } = this.viewport;
    this.moveTo(this.viewport.panned(-right * width * 0.2, -down * height * 0.2));
  }

  /** Goes to a query, a key or both, close enough to read the tokens. */
  goTo(query, key) {
    const { viewport } = this;
    const cell = Math.max(CLOSE_CELL, viewport.cellWidth);
    const [row, column] = viewport.cellAt(viewport.left + viewport.width / 2, viewport.top + viewport.height / 2);
    this.app.state.set({ query: query ?? this.app.state.now.query, key: key ?? this.app.state.now.key, zoom: [query === null ? row : query + 0.5, key === null ? column : key + 0.5, cell] });
  }

  /** The level at which a cell of a tile is at least one pixel of the screen. */
  get level() {
    const finest = Math.min(this.viewport.cellWidth, this.viewport.cellHeight) * (window.devicePixelRatio || 1);
    return Math.min(this.app.sheet.coarsest, Math.max(0, Math.ceil(-Math.log2(finest) - 0.01)));
  }

  range(level) {
    const size = TILE_SIDE * 2 ** level;
    const { top, bottom, left, right } = this.viewport.inSight;
    return { top: Math.floor(top / size), bottom: Math.ceil(bottom / size), left: Math.floor(left / size), right: Math.ceil(right / size) };
  }

  /** Asks for the tiles in sight, the middle first. */
  refine() {
    const { level } = this;
    const { top, bottom, left, right } = this.range(level);
    const places = [];
    for (let row = top; row < bottom; row += 1) for (let column = left; column < right; column += 1) places.push([level, row, column]);
    const [middleRow, middleColumn] = [(top + bottom - 1) / 2, (left + right - 1) / 2];
    const far = ([, row, column]) => Math.hypot(row - middleRow, column - middleColumn);
    places.sort((one, other) => far(one) - far(other));
    this.app.sheet.want(places);
    this.progress.hidden = this.app.sheet.idle;
    const step = 2 ** level;
    this.scale.textContent = step === 1 ? `1 : 1 · ${say("map.exact")}` : say("map.level", { step: `${step} × ${step}` });
  }

  // ---- pointing ---------------------------------------------------------------------------------

  point(x, y) {
    this.pointer = this.viewport?.pairAt(x, y) ?? null;
    this.paint();
  }

  async pin(x, y) {
    const pair = this.viewport.pairAt(x, y);
    const { state } = this.app;
    if (!pair) {
      state.set({ query: null, key: null });
      return;
    }
    const found = await this.asked(pair);
    if (!found) return;
    const same = state.now.query === found.query && state.now.key === found.key;
    state.set(same ? { query: null, key: null } : { query: found.query, key: found.key });
  }

  /** What is known of the cell that shows a pair: exactly, from its tile, or as far as the server has said. */
  cellAt({ row, column }) {
    const { level } = this;
    if (level === 0) {
      const tile = this.app.sheet.get(0, Math.floor(row / TILE_SIDE), Math.floor(column / TILE_SIDE));
      const weight = tile ? tile.values[(row % TILE_SIDE) * tile.columns + (column % TILE_SIDE)] : null;
      return { query: row, key: column, weight, pairs: 1 };
    }
    const [down, across] = [row >> level, column >> level];
    const known = this.peaks.get(`${level}/${down}/${across}`);
    if (known && !(known instanceof Promise)) return known;
    return { query: row, key: column, weight: null, pairs: 1, waits: true };
  }

  /** The same, after the server has answered. */
  async asked(pair) {
    const { level } = this;
    const key = `${level}/${pair.row >> level}/${pair.column >> level}`;
    const { sheet } = this.app;
    if (!this.peaks.has(key)) {
      const path = `${sheet.path}/peaks/${sheet.call.index}/${sheet.head}/${key}?sinks=${sheet.sinks}`;
      this.peaks.set(key, getJson(path).then((found) => this.peaks.set(key, found) && found, () => this.peaks.delete(key) && null));
      if (this.peaks.size > 3000) this.peaks.delete(this.peaks.keys().next().value);
    }
    return this.peaks.get(key);
  }

  askSoon() {
    clearTimeout(this.asking);
    const { pointer } = this;
    this.asking = setTimeout(async () => {
      if (pointer && pointer === this.pointer && (await this.asked(pointer)) && pointer === this.pointer) this.paint();
    }, ASK_AFTER);
  }

  /** The pair that the crosshair marks: under the pointer, else pinned. */
  get marked() {
    if (this.pointer) {
      const found = this.cellAt(this.pointer);
      if (found.waits) this.askSoon();
      return found;
    }
    const { query, key } = this.app.state.now;
    if (query === null && key === null) return null;
    return { query: query ?? -1, key: key ?? -1, weight: this.app.pinnedWeight, pairs: 1 };
  }

  tell(marked) {
    if (!marked) {
      this.readout.clear();
      return;
    }
    const { margins, queryTokens, keyTokens } = this.app;
    this.readout.show({ ...marked, entropy: margins?.entropy[marked.query], received: margins?.received[marked.key] }, queryTokens, keyTokens);
  }

  // ---- drawing ----------------------------------------------------------------------------------

  paint() {
    if (!this.viewport) return;
    const surface = new CanvasSurface(fitCanvas(this.canvas, this.size.width, this.size.height));
    this.tell(this.drawAll(surface));
  }

  drawAll(surface) {
    const { viewport, space } = this;
    const { inks, state, margins, queryTokens, keyTokens } = this.app;
    const { left, top, width, height } = viewport;
    const marked = this.marked;
    surface.clip(left, top, width, height, () => {
      surface.rect(left, top, width, height, inks.void);
      this.drawTiles(surface);
      if (marked) this.drawCrosshair(surface, marked);
    });
    if (margins) {
      drawMargins(surface, { viewport, inks, ...margins, depth: this.depth });
      this.drawMatches(surface);
    }
    const at = marked ? { row: marked.query, column: marked.key } : null;
    drawAxes(surface, { viewport, space, inks, look: { rowNames: queryTokens, columnNames: keyTokens }, marked: at });
    drawLegend(surface, { x: left, y: this.size.height - LEGEND_HEIGHT + 14, width: Math.min(220, this.size.width * 0.42), inks, scale: state.now.scale });
    return marked;
  }

  drawTiles(surface) {
    const { level } = this;
    const { sheet } = this.app;
    if (level === 0 && this.viewport.roomForValues && this.drawRectangles(surface)) return;
    // What is there of coarser levels lies below, until the finer tiles have come.
    for (let at = sheet.coarsest; at >= level; at -= 1) {
      const { top, bottom, left, right } = this.range(at);
      for (let row = top; row < bottom; row += 1) {
        for (let column = left; column < right; column += 1) {
          const tile = sheet.get(at, row, column);
          const size = TILE_SIDE * 2 ** at;
          if (tile) this.drawPicture(surface, tile, row * size, column * size, 2 ** at);
        }
      }
    }
  }

  drawPicture(surface, tile, row, column, step) {
    const { viewport, app: { state: { call } } } = this;
    // The last cell of an axis may stand for fewer tokens than the others: it is drawn whole and cut by the edge.
    const [x, y] = [viewport.x(column), viewport.y(row)];
    const [right, bottom] = [viewport.x(column + tile.columns * step), viewport.y(row + tile.rows * step)];
    const density = window.devicePixelRatio || 1;
    const snap = (value) => Math.round(value * density) / density;
    if (row < call.queries && column < call.keys) surface.image(this.pictureOf(tile), snap(x), snap(y), snap(right) - snap(x), snap(bottom) - snap(y));
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

  /** Few cells: a rectangle and its value each. False where a tile is still on its way. */
  drawRectangles(surface) {
    const { viewport } = this;
    const { inks, sheet } = this.app;
    const { scale } = this.app.state.now;
    const { top, bottom, left, right } = viewport.inSight;
    const range = this.range(0);
    for (let row = range.top; row < range.bottom; row += 1) {
      for (let column = range.left; column < range.right; column += 1) if (!sheet.get(0, row, column)) return false;
    }
    for (let row = top; row < bottom; row += 1) {
      for (let column = left; column < right; column += 1) {
        const { weight } = this.cellAt({ row, column });
        if (!(weight > 0)) continue;
        const [x, y] = [viewport.x(column), viewport.y(row)];
        const tone = toneOf(weight, scale);
        surface.rect(x, y, viewport.cellWidth - 1, viewport.cellHeight - 1, shadeOf(inks.ramp, tone), { radius: 2 });
        surface.text(x + viewport.cellWidth / 2, y + viewport.cellHeight / 2, cellText(weight), { fill: readableOn(inks.ramp, tone), size: 11, anchor: "middle" });
      }
    }
    return true;
  }

  drawCrosshair(surface, { query, key }) {
    const { viewport } = this;
    const { inks } = this.app;
    const { left, top, width, height } = viewport;
    const [w, h] = [Math.max(1, viewport.cellWidth), Math.max(1, viewport.cellHeight)];
    const [x, y] = [viewport.x(key), viewport.y(query)];
    const lines = (at, size) => (size > 3 ? [at - 0.5, at + size - 0.5] : [at + size / 2]);
    if (query >= 0) for (const at of lines(y, h)) surface.line(left, at, left + width, at, inks.negative, { opacity: 0.8 });
    if (key >= 0) for (const at of lines(x, w)) surface.line(at, top, at, top + height, inks.negative, { opacity: 0.8 });
  }

  /** Where the searched text is, along its axis. */
  drawMatches(surface) {
    const { viewport } = this;
    const { inks, matches, state: { now: { side } } } = this.app;
    const { left, top, width, height } = viewport;
    for (const at of matches) {
      if (side === "key") {
        const x = viewport.x(at + 0.5);
        if (x >= left && x <= left + width) surface.line(x, top - 6, x, top, inks.negative, { width: 2 });
      } else {
        const y = viewport.y(at + 0.5);
        if (y >= top && y <= top + height) surface.line(left - 6, y, left, y, inks.negative, { width: 2 });
      }
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

/** The part in sight, from the pair in the middle and the size of a cell. */
export function viewportAt(rows, columns, area, zoom) {
  const all = new Viewport(rows, columns, area, null);
  if (!zoom) return all;
  const near = new Viewport(rows, columns, area, [0, 0, (zoom[2] / all.cellWidth) * all.magnification]);
  return near.moved(zoom[0] - near.height / near.cellHeight / 2, zoom[1] - near.width / near.cellWidth / 2);
}

/** What to keep to come back here, on a screen of any size; null when everything is in sight. */
export function middleOf(viewport) {
  if (viewport.zoom === null) return null;
  return [...viewport.cellAt(viewport.left + viewport.width / 2, viewport.top + viewport.height / 2), viewport.cellWidth];
}

/** Room for labels. A sample is enough: the few longest of many would only waste it. */
function widest(names) {
  const step = Math.max(1, Math.floor(names.length / 400));
  return Math.max(12, widestLabel(names.filter((_, at) => at % step === 0)));
}
