// The table of the steps: a row for each key, the strongest first, a column for each step that the call takes.

import { datum, make, press } from "../elements.js";
import { term } from "../explained.js";
import { say } from "../languages.js";
import { numberText, shareText, valueText, weightText } from "../numbers.js";
import { quantityKey } from "../quantities.js";
import { greatestSize, vectorCanvas } from "../vector.js";

const FIRST_KEYS = 10;
const MORE_KEYS = 200;
const ROUNDING = 1e-5; // of the sizes of what is added: a smaller sum is 0

/** The formula of the scores as this call computes it. */
export function formulaOf(steps) {
  const scaled = `${numberText(steps.scale, 4)} · q·k`;
  const cap = steps.softcap === null ? "" : numberText(steps.softcap, 1);
  return `s = ${cap ? `${cap} · tanh(${scaled} / ${cap})` : scaled}${hasBias(steps) ? " + b" : ""},  w = exp(s − lse)`;
}

/** How much of a query's weight the learned sink takes. */
export function sinkShare({ sink, lse }) {
  return sink === null ? 0 : Math.exp(sink - lse);
}

/** The columns of a call: { name, formula, text(key) }. */
export function stepColumns(steps) {
  const number = (name, formula) => ({
    name,
    formula,
    text: (key) => (key.allowed || name !== "bias" ? numberText(key[name]) : ""),
  });
  return [
    number("dot", "q · k"),
    number("scaled", `× ${numberText(steps.scale, 4)}`),
    ...(steps.softcap === null ? [] : [number("capped", "tanh")]),
    ...(hasBias(steps) ? [number("bias", "+ b")] : []),
    { name: "score", formula: "s", text: (key) => (key.allowed ? numberText(key.score) : say("steps.masked")) },
  ];
}

const QUANTITY_FORMULAS = { gradient: "dO · v", product: "w · (dO · v)", contribution: "w · c", difference: "w′ − w" };

/** The columns of the quantities besides the weight that the call has. */
export function quantityColumns(steps) {
  const names = Object.keys(QUANTITY_FORMULAS).filter((name) => steps.keys[0]?.[name] !== undefined);
  return names.map((name) => ({ name, formula: QUANTITY_FORMULAS[name], text: (key) => valueText(key[name]) }));
}

export class StepsTable {
  constructor(app) {
    this.app = app;
    this.unfolded = 0;
  }

  /** The keys shown: the strongest, as many as were unfolded, and the pinned one; masked keys come last. */
  shown({ keys }) {
    const order = keys.map((_, index) => index);
    const { what } = this.app.state.now;
    const size = (index) => Math.abs(keys[index][what]);
    order.sort((a, b) => keys[b].allowed - keys[a].allowed || size(b) - size(a) || a - b);
    const shown = order.splice(0, FIRST_KEYS + this.unfolded);
    const pinned = order.indexOf(this.app.state.now.key);
    if (pinned >= 0) shown.push(...order.splice(pinned, 1));
    return { shown, hidden: order };
  }

  render(steps) {
    this.steps = steps;
    const columns = stepColumns(steps);
    const { shown, hidden } = this.shown(steps);
    const greatest = greatestSize(shown.map((index) => weighted(steps.keys[index])));
    const table = make(
      "table",
      { class: "numbers steps-table" },
      make("thead", {}, this.heading(columns)),
      make("tbody", {}, ...shown.map((index) => this.row(index, columns, greatest))),
      make("tfoot", {}, ...this.foot(columns, hidden)),
    );
    this.root = make(
      "div",
      {},
      make("div", { class: "wide" }, table),
      make(
        "p",
        { class: "hint" },
        term("lse", "lse"),
        " ",
        say("steps.from"),
        " ",
        datum(`= ${numberText(steps.lse, 4)}`),
      ),
    );
    return this.root;
  }

  unfold(more) {
    this.unfolded += more;
    const before = this.root;
    before.replaceWith(this.render(this.steps));
  }

  heading(columns) {
    const known = ["key", "score", "weight"];
    const head = (name, formula, text) => {
      const word = say(`steps.${name}`);
      const title = known.includes(name) ? term(name, word) : word;
      return make("th", { scope: "col", class: text }, title, make("small", { translate: "no" }, formula));
    };
    return make(
      "tr",
      {},
      head("key", "", "text"),
      ...columns.map(({ name, formula }) => head(name, formula)),
      head("weight", "w = exp(s − lse)"),
      ...quantityColumns(this.steps).map(({ name, formula }) => this.quantityHead(name, formula)),
      this.hasValues ? head("value", "w · v", "text") : null,
    );
  }

  quantityHead(name, formula) {
    const key = quantityKey(this.app.recording, name);
    return make(
      "th",
      { scope: "col", title: say(`${key}.about`) },
      say(key),
      make("small", { translate: "no" }, formula),
    );
  }

  get hasValues() {
    return Boolean(this.steps.keys[0]?.v);
  }

  row(index, columns, greatest) {
    const { state, inks } = this.app;
    const key = this.steps.keys[index];
    const pinned = index === state.now.key;
    const token = [make("small", { translate: "no" }, String(index)), datum(state.call.keyTokens[index], "token-text")];
    const weight = make("td", { class: "weight" }, datum(weightText(key.weight)));
    weight.style.setProperty("--share", key.weight.toFixed(4));
    const facts = { "data-key": index, "data-weight": key.weight, "data-dot": key.dot };
    const click = () => state.set({ key: pinned ? null : index }); // on the row; pressing the button gets here too
    return make(
      "tr",
      { ...facts, class: key.allowed ? null : "masked", "aria-selected": String(pinned), on: { click } },
      make(
        "td",
        { class: "text" },
        make("button", { type: "button", class: "link", "aria-expanded": String(pinned) }, ...token),
      ),
      ...columns.map((column) => make("td", {}, column.text(key))),
      weight,
      ...quantityColumns(this.steps).map((column) =>
        make("td", { "data-quantity": column.name, "data-value": key[column.name] }, datum(column.text(key))),
      ),
      this.hasValues ? make("td", { class: "text" }, vectorCanvas(weighted(key), 160, 22, greatest, inks)) : null,
    );
  }

  /** The sum of a quantity over all keys, where it means something: gradients do not add up. */
  totalOf(line, name) {
    if (line !== "total" || name === "gradient") return "";
    const values = this.steps.keys.map((key) => key[name] || 0);
    const [sum, size] = values.reduce(([total, all], value) => [total + value, all + Math.abs(value)], [0, 0]);
    return datum(valueText(Math.abs(sum) < ROUNDING * size ? 0 : sum));
  }

  /** What is folded away, the learned sink, the total. */
  foot(columns, hidden) {
    const { keys } = this.steps;
    const sum = (indices) => indices.reduce((total, index) => total + keys[index].weight, 0);
    const line = (name, text, weight) =>
      make(
        "tr",
        { class: name },
        make("td", { class: "text" }, text), // it continues above the empty cells
        ...columns.map(() => make("td")),
        make("td", { "data-total": name }, datum(weightText(weight))),
        ...quantityColumns(this.steps).map((column) => make("td", {}, this.totalOf(name, column.name))),
        this.hasValues ? make("td") : null,
      );
    const lines = [];
    if (hidden.length > 0) {
      const next = hidden.slice(0, MORE_KEYS);
      lines.push(
        line(
          "rest",
          press(say("steps.more", { count: next.length, share: shareText(sum(next)) }), () => this.unfold(MORE_KEYS)),
          sum(hidden),
        ),
      );
    } else if (this.unfolded > 0)
      lines.push(
        line(
          "rest",
          press(say("steps.fewer"), () => this.unfold(-this.unfolded)),
          0,
        ),
      );
    if (this.steps.sink !== null) lines.push(line("sink", say("steps.sink"), sinkShare(this.steps)));
    return [...lines, line("total", say("steps.total"), sum(keys.map((_, index) => index)) + sinkShare(this.steps))];
  }
}

function hasBias({ keys }) {
  return keys.some((key) => key.allowed && key.bias !== 0);
}

function weighted({ v, weight }) {
  return v ? v.map((value) => value * weight) : new Float32Array(0);
}
