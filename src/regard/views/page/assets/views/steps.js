// Steps: the whole calculation of one query, with real numbers.

import { LENS, NO_LENS, SHOWN } from "../call_view.js";
import { datum, make, press } from "../elements.js";
import { say } from "../languages.js";
import { numberText } from "../numbers.js";
import { vectorRow } from "../vector.js";
import { chapter } from "./chapter.js";
import { layerChapters, layerSteps } from "./steps_layer.js";
import { drawSteps, stepsPaper } from "./steps_picture.js";
import { formulaOf, StepsTable } from "./steps_table.js";

const NEIGHBOURS = 40;
const WORD = /[\p{L}\p{N}]/u;
const MATTERS = ["call", "head", "query", "key", "palette", "find", ...SHOWN];

export class StepsView {
  constructor(app) {
    this.app = app;
    this.table = new StepsTable(app);
    this.strip = make("div", { class: "token-strip", role: "group", "aria-label": say("steps.query") });
    this.body = make("div", { class: "scroll steps-body" });
    this.root = make("section", { class: "view steps" }, this.strip, this.body);
  }

  /** The query shown: the pinned one, else the last word, neither a special token nor a sign nor a row without a name. */
  get query() {
    const { call, now } = this.app.state;
    const word = call.queryTokens.findLastIndex((token, at) => !call.querySpecial[at] && WORD.test(token));
    const last = word < 0 ? call.querySpecial.lastIndexOf(false) : word;
    return now.query ?? (last < 0 ? call.queries - 1 : last);
  }

  mounted() {
    this.showChosen(); // before, the strip had no width
  }

  update(now, changed) {
    if (changed && !MATTERS.some((name) => changed.has(name))) return;
    const { call } = this.app.state;
    this.steps = call.dense ? null : call.steps(now.head, this.query);
    this.renderStrip(call);
    const lensed = LENS.some((name) => now[name] !== NO_LENS[name]);
    const note = lensed ? [make("p", { class: "hint" }, say("steps.lens"))] : [];
    this.body.replaceChildren(
      ...note,
      ...(this.steps ? this.chapters(call, this.steps) : [make("p", { class: "notice" }, say("steps.dense"))]),
    );
  }

  /** The tokens around the query, to choose another one. */
  renderStrip(call) {
    const { query } = this;
    const [from, to] = [Math.max(0, query - NEIGHBOURS), Math.min(call.queries, query + NEIGHBOURS + 1)];
    const go = (index) => this.app.state.set({ query: index });
    const found = this.app.found().query;
    const tokens = call.queryTokens.slice(from, to).map((token, at) =>
      press([make("small", {}, String(from + at)), " ", make("bdi", {}, token)], () => go(from + at), {
        class: `token${call.querySpecial[from + at] ? " special" : ""}${found.has(from + at) ? " found" : ""}`,
        translate: "no",
        "aria-label": `${say("matrix.query")} ${from + at} ${token}`,
        "aria-pressed": String(from + at === query),
      }),
    );
    const list = make("div", { class: "tokens" }, ...tokens);
    this.strip.replaceChildren(
      press("‹", () => go(query - 1), { "aria-label": say("steps.before"), disabled: query === 0 }),
      list,
      press("›", () => go(query + 1), { "aria-label": say("steps.next"), disabled: query === call.queries - 1 }),
    );
    this.showChosen();
  }

  /** Brings the query into the middle of the strip. */
  showChosen() {
    const list = this.strip.querySelector(".tokens");
    const chosen = list?.querySelector('[aria-pressed="true"]');
    if (chosen) list.scrollLeft = chosen.offsetLeft - (list.clientWidth - chosen.offsetWidth) / 2;
  }

  chapters(call, steps) {
    const { inks, state } = this.app;
    const first = chapter(1, say("steps.query.vector"), "q", vectorRow(steps.q, "q", inks));
    if (!steps.keys.some((key) => key.allowed)) return [first, make("p", { class: "notice" }, say("steps.nothing"))];
    const output = steps.output
      ? vectorRow(steps.output, "o", inks)
      : make("p", { class: "hint" }, say("steps.novalues"));
    if (steps.output) output.dataset.output = steps.output.join(" ");
    return [
      first,
      chapter(2, say("steps.scores"), formulaOf(steps), this.table.render(steps)),
      ...(state.now.key === null
        ? []
        : [this.keyDetail(call.keyTokens[state.now.key], steps, steps.keys[state.now.key])]),
      chapter(3, say("steps.output"), "o = Σ w · v", output),
      ...layerChapters(call, this.query, state.now.head, inks),
    ];
  }

  /** The dot product with the chosen key, channel by channel. */
  keyDetail(name, { q }, { k, v, dot }) {
    const { inks } = this.app;
    const line = (sign, text, result) => make("li", {}, make("small", {}, sign), text, make("b", {}, result));
    const products = Array.from(k, (value, channel) =>
      line(String(channel), `${numberText(q[channel])} × ${numberText(value)} = `, numberText(q[channel] * value)),
    );
    return make(
      "article",
      { class: "chapter detail" },
      make("h2", {}, datum(name), say("steps.product")),
      vectorRow(k, "k", inks),
      make("ol", { class: "products", translate: "no" }, ...products, line("Σ", "", numberText(dot, 4))),
      ...(v ? [make("h2", {}, say("steps.values")), vectorRow(v, "v", inks)] : []),
    );
  }

  // ---- export -----------------------------------------------------------------------------------

  /** The steps behind the head, as far as the view shows them. */
  get layer() {
    const { call, now } = this.app.state;
    return this.steps?.keys.some((key) => key.allowed) ? layerSteps(call, this.query, now.head) : [];
  }

  pictureSize() {
    return stepsPaper(this.steps, this.table, this.layer);
  }

  draw(surface) {
    drawSteps(surface, {
      steps: this.steps,
      table: this.table,
      layer: this.layer,
      query: this.query,
      call: this.app.state.call,
      inks: this.app.inks,
    });
  }
}
