// The transformer: a drawing that opens, block by block, to shapes, formulas and the numbers of a real sentence.

import { make, press, segments } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { shareText } from "../../page/assets/numbers.js";
import { BLOCK_FORMULAS } from "./block_formulas.js";
import { blockNumbers, outsideLayers } from "./block_views.js";
import { openPlayable } from "./frame.js";
import { blockKind, blockLabel, blockOrder, blockSide, TransformerDiagram } from "./transformer_diagram.js";
import { TransformerNumbers } from "./transformer_numbers.js";

class TransformerPage {
  constructor(place, state, { language, inks }) {
    this.state = state;
    this.inks = inks;
    this.numbers = state.numbers;
    this.language = language;
    this.order = blockOrder(this.numbers.kinds);
    this.diagram = new TransformerDiagram(this.numbers, (block) => this.set({ block }));
    this.panel = make("section", { class: "card panel", "aria-live": "polite" });
    const { text, translation, parameters } = this.numbers.start;
    place.replaceChildren(
      make(
        "section",
        { class: "card diagram-card" },
        make("p", { class: "translated" }, make("b", {}, text), " → ", make("b", { lang: "zh-CN" }, translation)),
        this.diagram.root,
        make("p", { class: "caption" }, say("transformer.caption", { parameters: this.count(parameters.all) })),
      ),
      this.panel,
    );
    this.show();
  }

  count(number) {
    return new Intl.NumberFormat(this.language === "zh" ? "zh-CN" : "en-US").format(number);
  }

  set(patch) {
    Object.assign(this.state, patch);
    this.show();
  }

  show() {
    const { state } = this;
    const { block } = state;
    const kind = blockKind(block);
    this.diagram.mark(block);
    const layers = this.layers(block);
    state.layer = Math.min(state.layer, Math.max(0, layers - 1));
    const inside = this.panel.contains(document.activeElement)
      ? document.activeElement.getAttribute("aria-label")
      : null;
    this.panel.replaceChildren(
      this.steps(),
      make("h2", {}, blockLabel(block, this.numbers.kinds)),
      make("p", { class: "says" }, this.explanation(block, kind)),
      make("div", { class: "formula" }, ...BLOCK_FORMULAS[kind](this.kindsOf(block))),
      this.facts(block, kind),
      layers ? this.layerChoice(layers) : "",
      ...blockNumbers(this.numbers, block, state, { inks: this.inks, change: (patch) => this.set(patch) }),
    );
    if (inside)
      /** @type {HTMLElement | null} */ (this.panel.querySelector(`[aria-label="${CSS.escape(inside)}"]`))?.focus();
  }

  stackOf(block) {
    return blockSide(block) === "source" ? "encoder" : "decoder";
  }

  /** A size of the encoder or the decoder, whichever a block is in. */
  sizeOf(block, name) {
    return this.numbers.sizes[`${this.stackOf(block)}_${name}`];
  }

  /** How the encoder or the decoder is built, whichever a block is in. */
  kindsOf(block) {
    return this.numbers.kinds[this.stackOf(block)];
  }

  /** What a block does, in words. */
  explanation(block, kind) {
    const { positions, embedding_norm: unscaled, activation } = this.kindsOf(block);
    const variant =
      { positions: positions === "learned", embedding: unscaled, feed_forward: activation === "gelu" }[kind] ?? false;
    const sizes = Object.fromEntries(["width", "heads", "hidden"].map((name) => [name, this.sizeOf(block, name)]));
    const { decoder_width: to, target_vocabulary: vocabulary } = this.numbers.sizes;
    return say(`transformer.kind.${kind}.says${variant ? ".trained" : ""}`, {
      ...sizes,
      share: shareText(this.feedForwardShare(this.stackOf(block))),
      to,
      target_vocabulary: this.count(vocabulary),
    });
  }

  /** How much of the parameters of a layer is in its feed-forward block. */
  feedForwardShare(stack) {
    const { parameters } = this.numbers.start;
    const [attention, feedForward, norm] = ["attention", "feed_forward", "norm"].map(
      (name) => parameters[`${stack}_${name}`],
    );
    const attentions = stack === "decoder" ? 2 : 1;
    return feedForward / (feedForward + attentions * attention + (attentions + 1) * norm);
  }

  /** How many layers a block is in; 0 outside of layers. */
  layers(block) {
    const [stack, name] = block.split(".");
    return outsideLayers(name) ? 0 : (this.numbers.sizes[`${stack}_layers`] ?? 0);
  }

  layerChoice(layers) {
    const options = Array.from({ length: layers }, (_, layer) => [layer, String(layer)]);
    return make(
      "div",
      { class: "field" },
      make("span", { class: "name" }, say("transformer.layer")),
      segments(options, this.state.layer, (layer) => this.set({ layer }), say("transformer.layer")),
    );
  }

  /** To the block before and after, in the order in which a sentence meets them. */
  steps() {
    const at = this.order.indexOf(this.state.block);
    const to = (step) => () => this.set({ block: this.order[at + step] });
    return make(
      "div",
      { class: "block-steps" },
      press("←", to(-1), {
        class: "small",
        disabled: at === 0,
        "aria-label": say("transformer.before"),
        title: say("transformer.before"),
      }),
      make("small", {}, `${at + 1} / ${this.order.length}`),
      press("→", to(1), {
        class: "small",
        disabled: at === this.order.length - 1,
        "aria-label": say("transformer.after"),
        title: say("transformer.after"),
      }),
    );
  }

  /** Shapes and parameters. */
  facts(block, kind) {
    const { sizes, start } = this.numbers;
    const side = blockSide(block);
    const length = start[side].length;
    const context = start.source.length;
    const projected = block.startsWith("encoder.projection");
    const width = projected ? sizes.decoder_width : this.sizeOf(block, "width");
    const vectors = `${length} × ${width}`;
    const vocabulary = sizes[`${side}_vocabulary`];
    const heads = this.sizeOf(block, "heads");
    const split = `${heads} × ${length} × ${width / heads}`;
    const shapes = {
      tokens: [`${length}`],
      embedding: [`${length}`, vectors],
      positions: [vectors, vectors],
      norm: [vectors, vectors],
      attention: [vectors, split, `${heads} × ${length} × ${length}`, vectors],
      masked: [vectors, split, `${heads} × ${length} × ${length}`, vectors],
      cross: [vectors, split, `${heads} × ${length} × ${context}`, vectors],
      add: [vectors, vectors],
      projection: [`${length} × ${sizes.encoder_width}`, vectors],
      feed_forward: [vectors, `${length} × ${this.sizeOf(block, "hidden")}`, vectors],
      logits: [vectors, `${length} × ${vocabulary}`],
      softmax: [`${length} × ${vocabulary}`, `${length} × ${vocabulary}`],
    }[kind];
    const { parameters } = start;
    const stack = block.split(".")[0];
    const part = ["masked", "cross"].includes(kind) ? "attention" : kind;
    const own = kind === "embedding" ? parameters[side] : (parameters[`${stack}_${part}`] ?? 0);
    return make(
      "dl",
      { class: "facts" },
      make("dt", {}, say("transformer.shapes")),
      make("dd", {}, shapes.join(" → ")),
      make("dt", {}, say("transformer.parameters")),
      make("dd", {}, kind === "logits" ? say("transformer.tied") : own ? this.count(own) : say("transformer.none")),
    );
  }
}

openPlayable(
  (data) => ({ numbers: new TransformerNumbers(data.start), block: "encoder.attention", layer: 0, token: 1, head: 0 }),
  (place, state, frame) => new TransformerPage(place, state, frame),
);
