// The drawing of encoder and decoder. Every block is a button.

import { say } from "../../page/assets/languages.js";
import { drawn, redraw } from "./drawing.js";

const STEP = 52;
const BLOCK = { width: 196, height: 38 };
const COLUMNS = { encoder: 146, decoder: 434 };
const BOTTOM = 850;
const DIAGRAM_WIDTH = 580;
const SUBLAYERS = new Set(["attention", "masked", "cross", "feed_forward"]);

/** The blocks of a column, from the bottom to the top; those of a layer are between "layer" and "end". */
function columnBlocks(stack, side, sublayers, { norm, embedding_norm: embeddingNorm, projected }) {
  const inLayer = (name) =>
    norm === "pre" ? [`${name}_norm`, name, `${name}_add`] : [name, `${name}_add`, `${name}_norm`];
  return [
    ...["tokens", "embedding", "positions", ...(embeddingNorm ? ["norm"] : [])].map((name) => `${side}.${name}`),
    "layer",
    ...sublayers.flatMap(inLayer).map((name) => `${stack}.${name}`),
    "end",
    ...(norm === "pre" ? [`${stack}.norm`] : []),
    ...(projected ? [`${stack}.projection`, `${stack}.projection_norm`] : []),
  ];
}

const encoderBlocks = ({ encoder }) => columnBlocks("encoder", "source", ["attention", "feed_forward"], encoder);

const decoderBlocks = ({ decoder }) => [
  ...columnBlocks("decoder", "target", ["attention", "cross", "feed_forward"], decoder),
  "output.logits",
  "output.softmax",
];

/** All blocks in the order in which a sentence meets them. */
export function blockOrder(kinds) {
  return [...encoderBlocks(kinds), ...decoderBlocks(kinds)].filter((name) => name.includes("."));
}

/** What a block is: "norm", "add", "attention", "masked", "cross", "feed_forward" and so on. */
export function blockKind(name) {
  if (name.endsWith("norm")) return "norm";
  if (name.endsWith("_add")) return "add";
  if (name === "encoder.attention") return "attention";
  if (name === "decoder.attention") return "masked";
  return name.split(".")[1];
}

/** Which side of the model a block is on: "source" or "target". */
export function blockSide(name) {
  return name.startsWith("source") || name.startsWith("encoder") ? "source" : "target";
}

export class TransformerDiagram {
  constructor({ sizes, kinds }, choose) {
    this.choose = choose;
    this.kinds = kinds;
    this.buttons = new Map();
    /** The middle of every block. */
    this.places = new Map();
    this.lines = [];
    this.frames = [];
    const columns = [
      this.column("encoder", encoderBlocks(kinds), sizes.encoder_layers),
      this.column("decoder", decoderBlocks(kinds), sizes.decoder_layers),
    ];
    this.top = Math.min(...[...this.places.values()].map(([, y]) => y)) - 64;
    this.crossing();
    this.root = drawn(
      "svg",
      {
        class: "diagram",
        viewBox: `0 ${this.top} ${DIAGRAM_WIDTH} ${BOTTOM - this.top + 30}`,
        role: "group",
        "aria-label": say("transformer.diagram"),
      },
      drawn(
        "defs",
        {},
        drawn(
          "marker",
          {
            id: "tip",
            viewBox: "0 0 8 8",
            refX: 7,
            refY: 4,
            markerWidth: 7,
            markerHeight: 7,
            orient: "auto-start-reverse",
          },
          drawn("path", { d: "M0 0L8 4L0 8z" }),
        ),
      ),
      ...this.frames,
      ...this.lines,
      ...columns.flat(),
      ...["source", "target"].map((side, at) =>
        drawn(
          "text",
          { class: "stack-name", x: Object.values(COLUMNS)[at], y: this.top + 26, "text-anchor": "middle" },
          say(`transformer.side.${side}`),
        ),
      ),
    );
  }

  column(stack, names, layers) {
    const x = COLUMNS[stack];
    let y = BOTTOM - 24;
    let [below, entry] = [null, null];
    let from = y;
    let sum = y;
    const found = [];
    for (const name of names) {
      if (name === "layer") {
        from = y + STEP - BLOCK.height / 2 - 8;
        y -= 14;
        continue;
      }
      if (name === "end") {
        this.frame(stack, x, y + STEP / 2 - 4, from, sum, layers);
        y -= 14;
        continue;
      }
      const kind = blockKind(name);
      this.places.set(name, [x, y]);
      if (below) this.arrow(x, below, y);
      // The residual path leaves the stream below the first block of a sublayer and comes back at the sum.
      const first = this.kinds[stack].norm === "pre" ? name.endsWith("_norm") : SUBLAYERS.has(kind);
      if (first) entry = y + STEP / 2 + 2;
      if (kind === "add") {
        this.residual(x, entry, y);
        sum = y;
      }
      found.push(this.block(name, kind, x, y));
      below = [y, kind];
      y -= STEP;
    }
    return found;
  }

  arrow(x, [y, kind], next) {
    const half = kind === "add" ? 15 : BLOCK.height / 2;
    this.lines.push(
      drawn("line", {
        class: "flow",
        x1: x,
        x2: x,
        y1: y - half,
        y2: next + BLOCK.height / 2 + 2,
        "marker-end": "url(#tip)",
      }),
    );
  }

  residual(x, from, to) {
    const left = x - BLOCK.width / 2 - 16;
    const d = `M${x} ${from}H${left + 10}Q${left} ${from} ${left} ${from - 10}V${to + 10}Q${left} ${to} ${left + 10} ${to}H${x - 17}`;
    this.lines.push(drawn("path", { class: "flow residual", d, "marker-end": "url(#tip)" }));
  }

  /** The frame of a layer; how often it is repeated is said beside its last sum, where there is room. */
  frame(stack, x, top, bottom, sum, layers) {
    const width = BLOCK.width + 64;
    this.frames.push(
      drawn("rect", {
        class: `layer-frame ${stack}`,
        x: x - width / 2 - 6,
        y: top,
        width,
        height: bottom - top,
        rx: 16,
      }),
      drawn("text", { class: "layer-name", x: x + width / 2 - 16, y: sum - 6, "text-anchor": "end" }, `× ${layers}`),
    );
  }

  /** From the encoder's output to the keys and values of cross-attention. */
  crossing() {
    const [x, y] = this.places.get(encoderBlocks(this.kinds).findLast((name) => name.includes(".")));
    const [tx, ty] = this.places.get("decoder.cross");
    const start = y - BLOCK.height / 2;
    const middle = (x + tx) / 2 - 6;
    const d = `M${x} ${start}V${start - 14}H${middle}V${ty}H${tx - BLOCK.width / 2 - 3}`;
    this.lines.push(drawn("path", { class: "flow crossing", d, "marker-end": "url(#tip)" }));
  }

  block(name, kind, x, y) {
    const choose = () => this.choose(name);
    const label = say(`transformer.kind.${kind}.short`);
    const round = kind === "add";
    const shape = round
      ? drawn("circle", { cx: x, cy: y, r: 15 })
      : drawn("rect", {
          x: x - BLOCK.width / 2,
          y: y - BLOCK.height / 2,
          width: BLOCK.width,
          height: BLOCK.height,
          rx: 9,
        });
    const button = drawn(
      "g",
      {
        class: `block ${kind}`,
        role: "button",
        tabindex: 0,
        "aria-label": blockLabel(name, this.kinds),
        "aria-pressed": "false",
        on: {
          click: choose,
          keydown: (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            choose();
          },
        },
      },
      round ? drawn("circle", { class: "reach", cx: x, cy: y, r: 25 }) : null,
      shape,
      drawn("text", { x, y: y + 6, "text-anchor": "middle" }, round ? "+" : label),
    );
    this.buttons.set(name, button);
    return button;
  }

  /** Marks the block that is open. */
  mark(name) {
    for (const [own, button] of this.buttons) redraw(button, { "aria-pressed": own === name });
  }
}

/** The name of a block with its place: "Encoder: LayerNorm before attention". */
export function blockLabel(name, kinds) {
  const after =
    name.includes(".") &&
    /(attention|cross|feed_forward)_norm$/.test(name) &&
    kinds[name.split(".")[0]].norm === "post";
  return say("transformer.name", {
    side: say(`transformer.side.${blockSide(name)}`),
    block: say(`transformer.block.${name}${after ? ".after" : ""}`),
  });
}
