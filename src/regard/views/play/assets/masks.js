// Masks: type one, see it, how many pairs it allows, and what that saves at long lengths.

import { make, press } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { shareText } from "../../page/assets/numbers.js";
import { costChart } from "./cost_chart.js";
import { openPlayable, slider } from "./frame.js";
import { allowedPairs, COST_SIZES, extentOf, maskCost, maskRows } from "./mask_counts.js";
import { maskField, readMaskText } from "./mask_field.js";
import { maskPicture } from "./mask_picture.js";
import { MaskProblem } from "./mask_problem.js";

const FIRST_MASK = "causal & (window(4, 0) | prefix(2))";

/** Masks worth a look, by the keys of their texts. */
const MASK_EXAMPLES = {
  causal: "causal",
  window: "window(2, 2)",
  sliding: "causal & window(3, 0)",
  sink: FIRST_MASK,
  prefix: "causal | prefix(5)",
  documents: "causal & documents([0*6, 1*4, 2*6])",
  padding: "padding([True*11, False*5])",
  global: "local_global(4)",
  image: "neighbourhood([4, 4], 1)",
};

const PATTERN_FORMS = [
  "causal",
  "window(before, after)",
  "prefix(length)",
  "span(start, stop)",
  "every(stride)",
  "local_global(stride)",
  "documents(ids)",
  "padding(keep)",
  "neighbourhood(shape, radius)",
  "dense(table)",
  "a & b",
  "a | b",
  "~a",
  "a.T",
];

const COST_LENGTHS = [1, 2, 4, 8, 16, 32, 64, 128].map((thousands) => thousands * 1024);
/** Longer tables would take seconds to draw. */
const LONGEST_DRAWN = 1024;

class MaskPage {
  constructor(place, state, { language, inks }) {
    this.state = state;
    this.language = language;
    this.inks = inks;
    this.field = maskField(state.text, (text) => this.typed(text), language);
    this.picture = make("div", { class: "picture-place" });
    this.readout = make("p", { class: "readout", "aria-live": "polite" });
    this.facts = make("dl", { class: "facts" });
    this.costs = make("div", { class: "costs" });
    this.timer = 0;
    this.length = slider(
      say("masks.length"),
      { min: 4, max: 64, step: 1, value: state.length, shown: String },
      (length) => {
        this.state.length = length;
        this.draw();
      },
    );
    place.replaceChildren(
      make(
        "section",
        { class: "card typed" },
        this.field.root,
        make(
          "div",
          { class: "tools", role: "group", "aria-label": say("masks.examples") },
          ...Object.entries(MASK_EXAMPLES).map(([key, text]) =>
            press(say(`masks.example.${key}`), () => this.field.set(text), { class: "small", title: text }),
          ),
        ),
      ),
      make(
        "div",
        { class: "column" },
        make("section", { class: "card drawn" }, this.picture, this.readout, this.length),
        make("section", { class: "card language" }, make("h2", {}, say("masks.language")), this.patterns()),
      ),
      make("section", { class: "card" }, make("h2", {}, say("masks.facts")), this.facts, this.costs),
    );
    this.field.show(this.typed(state.text));
  }

  patterns() {
    return make(
      "dl",
      { class: "patterns" },
      ...PATTERN_FORMS.flatMap((form, at) => [
        make("dt", {}, make("code", { translate: "no" }, form)),
        make("dd", {}, say(`masks.pattern.${at}`)),
      ]),
    );
  }

  /** Reads a text; if it cannot be read, the last picture stays. */
  typed(text) {
    this.state.text = text;
    const { mask, problem } = readMaskText(text);
    this.picture.classList.toggle("stale", Boolean(problem));
    if (problem) return problem;
    this.mask = mask;
    return this.draw();
  }

  /** The lengths that are drawn: those of a table, if the mask has one. */
  extent() {
    const { fixed } = this.mask;
    const length = this.state.length;
    return extentOf(fixed?.queries ?? fixed?.keys ?? length, fixed?.keys ?? fixed?.queries ?? length);
  }

  draw() {
    const { mask } = this;
    const extent = this.extent();
    this.length.hidden = Boolean(mask.fixed);
    try {
      mask.check(extent);
      this.drawPicture(extent);
      this.showFacts(extent);
    } catch (problem) {
      if (!(problem instanceof MaskProblem)) throw problem;
      return problem;
    }
    clearTimeout(this.timer);
    this.costs.classList.add("stale");
    this.timer = setTimeout(() => this.showCosts(), 120);
    return null;
  }

  drawPicture(extent) {
    const first = this.mask.lead.map(() => 0);
    if (Math.max(extent.queries, extent.keys) > LONGEST_DRAWN || this.mask.lead.includes(0)) {
      this.picture.replaceChildren(make("p", { class: "caption" }, say("masks.toolong", { most: LONGEST_DRAWN })));
      return;
    }
    const rows = maskRows(this.mask.select(first), extent);
    this.rows = rows;
    this.point(null);
    const room = Math.min(560, this.picture.clientWidth || 560);
    this.picture.replaceChildren(
      make("div", { class: "axis-name keys" }, say("masks.keys")),
      make("div", { class: "axis-name queries" }, say("masks.queries")),
      maskPicture(rows, {
        label: say("masks.picture", { mask: this.mask.text(), ...extent }),
        room: room - 30,
        inks: this.inks,
        pointed: (at) => this.point(at),
      }),
    );
  }

  point(at) {
    if (!at) {
      this.readout.textContent = say("masks.point");
      return;
    }
    const [query, key] = at;
    const count = this.rows[query].filter(Boolean).length;
    const which = this.rows[query][key] ? "masks.sees" : "masks.hidden";
    this.readout.textContent = say(which, { query, key, count, keys: this.rows[query].length });
  }

  showFacts(extent) {
    const pairs = allowedPairs(this.mask, extent);
    const all = extent.queries * extent.keys * this.mask.lead.reduce((one, other) => one * other, 1);
    const number = new Intl.NumberFormat(this.language === "zh" ? "zh-CN" : "en-US");
    const facts = [
      ["text", make("code", { translate: "no" }, shortened(this.mask.text()))],
      ["size", say("masks.fact.size.of", { ...extent })],
      ["pairs", say("masks.fact.pairs.of", { pairs: number.format(pairs), all: number.format(all) })],
      ["share", make("b", { class: "share" }, all ? exactShare(pairs / all) : "–")],
    ];
    if (this.mask.lead.length) facts.push(["lead", this.mask.lead.join(" × ")]);
    this.facts.replaceChildren(
      ...facts.flatMap(([name, value]) => [make("dt", {}, say(`masks.fact.${name}`)), make("dd", {}, value)]),
    );
  }

  showCosts() {
    this.costs.classList.remove("stale");
    const extent = this.extent();
    const lengths = this.mask.fixed ? [extent.keys] : COST_LENGTHS;
    try {
      const found = lengths.map((length) => maskCost(this.mask, length));
      this.costs.replaceChildren(
        make("p", { class: "caption" }, say(this.mask.fixed ? "masks.costs.fixed" : "masks.costs", COST_SIZES)),
        ...(found.length > 1 ? [costChart(found)] : []),
        make(
          "div",
          { class: "wide", tabindex: 0, role: "region", "aria-label": say("masks.costs.table") },
          costTable(found),
        ),
        make("p", { class: "caption" }, say(found[0].regard ? "masks.costs.note" : "masks.costs.note.fixed")),
      );
    } catch (problem) {
      if (!(problem instanceof MaskProblem)) throw problem;
      this.costs.replaceChildren(make("p", { class: "caption" }, problem.inWords(this.language)));
    }
  }
}

const shortened = (text) => (text.length > 120 ? `${text.slice(0, 119)}…` : text);

/** A share with enough digits to tell small ones apart: 26.6%, 0.0038%. */
function exactShare(share) {
  const hundredths = share * 100;
  if (share === 0 || share === 1) return shareText(share);
  return `${hundredths >= 1 ? hundredths.toFixed(1) : hundredths.toPrecision(2)}%`;
}

function costTable(costs) {
  const ways = costs[0].regard ? ["dense", "allowed", "regard"] : ["dense", "allowed"];
  const columns = [
    "length",
    "share",
    ...ways.map((way) => `operations.${way}`),
    "bytes.dense",
    "bytes.allowed",
    "times",
  ];
  const rows = costs.map((cost) => [
    cost.length % 1024 === 0 ? `${cost.length / 1024}k` : String(cost.length),
    exactShare(cost.allowed.pairs / cost.dense.pairs),
    ...ways.map((way) => shortNumber(cost[way].operations)),
    `${shortNumber(cost.dense.bytes)}B`,
    `${shortNumber(cost.allowed.bytes)}B`,
    `${(cost.dense.operations / cost[ways.at(-1)].operations).toFixed(1)}×`,
  ]);
  return make(
    "table",
    { class: "cost-table" },
    make(
      "thead",
      {},
      make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, say(`masks.column.${name}`)))),
    ),
    make(
      "tbody",
      {},
      ...rows.map((row) =>
        make("tr", {}, ...row.map((text, at) => make(at ? "td" : "th", at ? {} : { scope: "row" }, text))),
      ),
    ),
  );
}

/** 1.2 M, 35 T: three digits and a power of a thousand. */
function shortNumber(value) {
  const power = Math.max(0, Math.min(5, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  const scaled = value / 1000 ** power;
  return `${scaled >= 100 ? scaled.toFixed(0) : scaled.toPrecision(3)} ${["", "k", "M", "G", "T", "P"][power]}`;
}

openPlayable(
  (data) => ({ text: data.start.text ?? FIRST_MASK, length: 16 }),
  (place, state, frame) => new MaskPage(place, state, frame),
);
