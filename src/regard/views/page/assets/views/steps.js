// Steps: the whole calculation of one query, with real numbers.

import { datum, make } from "../elements.js";
import { say } from "../languages.js";
import { numberText, shareText, weightText } from "../numbers.js";
import { drawVector, greatestSize, vectorCanvas, vectorNumbers } from "../vector.js";

const FIRST_KEYS = 10;
const MORE_KEYS = 200;
const NEIGHBOURS = 40;
const LINE_HEIGHT = 26;

export class StepsView {
  constructor(app) {
    this.app = app;
    this.extra = 0;
    this.strip = make("div", { class: "token-strip", role: "group", "aria-label": say("steps.query") });
    this.body = make("div", { class: "scroll steps-body" });
    this.root = make("section", { class: "view steps" }, this.strip, this.body);
  }

  mounted() {
    this.strip.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  destroy() {}

  ready() {
    return Promise.resolve();
  }

  /** The query in question: the pinned one, else the last. */
  get query() {
    const { call, now } = this.app.state;
    return now.query ?? call.queries - 1;
  }

  update(now, changed) {
    if (changed && !["call", "head", "query", "key", "palette", "theme", "special", "words", "sinks"].some((name) => changed.has(name))) return;
    const { call } = this.app.state;
    if (changed && (changed.has("query") || changed.has("call") || changed.has("head"))) this.extra = 0;
    this.steps = call.dense ? null : call.steps(now.head, this.query);
    this.renderStrip(call);
    const lensed = now.special === "hide" || now.words === "merge" || now.sinks !== "show";
    const note = lensed ? [make("p", { class: "hint" }, say("steps.lens"))] : [];
    if (!this.steps) this.body.replaceChildren(make("p", { class: "notice" }, say("steps.dense")));
    else this.body.replaceChildren(...note, ...this.chapters(call, this.steps));
  }

  renderStrip(call) {
    const { state } = this.app;
    const { query } = this;
    const [from, to] = [Math.max(0, query - NEIGHBOURS), Math.min(call.queries, query + NEIGHBOURS + 1)];
    const go = (to_) => state.set({ query: Math.min(call.queries - 1, Math.max(0, to_)) });
    const tokens = [];
    for (let index = from; index < to; index += 1) {
      tokens.push(make("button", { type: "button", class: call.querySpecial[index] ? "token special" : "token", translate: "no", "aria-pressed": String(index === query), "data-index": index, on: { click: () => go(index) } },
        make("small", {}, String(index)), make("bdi", {}, call.queryTokens[index])));
    }
    this.strip.replaceChildren(
      make("button", { type: "button", class: "quiet", "aria-label": say("steps.before"), disabled: query === 0, on: { click: () => go(query - 1) } }, "‹"),
      make("div", { class: "tokens" }, ...tokens),
      make("button", { type: "button", class: "quiet", "aria-label": say("steps.next"), disabled: query === call.queries - 1, on: { click: () => go(query + 1) } }, "›"));
    const list = this.strip.children[1];
    const chosen = list.children[query - from];
    list.scrollLeft = chosen.offsetLeft - list.offsetLeft - (list.clientWidth - chosen.offsetWidth) / 2;
  }

  // ---- chapters ---------------------------------------------------------------------------------

  chapters(call, steps) {
    const { inks } = this.app;
    const seen = steps.keys.some((key) => key.allowed);
    const chapters = [chapter(1, say("steps.query.vector"), "q",
      make("div", { class: "vector-row" }, vectorCanvas(steps.q, 640, 64, greatestSize([steps.q]), inks), vectorNumbers(steps.q)))];
    if (!seen) return [...chapters, make("p", { class: "notice" }, say("steps.nothing"))];
    chapters.push(chapter(2, say("steps.scores"), formulaOf(steps), this.table(call, steps)));
    const detail = this.keyDetail(call, steps);
    if (detail) chapters.push(detail);
    chapters.push(chapter(3, say("steps.output"), "output = Σ weight · v",
      steps.output
        ? make("div", { class: "vector-row", "data-output": Array.from(steps.output).join(" ") }, vectorCanvas(steps.output, 640, 64, greatestSize([steps.output]), inks), vectorNumbers(steps.output))
        : make("p", { class: "hint" }, say("steps.novalues"))));
    return chapters;
  }

  /** The keys by weight, the strongest first; masked ones last. */
  get order() {
    const { keys } = this.steps;
    return keys.map((_, index) => index).sort((a, b) => keys[b].allowed - keys[a].allowed || keys[b].weight - keys[a].weight || a - b);
  }

  /** The columns that this recording needs. */
  get columns() {
    const { keys, softcap } = this.steps;
    const number = (name, value, formula) => ({ name, formula, text: (key) => (key.allowed || name === "dot" || name === "scaled" ? numberText(value(key)) : "") });
    return [
      number("dot", (key) => key.dot, "q · k"),
      number("scaled", (key) => key.scaled, "× scale"),
      ...(softcap === null ? [] : [number("capped", (key) => key.capped, "cap · tanh")]),
      ...(keys.some((key) => key.bias !== 0 && key.allowed) ? [number("bias", (key) => key.bias, "+ bias")] : []),
      { name: "score", formula: "s", text: (key) => (key.allowed ? numberText(key.score) : say("steps.masked")) },
    ];
  }

  table(call, steps) {
    const { order, columns } = this;
    const { state, inks } = this.app;
    const shown = order.slice(0, FIRST_KEYS + this.extra);
    const pinned = state.now.key;
    if (pinned !== null && !shown.includes(pinned)) shown.push(pinned);
    const rest = order.length - shown.length;
    const withValues = steps.keys.some((key) => key.v);
    const greatest = withValues ? greatestSize(shown.map((index) => weighted(steps.keys[index]))) : 0;
    const heading = make("tr", {}, make("th", { class: "text", scope: "col" }, say("steps.key")),
      ...columns.map((column) => make("th", { scope: "col" }, say(`steps.${column.name}`), make("small", { translate: "no" }, column.formula))),
      make("th", { scope: "col" }, say("steps.weight"), make("small", { translate: "no" }, "exp(s − lse)")),
      withValues ? make("th", { class: "text", scope: "col" }, say("steps.value"), make("small", { translate: "no" }, "weight · v")) : null);
    const rows = shown.map((index) => {
      const key = steps.keys[index];
      const weight = make("td", { class: "weight" }, datum(key.allowed ? weightText(key.weight) : "0", "number"));
      weight.style.setProperty("--share", key.weight.toFixed(4));
      return make("tr", { class: key.allowed ? null : "masked", "data-key": index, "data-weight": key.weight, "data-score": key.score, "data-dot": key.dot, "aria-selected": String(index === pinned), on: { click: () => state.set({ key: index === pinned ? null : index }) } },
        make("td", { class: "text" }, make("button", { type: "button", class: "link", "aria-expanded": String(index === pinned) }, make("small", { translate: "no" }, String(index)), datum(call.keyTokens[index], "token-text"))),
        ...columns.map((column) => make("td", {}, column.name === "score" && !key.allowed ? column.text(key) : datum(column.text(key)))), weight,
        withValues ? make("td", { class: "text" }, vectorCanvas(weighted(key), 160, 22, greatest, inks)) : null);
    });
    const sum = (indices) => indices.reduce((total, index) => total + steps.keys[index].weight, 0);
    const total = sum(order);
    const foot = [];
    const line = (name, text, weight, extra) => make("tr", extra, make("td", { class: "text" }, text), ...columns.map(() => make("td")), make("td", { "data-total": name }, datum(weightText(weight), "number")), withValues ? make("td") : null);
    if (rest > 0) {
      const hidden = order.filter((index) => !shown.includes(index));
      const more = make("button", { type: "button", class: "quiet", on: { click: () => this.unfold(MORE_KEYS) } }, say("steps.more", { count: Math.min(rest, MORE_KEYS), share: shareText(sum(hidden.slice(0, MORE_KEYS))) }));
      foot.push(line("rest", more, sum(hidden), {}));
    } else if (this.extra > 0) {
      foot.push(make("tr", {}, make("td", { class: "text", colspan: columns.length + 3 }, make("button", { type: "button", class: "quiet", on: { click: () => this.unfold(-this.extra) } }, say("steps.fewer")))));
    }
    if (steps.sink !== null) foot.push(line("sink", say("steps.sink"), Math.exp(steps.sink - steps.lse), {}));
    foot.push(line("total", say("steps.total"), total + (steps.sink === null ? 0 : Math.exp(steps.sink - steps.lse)), { class: "total" }));
    return make("div", {}, make("div", { class: "wide" }, make("table", { class: "numbers steps-table" }, make("thead", {}, heading), make("tbody", {}, ...rows), make("tfoot", {}, ...foot))),
      make("p", { class: "hint" }, say("steps.from"), " ", datum(`= ${numberText(steps.lse, 4)}`, "number")));
  }

  unfold(more) {
    this.extra += more;
    this.update(this.app.state.now, null);
  }

  /** The dot product with the chosen key, channel by channel. */
  keyDetail(call, steps) {
    const index = this.app.state.now.key;
    if (index === null) return null;
    const { k, v, dot } = steps.keys[index];
    const name = call.keyTokens[index];
    const { inks } = this.app;
    const products = Array.from(k, (value, channel) => make("li", {}, make("small", {}, String(channel)),
      `${numberText(steps.q[channel])} × ${numberText(value)} = `, make("b", {}, numberText(steps.q[channel] * value))));
    const greatest = greatestSize([k]);
    return make("article", { class: "chapter detail" },
      make("h3", {}, say("steps.product", { key: name })),
      make("div", { class: "vector-row" }, vectorCanvas(k, 640, 48, greatest, inks),
        make("ol", { class: "products", translate: "no" }, ...products, make("li", { class: "sum" }, make("small", {}, "Σ"), make("b", {}, numberText(dot, 4))))),
      v ? make("h3", {}, say("steps.values", { key: name })) : null,
      v ? make("div", { class: "vector-row" }, vectorCanvas(v, 640, 48, greatestSize([v]), inks), vectorNumbers(v)) : null);
  }

  // ---- export -----------------------------------------------------------------------------------

  get exported() {
    return this.steps ? this.order.slice(0, FIRST_KEYS + this.extra) : [];
  }

  pictureSize() {
    const width = this.steps ? 240 + 92 * (this.columns.length + 1) : 640;
    return { width: Math.max(640, width), height: this.steps ? 150 + LINE_HEIGHT * (this.exported.length + 2) + (this.steps.output ? 110 : 0) : 40 };
  }

  draw(surface) {
    const { inks, state } = this.app;
    const { steps } = this;
    if (!steps) {
      surface.text(0, 20, say("steps.dense"), { fill: inks.ink, size: 12 });
      return;
    }
    const { width } = this.pictureSize();
    const { call } = state;
    const bars = { x: 0, width, height: 56, inks };
    surface.text(0, 10, `${this.query}  ${call.queryTokens[this.query]}`, { fill: inks.ink, size: 15, weight: 600 });
    drawVector(surface, steps.q, { ...bars, y: 28, greatest: greatestSize([steps.q]) });
    surface.text(0, 104, formulaOf(steps), { fill: inks.soft, size: 13 });
    let y = 132;
    const columns = [...this.columns, { name: "weight", text: (key) => weightText(key.weight) }];
    const cells = (texts, style) => texts.forEach((text, at) => surface.text(at ? 240 + 92 * at - 12 : 36, y, text, { size: 12, anchor: at ? "end" : "start", limit: at ? 84 : 190, ...style }));
    cells([say("steps.key"), ...columns.map((column) => say(`steps.${column.name}`))], { fill: inks.soft, weight: 600 });
    for (const index of this.exported) {
      y += LINE_HEIGHT;
      const key = steps.keys[index];
      surface.rect(240 + 92 * (columns.length - 1), y - 10, 84 * Math.min(1, key.weight), 20, inks.accent, { opacity: 0.16 });
      surface.text(0, y, String(index), { fill: inks.faint, size: 11 });
      cells([call.keyTokens[index], ...columns.map((column) => column.text(key))], { fill: key.allowed ? inks.ink : inks.faint });
    }
    y += LINE_HEIGHT;
    surface.line(0, y - 13, width, y - 13, inks.hair);
    const total = steps.keys.reduce((sum, key) => sum + key.weight, 0);
    cells([say("steps.total"), ...columns.slice(1).map(() => ""), weightText(total)], { fill: inks.ink, weight: 600 });
    if (!steps.output) return;
    surface.text(0, y + 34, say("steps.output"), { fill: inks.soft, size: 13 });
    drawVector(surface, steps.output, { ...bars, y: y + 48, greatest: greatestSize([steps.output]) });
  }
}

function chapter(number, title, formula, ...content) {
  return make("article", { class: "chapter" }, make("h3", {}, make("i", {}, String(number)), title, make("code", { translate: "no" }, formula)), ...content);
}

/** The formula of the scores as this call computes it. */
function formulaOf({ scale, softcap, keys }) {
  const scaled = `${numberText(scale, 4)} · q·k`;
  const capped = softcap === null ? scaled : `${numberText(softcap, 1)} · tanh(${scaled} / ${numberText(softcap, 1)})`;
  const biased = keys.some((key) => key.bias !== 0 && key.allowed) ? `${capped} + bias` : capped;
  return `s = ${biased},  weight = exp(s − lse)`;
}

function weighted({ v, weight }) {
  return v ? Float32Array.from(v, (value) => value * weight) : new Float32Array(0);
}
