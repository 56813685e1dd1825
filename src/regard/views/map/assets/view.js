// The map itself: tiles on a canvas, a crosshair and margins. It moves and zooms like a street map.

import { drawAxes, LEAST_ROOM, widestLabel } from "/assets/page/axes.js";
import { make } from "/assets/page/elements.js";
import { say } from "/assets/page/languages.js";
import { captionPlan, drawCaption } from "/assets/page/legend.js";
import { isSigned, quantityKey } from "/assets/page/quantities.js";
import { Shading } from "/assets/page/shading.js";
import { middleFirst } from "/assets/page/tile_places.js";
import { TiledView } from "/assets/page/tiled_view.js";
import { Viewport } from "/assets/page/viewport.js";
import { getJson } from "./client.js";
import { drawMargins, MARGIN_DEPTH, MARGIN_NAME } from "./margins.js";
import { PairReadout } from "./readout.js";
import { TILE_SIDE } from "./tile_layer.js";

const LONGEST_NAME = 92;
const ASK_AFTER = 70;
const CLOSE_CELL = 18;
const NUMBERS_ABOVE = 26;
const TOOLS_WIDTH = 128; // of the buttons at the lower right
const SCALE_TEXT = 90; // and of the scale beside them, on a wide screen

export class MapView extends TiledView {
  constructor(app) {
    super(app, TILE_SIDE);
    this.space = null; // { left, top }: the room for labels
    this.depth = MARGIN_DEPTH; // of the margins
    this.legend = null; // what is below the map
    this.asking = 0; // the timer that asks the server
    this.peaks = new Map(); // what the server said about cells
    this.readout = new PairReadout();
    this.notice = make("div", { class: "map-notice", hidden: true });
    this.scale = make("div", { class: "map-scale", translate: "no" });
    const button = (text, label, act) =>
      make("button", { type: "button", title: label, "aria-label": label, on: { click: act } }, text);
    const tools = make(
      "div",
      { class: "zoom-tools" },
      button("−", say("map.out"), () => this.zoomBy(0.5)),
      button(say("map.fit"), say("map.fit"), () => app.state.set({ zoom: null })),
      button("+", say("map.in"), () => this.zoomBy(2)),
    );
    this.stage.append(this.notice, this.scale, tools);
    this.root = make("section", { class: "view map-view" }, this.stage);
    this.canvas.addEventListener("dblclick", (event) => this.zoomBy(4, event.offsetX, event.offsetY));
  }

  /** Resolves when every tile in sight is there. */
  async ready() {
    while (!this.app.layer.idle) await new Promise((resolve) => setTimeout(resolve, 30));
  }

  update(now, changed) {
    if (!changed || ["call", "head", "sinks", "show", "what"].some((name) => changed.has(name))) {
      this.pointer = null;
      this.peaks = new Map(); // an answer on its way still goes into the old one
    }
    if (!changed || ["scale", "palette", "theme", "show", "what"].some((name) => changed.has(name)))
      this.forgetPictures();
    const { recording } = this.app;
    const { queries, keys } = this.app.state.call;
    this.canvas.setAttribute(
      "aria-label",
      say("map.label", { what: say(quantityKey(recording, now.what)), queries, keys }),
    );
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
    const names = small ? Math.min(48, width * 0.14) : Math.min(LONGEST_NAME, width * 0.16);
    this.space = {
      left: Math.min(names, widest(this.app.queryTokens)),
      top: Math.min(names, widest(this.app.keyTokens)),
    };
    const left = this.space.left + 14;
    const across = width - left - this.depth - MARGIN_NAME;
    this.legend = captionPlan(call, left, width - TOOLS_WIDTH - (small ? 0 : SCALE_TEXT));
    // The whole of a long text has numbers above it, which need less room than tokens.
    const numbered = now.zoom === null && across / call.keys < LEAST_ROOM;
    const top = numbered ? NUMBERS_ABOVE : this.space.top * 0.8 + 14;
    const area = {
      left,
      top,
      width: across,
      height: height - top - this.legend.height - this.depth - 10,
      fills: true,
    };
    this.viewport = viewportAt(call.queries, call.keys, area, now.zoom);
    this.paint();
    this.refine();
  }

  /** Which number has which colour; the greatest is known when the levels are built, and is that of the head. */
  get shading() {
    const { inks, state, recording, layer } = this.app;
    const { scale, what } = state.now;
    if (what === "weight") return new Shading({ ramp: inks.ramp, scale, zeros: true });
    const signed = isSigned(recording, what);
    const ramp = signed ? inks.signed : inks.ramp;
    return new Shading({ ramp, scale, signed, greatest: layer.strongest, what, named: quantityKey(recording, what) });
  }

  zoomOf(viewport) {
    return middleOf(viewport);
  }

  pan(right, down) {
    const { width, height } = this.viewport;
    this.moveTo(this.viewport.panned(-right * width * 0.2, -down * height * 0.2));
  }

  /** Goes to a query, a key or both, close enough to read the tokens. */
  goTo(query, key) {
    const { viewport } = this;
    const cell = Math.max(CLOSE_CELL, viewport.cellSide);
    const [row, column] = viewport.cellAt(viewport.left + viewport.width / 2, viewport.top + viewport.height / 2);
    this.app.state.set({
      query: query ?? this.app.state.now.query,
      key: key ?? this.app.state.now.key,
      zoom: [query === null ? row : query + 0.5, key === null ? column : key + 0.5, cell],
    });
  }

  get coarsest() {
    return this.app.layer.coarsest;
  }

  /** Asks for the tiles in sight, the middle first. */
  refine() {
    const { level } = this;
    this.app.layer.want(middleFirst(this.range(level)).map((place) => [level, ...place]));
    this.progress.hidden = this.app.layer.idle;
    // What is said of the coarse levels stands aside where cells can be seen without them.
    this.notice.classList.toggle("aside", this.app.layer.has(level));
    const step = 2 ** level;
    this.scale.textContent =
      step === 1 ? `1 : 1 · ${say("map.exact")}` : say("map.level", { step: `${step} × ${step}` });
  }

  // ---- pointing ---------------------------------------------------------------------------------

  point(x, y) {
    this.pointer = this.viewport?.pairAt(x, y) ?? null;
    this.paint();
  }

  async pin(x, y) {
    const pair = this.viewport.pairAt(x, y);
    if (!pair) {
      this.unpin();
      return;
    }
    const found = await this.asked(pair);
    if (found) this.togglePinned(found.query, found.key);
  }

  /** What is known about the cell of a pair: its exact weight, or what the server has answered so far. */
  cellAt({ row, column }) {
    const { level } = this;
    if (level === 0) return { query: row, key: column, weight: this.valueAt(row, column), pairs: 1 };
    const [down, across] = [row >> level, column >> level];
    const known = this.peaks.get(`${level}/${down}/${across}`);
    if (known && !(known instanceof Promise)) return known;
    return { query: row, key: column, weight: null, pairs: 1, waits: true };
  }

  /** The same, after the server has answered. */
  async asked(pair) {
    const { level, peaks } = this;
    const key = `${level}/${pair.row >> level}/${pair.column >> level}`;
    const { layer } = this.app;
    if (!peaks.has(key)) {
      const path = `${layer.path}/peaks/${layer.call.index}/${layer.head}/${key}?${layer.chosen}`;
      peaks.set(
        key,
        getJson(path).then(
          ({ weight, ...place }) => {
            const found = { ...place, weight: weight ?? Number.NaN }; // masked
            peaks.set(key, found);
            return found;
          },
          () => peaks.delete(key) && null,
        ),
      );
      if (peaks.size > 3000) peaks.delete(peaks.keys().next().value);
    }
    return peaks.get(key);
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
    const { margins, queryTokens, keyTokens, recording } = this.app;
    const { what } = this.app.state.now;
    this.readout.show(
      {
        ...marked,
        what,
        named: quantityKey(recording, what),
        entropy: margins?.entropy[marked.query],
        received: margins?.received[marked.key],
      },
      queryTokens,
      keyTokens,
    );
  }

  // ---- drawing ----------------------------------------------------------------------------------

  paint() {
    if (!this.viewport) return;
    this.tell(this.drawAll(this.surface()));
  }

  drawAll(surface) {
    const { viewport, space } = this;
    const { inks, margins, queryTokens, keyTokens } = this.app;
    const { left, top, width, height } = viewport;
    const marked = this.marked;
    surface.clip(left, top, width, height, () => {
      surface.rect(left, top, width, height, inks.void);
      this.drawTiles(surface);
      if (marked) this.drawCrosshair(surface, marked.query, marked.key, { ink: inks.negative, opacity: 0.8, thin: 3 });
    });
    if (margins) {
      const names = { received: say("map.margin.received"), entropy: say("map.margin.entropy") };
      drawMargins(surface, { viewport, inks, ...margins, depth: this.depth, names });
      this.drawMatches(surface);
    }
    const at = marked ? { row: marked.query, column: marked.key } : null;
    drawAxes(surface, { viewport, space, inks, look: { rowNames: queryTokens, columnNames: keyTokens }, marked: at });
    this.drawCaption(surface);
    return marked;
  }

  drawCaption(surface) {
    const { inks } = this.app;
    const { width, height } = this.size;
    drawCaption(surface, {
      x: this.viewport.left,
      y: height - this.legend.height + 14,
      width,
      plan: this.legend,
      masked: this.tilesInSight.some((tile) => tile?.masked),
      inks,
      shading: this.shading,
    });
  }

  drawTiles(surface) {
    const { level } = this;
    if (level === 0 && this.viewport.roomForValues && this.isComplete(0)) {
      const masked = this.blankCells();
      if (masked.length) surface.hatch(masked, this.app.inks.hatch);
      this.drawRectangles(surface, (row, column) => this.valueAt(row, column));
      return;
    }
    // Coarser tiles are below, until the finer ones have arrived.
    for (let at = this.coarsest; at >= level; at -= 1) this.drawLevel(surface, at);
  }

  tileAt(level, down, across) {
    return this.app.layer.get(level, down, across);
  }

  /** Masked cells are transparent. */
  drawBelow(surface, tile, rectangle) {
    if (tile.masked) surface.hatch([rectangle], this.app.inks.hatch);
  }

  /** The number of a pair, from the tiles of the finest level; null if its tile is not there. */
  valueAt(row, column) {
    const tile = this.tileAt(0, Math.floor(row / TILE_SIDE), Math.floor(column / TILE_SIDE));
    return tile ? tile.values[(row % TILE_SIDE) * tile.columns + (column % TILE_SIDE)] : null;
  }

  /** The cells in sight that have nothing to show, in pixels: neighbours of a row together. */
  blankCells() {
    const { viewport } = this;
    const { top, bottom, left, right } = viewport.inSight;
    const found = [];
    for (let row = top; row < bottom; row += 1) {
      let from = left;
      for (let column = left; column <= right; column += 1) {
        if (column < right && Number.isNaN(this.valueAt(row, column))) continue;
        if (column > from)
          found.push([viewport.x(from), viewport.y(row), (column - from) * viewport.cellWidth, viewport.cellHeight]);
        from = column + 1;
      }
    }
    return found;
  }

  /** The tiles of the present level that are in sight; undefined for those that have not arrived. */
  get tilesInSight() {
    const { level } = this;
    return middleFirst(this.range(level)).map(([down, across]) => this.tileAt(level, down, across));
  }

  /** Whether every tile in sight has arrived. */
  isComplete(level) {
    return middleFirst(this.range(level)).every((place) => this.tileAt(level, ...place));
  }

  /** Where the searched text is, along its axis. */
  drawMatches(surface) {
    const { viewport } = this;
    const {
      inks,
      matches,
      state: {
        now: { side },
      },
    } = this.app;
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
}

/** The part in sight, from the pair in the middle and the size of a cell. */
export function viewportAt(rows, columns, area, zoom) {
  const all = new Viewport(rows, columns, area, null);
  if (!zoom) return all;
  const near = new Viewport(rows, columns, area, [0, 0, zoom[2] / all.cellSide]);
  return near.moved(zoom[0] - near.height / near.cellHeight / 2, zoom[1] - near.width / near.cellWidth / 2);
}

/** What restores this viewport on a screen of any size; null when everything is in sight. */
export function middleOf(viewport) {
  if (viewport.zoom === null) return null;
  return [
    ...viewport.cellAt(viewport.left + viewport.width / 2, viewport.top + viewport.height / 2),
    viewport.cellSide,
  ];
}

/** Room for labels. A sample is enough: making room for the few longest would only waste it. */
function widest(names) {
  const step = Math.max(1, Math.floor(names.length / 400));
  return Math.max(12, widestLabel(names.filter((_, at) => at % step === 0)));
}
