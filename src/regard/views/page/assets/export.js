// The current view as a file: the view draws itself on another surface.

import { blankCanvas, make } from "./elements.js";
import { say } from "./languages.js";
import { CanvasSurface, SvgSurface } from "./surface.js";

const PAPER_MARGIN = 24;
const PAPER_HEAD = 30;
const PNG_DENSITY = 2;
const MOST_PIXELS = 16000;

/** The view as the text of an SVG document. */
export async function exportSvg(app) {
  await Promise.all(panesOf(app).map(({ view }) => view.ready?.()));
  const { width, height } = paperSize(app);
  const surface = new SvgSurface(width, height);
  drawPaper(surface, app, width, height);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${surface}`;
}

/** The view as a PNG, twice as dense as the screen's pixels. */
export async function exportPng(app) {
  await Promise.all(panesOf(app).map(({ view }) => view.ready?.()));
  const { width, height } = paperSize(app);
  const density = Math.min(PNG_DENSITY, MOST_PIXELS / Math.max(width, height));
  const canvas = blankCanvas(Math.round(width * density), Math.round(height * density));
  const context = canvas.getContext("2d");
  context.scale(density, density);
  drawPaper(new CanvasSurface(context), app, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Gives a file to the user. */
export function download(content, type, name) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A file name from what is shown: regard-matrix-layer-3-head-5.svg. */
export function exportName({ state }, ending) {
  const { view, head } = state.now;
  const where = ["overview", "heads"].includes(view) ? "" : `-layer-${state.call.layer}-head-${state.call.heads[head]}`;
  return `regard-${view}${where}.${ending}`;
}

function paperSize(app) {
  const sizes = panesOf(app).map(({ view }) => view.pictureSize());
  const width = sizes.reduce((sum, size) => sum + Math.ceil(size.width) + PAPER_MARGIN, PAPER_MARGIN);
  const height = Math.max(...sizes.map((size) => Math.ceil(size.height)));
  return { width, height: height + 2 * PAPER_MARGIN + PAPER_HEAD };
}

/** The view below one line that says what it is, with room around; two panes are beside each other. */
function drawPaper(surface, app, width, height) {
  surface.rect(0, 0, width, height, app.inks.paper);
  let left = PAPER_MARGIN;
  for (const pane of panesOf(app)) {
    const across = Math.ceil(pane.view.pictureSize().width);
    surface.text(left, PAPER_MARGIN + 4, paperTitle(pane, app), { fill: app.inks.soft, size: 12, limit: across });
    pane.view.draw(new Shifted(surface, left, PAPER_MARGIN + PAPER_HEAD));
    left += across + PAPER_MARGIN;
  }
}

/** What a pane shows, in a line. */
function paperTitle({ state, recording }, { comparison }) {
  const { view, what } = state.now;
  const sides =
    comparison && what === "difference" ? [recording.other.side, recording.side].join(" − ") : recording.side;
  const name = sides ?? (recording.title || recording.model);
  const where = ["overview", "heads"].includes(view)
    ? say(`view.${view}`)
    : `${say("overview.kind", { kind: say(`kind.${state.call.kind}`) })} · ${say("layer.n", { layer: state.call.layer })} · ${headsSaid(state)}`;
  return `${name}  ·  ${where}`;
}

function headsSaid({ now, call }) {
  const heads = now.view === "lines" ? (now.heads ?? call.heads.map((_, head) => head)) : [now.head];
  return say("head.n", { head: heads.map((head) => call.heads[head]).join(", ") });
}

/** A surface moved right and down. */
class Shifted {
  constructor(surface, right, down) {
    this.vector = surface.vector;
    const move =
      (name) =>
      (x, y, ...rest) =>
        surface[name](x + right, y + down, ...rest);
    const move2 =
      (name) =>
      (x1, y1, x2, y2, ...rest) =>
        surface[name](x1 + right, y1 + down, x2 + right, y2 + down, ...rest);
    Object.assign(this, {
      rect: move("rect"),
      text: move("text"),
      clip: move("clip"),
      line: move2("line"),
      curve: move2("curve"),
    });
    this.hatch = (rectangles, ink) =>
      surface.hatch(
        rectangles.map(([x, y, ...rest]) => [x + right, y + down, ...rest]),
        ink,
      );
    this.image = (canvas, x, y, ...rest) => surface.image(canvas, x + right, y + down, ...rest);
  }
}

/** What is drawn: the panes of a page, or the map. */
function panesOf(app) {
  return app.panes ?? [app];
}
