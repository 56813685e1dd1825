// Views draw on a surface, which is a canvas or an SVG document.

const FONT =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';

const SVG_SPACE = "http://www.w3.org/2000/svg";
// What XML 1.0 does not allow, even escaped: control characters, lone surrogates, two non-characters.
const NOT_XML =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Draws on a canvas context whose units are CSS pixels. */
export class CanvasSurface {
  constructor(context) {
    this.context = context;
    this.vector = false;
  }

  rect(x, y, width, height, fill, { opacity = 1, radius = 0 } = {}) {
    const { context } = this;
    context.globalAlpha = opacity;
    context.fillStyle = fill;
    if (radius) {
      context.beginPath();
      context.roundRect(x, y, width, height, radius);
      context.fill();
    } else context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
  }

  line(x1, y1, x2, y2, stroke, { width = 1, opacity = 1, dash = null } = {}) {
    this.stroked(stroke, width, opacity, dash, (context) => {
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
    });
  }

  /** A curve that is horizontal at both ends. */
  curve(x1, y1, x2, y2, stroke, { width = 1, opacity = 1, dash = null } = {}) {
    const bend = (x2 - x1) * 0.42;
    this.stroked(stroke, width, opacity, dash, (context) => {
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    });
  }

  stroked(stroke, width, opacity, dash, path) {
    const { context } = this;
    if (dash) context.setLineDash(dash);
    context.globalAlpha = opacity;
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.beginPath();
    path(context);
    context.stroke();
    if (dash) context.setLineDash([]);
    context.globalAlpha = 1;
  }

  text(x, y, text, { fill = "#000", size = 12, anchor = "start", weight = 400, turn = 0, limit = Infinity } = {}) {
    const { context } = this;
    context.save();
    context.translate(x, y);
    context.rotate((turn * Math.PI) / 180);
    context.font = `${weight} ${size}px ${FONT}`;
    context.fillStyle = fill;
    context.textBaseline = "middle";
    context.direction = "ltr";
    context.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
    context.fillText(shorten(text, limit, size, weight), 0, 0);
    context.restore();
  }

  /** Rectangles [x, y, width, height] filled with thin slanted lines. */
  hatch(rectangles, ink) {
    const { context } = this;
    context.save();
    context.beginPath();
    for (const rectangle of rectangles) context.rect(...rectangle);
    context.clip();
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.beginPath();
    for (const [x1, y1, x2, y2] of slants(rectangles)) {
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
    }
    context.stroke();
    context.restore();
  }

  image(canvas, x, y, width, height) {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(canvas, x, y, width, height);
  }

  clip(x, y, width, height, draw) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  }
}

/** Builds an SVG document with the same calls. */
export class SvgSurface {
  constructor(width, height) {
    this.vector = true;
    this.root = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT });
    this.into = this.root;
  }

  rect(x, y, width, height, fill, { opacity = 1, radius = 0 } = {}) {
    this.add("rect", { x, y, width, height, fill, opacity: faded(opacity), rx: radius || null });
  }

  line(x1, y1, x2, y2, stroke, { width = 1, opacity = 1, dash = null } = {}) {
    const dashes = dash ? dash.join(" ") : null;
    this.add("line", {
      x1,
      y1,
      x2,
      y2,
      stroke,
      "stroke-width": width,
      opacity: faded(opacity),
      "stroke-dasharray": dashes,
    });
  }

  curve(x1, y1, x2, y2, stroke, { width = 1, opacity = 1, dash = null } = {}) {
    const bend = (x2 - x1) * 0.42;
    const d = `M${brief(x1)} ${brief(y1)}C${brief(x1 + bend)} ${brief(y1)} ${brief(x2 - bend)} ${brief(y2)} ${brief(x2)} ${brief(y2)}`;
    const dashes = dash ? dash.join(" ") : null;
    this.add("path", {
      d,
      fill: "none",
      stroke,
      "stroke-width": width,
      opacity: faded(opacity),
      "stroke-dasharray": dashes,
    });
  }

  text(x, y, text, { fill = "#000", size = 12, anchor = "start", weight = 400, turn = 0, limit = Infinity } = {}) {
    const element = this.add("text", {
      x,
      y,
      fill,
      "font-size": size,
      "dominant-baseline": "central",
      "text-anchor": anchor === "start" ? null : anchor,
      "font-weight": weight === 400 ? null : weight,
      transform: turn ? `rotate(${turn} ${brief(x)} ${brief(y)})` : null,
    });
    element.textContent = shorten(text, limit, size, weight).replace(NOT_XML, "\ufffd");
  }

  hatch(rectangles, ink) {
    const id = `clip-${Math.random().toString(36).slice(2)}`;
    const area = svgElement("clipPath", { id });
    const d = rectangles.map((r) => `M${brief(r[0])} ${brief(r[1])}h${brief(r[2])}v${brief(r[3])}h${brief(-r[2])}z`);
    area.append(svgElement("path", { d: d.join("") }));
    this.into.append(area);
    const lines = slants(rectangles).map(([x1, y1, x2, y2]) => `M${brief(x1)} ${brief(y1)}L${brief(x2)} ${brief(y2)}`);
    this.add("path", { d: lines.join(""), stroke: ink, "stroke-width": 1, fill: "none", "clip-path": `url(#${id})` });
  }

  image(canvas, x, y, width, height) {
    const href = canvas.toDataURL("image/png");
    this.add("image", { href, x, y, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated" });
  }

  clip(x, y, width, height, draw) {
    // Several pictures may end up in one document, so their names must differ.
    const id = `clip-${Math.random().toString(36).slice(2)}`;
    const area = svgElement("clipPath", { id });
    area.append(svgElement("rect", { x, y, width, height }));
    const group = svgElement("g", { "clip-path": `url(#${id})` });
    this.into.append(area, group);
    const outer = this.into;
    this.into = group;
    draw();
    this.into = outer;
  }

  add(tag, attributes) {
    const element = svgElement(tag, attributes);
    this.into.append(element);
    return element;
  }

  toString() {
    return new XMLSerializer().serializeToString(this.root);
  }
}

const SLANT = 7; // pixels between two lines of a hatched area

/** Slanted lines over the box around some rectangles; they meet those of a neighbouring box. */
function slants(rectangles) {
  const left = Math.min(...rectangles.map(([x]) => x));
  const right = Math.max(...rectangles.map(([x, , width]) => x + width));
  const top = Math.min(...rectangles.map(([, y]) => y));
  const bottom = Math.max(...rectangles.map(([, y, , height]) => y + height));
  const lines = [];
  for (let at = Math.floor((left + top) / SLANT) * SLANT; at <= right + bottom; at += SLANT)
    lines.push([at - top, top, at - bottom, bottom]);
  return lines;
}

const measuring = { context: null };

/** The width of a text in pixels. */
export function textWidth(text, size, weight = 400) {
  measuring.context ??= document.createElement("canvas").getContext("2d");
  measuring.context.font = `${weight} ${size}px ${FONT}`;
  return measuring.context.measureText(text).width;
}

/** The text, or its beginning with an ellipsis where it is wider than the limit. */
export function shorten(text, limit, size, weight = 400) {
  if (limit === Infinity || textWidth(text, size, weight) <= limit) return text;
  const characters = Array.from(text);
  let [low, high] = [0, characters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${characters.slice(0, middle).join("")}…`, size, weight) <= limit) low = middle;
    else high = middle - 1;
  }
  return `${characters.slice(0, low).join("")}…`;
}

function svgElement(tag, attributes) {
  const element = document.createElementNS(SVG_SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, typeof value === "number" ? brief(value) : value);
  }
  return element;
}

function faded(opacity) {
  return opacity === 1 ? null : brief(opacity);
}

function brief(number) {
  return String(Math.round(number * 1000) / 1000);
}
