// One query in the plane: drag it and the keys, and the weights, the output and the gradient follow.

import { make, press } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { numberText, shareText } from "../../page/assets/numbers.js";
import { brackets, displayed, drawn, frac, mathName, mathRow, redraw, root, sub, tinted } from "./drawing.js";
import { openPlayable, slider, tick } from "./frame.js";
import { glide, PLANE_REACH, planeOf } from "./plane.js";
import { labelPlaces } from "./plane_labels.js";
import { FEWEST_KEYS, firstQuery, MOST_KEYS, PRESETS, queryResult, withKeys } from "./query_state.js";

class QueryPage {
  constructor(place, state, { inks }) {
    this.state = state;
    this.inks = inks;
    this.place = place;
    this.build();
  }

  /** Everything; `update` moves what is there. */
  build() {
    const { state } = this;
    this.plane = planeOf(say("one-query.plane"), PLANE_REACH);
    this.handles = [];
    this.drawHandles();
    this.rows = make("div", { class: "key-rows", role: "table", "aria-label": say("one-query.table") });
    this.said = make("p", { class: "says", "aria-live": "polite" });
    this.meter = make("div", { class: "meter" });
    this.formula = make("div", { class: "formula" });
    const dimensions = slider(
      say("one-query.dimension"),
      { min: 1, max: 9, step: 1, value: Math.log2(state.channels), shown: (value) => String(2 ** value) },
      (value) => this.set({ channels: 2 ** value }),
    );
    const temperature = slider(
      say("one-query.temperature"),
      { min: -3, max: 3, step: 0.25, value: Math.log2(state.temperature), shown: (value) => numberText(2 ** value, 2) },
      (value) => this.set({ temperature: 2 ** value }),
    );
    this.place.replaceChildren(
      make(
        "section",
        { class: "card plane-card" },
        this.plane.svg,
        make("p", { class: "caption" }, say("one-query.drag")),
        this.tools(),
      ),
      make(
        "section",
        { class: "card" },
        this.formula,
        this.rows,
        this.said,
        make(
          "div",
          { class: "sliders" },
          temperature,
          dimensions,
          tick(say("one-query.scaled"), state.scaled, (scaled) => this.set({ scaled })),
          tick(say("one-query.own"), state.values !== null, (own) => {
            this.set({ values: own ? state.keys.map(([x, y]) => [-y, x]) : null });
            this.build();
          }),
        ),
        this.meter,
      ),
    );
    this.update();
  }

  tools() {
    const count = this.state.keys.length;
    const change = (keys) => () => {
      Object.assign(this.state, withKeys(this.state, keys));
      this.build();
    };
    return make(
      "div",
      { class: "tools" },
      press("+", change(count + 1), {
        class: "small",
        disabled: count >= MOST_KEYS,
        "aria-label": say("one-query.add"),
        title: say("one-query.add"),
      }),
      press("−", change(count - 1), {
        class: "small",
        disabled: count <= FEWEST_KEYS,
        "aria-label": say("one-query.remove"),
        title: say("one-query.remove"),
      }),
      ...Object.keys(PRESETS).map((name) =>
        press(
          say(`one-query.preset.${name}`),
          () => {
            Object.assign(this.state, firstQuery(name));
            this.build();
          },
          { class: "small" },
        ),
      ),
    );
  }

  set(patch) {
    Object.assign(this.state, patch);
    this.update();
  }

  colour(key) {
    return this.inks.head(key + 1);
  }

  /** The word that a key is, or its number. */
  nameOf(key) {
    return this.state.words[key] ?? say("one-query.key", { key: key + 1 });
  }

  drawHandles() {
    const { state, plane } = this;
    const { layer } = plane;
    layer.replaceChildren();
    this.hull = drawn("g", { class: "hull" });
    this.output = drawn(
      "g",
      { class: "output" },
      drawn("rect", { x: -8, y: -8, width: 16, height: 16, transform: "rotate(45)" }),
    );
    this.outputLabel = drawn("text", { class: "label", "text-anchor": "middle" }, say("one-query.output"));
    this.output.append(this.outputLabel);
    layer.append(this.hull);
    const handle = (label, at, moved, { colour, kind, shape = "arrow" }) => {
      const arrow = shape === "square" ? null : drawn("line", { class: "arrow", stroke: colour });
      const tip = drawn(
        "g",
        { class: `handle ${kind}`, tabindex: 0, role: "button", "aria-roledescription": say("one-query.handle") },
        drawn("circle", { class: "reach", r: 26 }),
        shape === "square"
          ? drawn("rect", { x: -9, y: -9, width: 18, height: 18, rx: 3, fill: colour })
          : drawn("circle", { class: "knob", r: 11, fill: colour }),
        drawn("text", { class: "label", "text-anchor": "middle", fill: colour }, label),
      );
      glide(plane, tip, at, (point) => {
        moved(point);
        this.update();
      });
      if (arrow) layer.append(arrow);
      this.handles.push({ arrow, tip, at, label, kind });
    };
    this.handles = [];
    state.keys.forEach((_, j) => {
      handle(
        this.nameOf(j),
        () => state.keys[j],
        (point) => (state.keys[j] = point),
        {
          colour: this.colour(j),
          kind: "key",
        },
      );
    });
    if (state.values) {
      state.values.forEach((_, j) => {
        handle(
          say("one-query.value", { key: j + 1 }),
          () => state.values[j],
          (point) => (state.values[j] = point),
          {
            colour: this.colour(j),
            kind: "value",
            shape: "square",
          },
        );
      });
    }
    handle(
      say("one-query.query"),
      () => state.query,
      (point) => (state.query = point),
      {
        colour: this.inks.ink,
        kind: "query",
      },
    );
    layer.append(this.output, ...this.handles.map((one) => one.tip));
  }

  update() {
    const found = queryResult(this.state);
    this.found = found;
    this.movePlane(found);
    this.showFormula();
    this.showRows(found);
    this.showMeter(found);
    const best = found.weights.indexOf(Math.max(...found.weights));
    const even = Math.max(...found.weights) - Math.min(...found.weights) < 0.02;
    const which = even ? "even" : found.weights[best] > 0.99 ? "hard" : "best";
    this.said.textContent = say(`one-query.says.${which}`, {
      key: this.state.words[best] ?? best + 1,
      share: shareText(found.weights[best]),
    });
  }

  movePlane({ weights, output }) {
    const { state, plane } = this;
    for (const { arrow, tip, at, label } of this.handles) {
      const [x, y] = plane.place(at());
      const where = at().map((c) => numberText(c, 2));
      redraw(tip, { transform: `translate(${x} ${y})`, "aria-label": `${label}: ${where.join(", ")}` });
      if (arrow) {
        const [zx, zy] = plane.place([0, 0]);
        redraw(arrow, { x1: zx, y1: zy, x2: x, y2: y });
      }
    }
    state.keys.forEach((_, j) => {
      const { arrow, tip } = this.handles[j];
      redraw(arrow, { "stroke-width": 2 + 12 * weights[j], "stroke-opacity": 0.25 + 0.75 * weights[j] });
      tip.style.setProperty("--size", String(0.75 + 0.5 * weights[j]));
    });
    redraw(this.handles.at(-1).arrow, { "stroke-width": 4 });
    const [x, y] = plane.place(output);
    redraw(this.output, { transform: `translate(${x} ${y})` });
    this.moveLabels(output);
    const values = state.values ?? state.keys;
    this.hull.replaceChildren(
      ...values.map((value, j) => {
        const [vx, vy] = plane.place(value);
        return drawn("line", {
          x1: x,
          y1: y,
          x2: vx,
          y2: vy,
          stroke: this.colour(j),
          "stroke-width": 1 + 5 * weights[j],
        });
      }),
    );
  }

  /** Labels stay off each other and off the points. */
  moveLabels(output) {
    const texts = [...this.handles.map(({ tip }) => tip.querySelector("text")), this.outputLabel];
    const points = [...this.handles.map(({ at }) => at()), output];
    const marks = points.map((point, at) => {
      const [x, y] = this.plane.place(point);
      const { width, height } = texts[at].getBBox();
      return { x, y, width, height, below: texts[at] === this.outputLabel || point[1] < 0 };
    });
    labelPlaces(marks, this.plane.edge).forEach(({ x, y }, at) => {
      redraw(texts[at], { dx: x, dy: y + 0.3 * marks[at].height });
    });
  }

  showFormula() {
    const { temperature, scaled } = this.state;
    const below = [...(temperature === 1 ? [] : ["τ"]), ...(scaled ? [root("d")] : [])];
    const score = mathRow(tinted("of-query", "q"), "·", tinted("of-key", sub("k", "j")));
    this.formula.replaceChildren(
      displayed(
        sub("w", "j"),
        "=",
        mathName("softmax"),
        brackets(below.length ? frac(score, mathRow(...below)) : score),
      ),
      displayed(tinted("of-output", mathName(say("one-query.output"))), "=", "∑", sub("w", "j"), sub("v", "j")),
    );
  }

  showRows({ dots, scores, weights, slopes }) {
    const cell = (text, name = "", title = null) => make("span", { class: name || null, role: "cell", title }, text);
    const { scaled, channels, temperature } = this.state;
    const divisor = (scaled ? Math.sqrt(channels) : 1) * temperature;
    const head = make(
      "div",
      { class: "key-row head", role: "row" },
      ...["key", "dot", "score", "weight", "slope"].map((name) =>
        make(
          "span",
          { role: "columnheader", class: name },
          say(`one-query.column.${name}`, { divisor: numberText(divisor, 2) }),
        ),
      ),
    );
    const rows = weights.map((weight, j) => {
      const bar = make("i", { class: "weight-bar" });
      bar.style.setProperty("--share", String(weight));
      bar.style.setProperty("--colour", this.colour(j));
      const chip = make("i", { class: "chip" });
      chip.style.background = this.colour(j);
      return make(
        "div",
        { class: "key-row", role: "row" },
        make("span", { role: "rowheader", class: "key" }, chip, this.nameOf(j)),
        cell(numberText(dots[j], 2), "dot"),
        cell(numberText(scores[j], 2), "score"),
        make("span", { role: "cell", class: "weight" }, bar, make("b", {}, numberText(weight, 3))),
        cell(numberText(slopes[j][j], 3), "slope"),
      );
    });
    this.rows.replaceChildren(head, ...rows);
  }

  showMeter({ learnable, spread }) {
    const { channels, scaled } = this.state;
    const bar = make("i", {});
    bar.style.setProperty("--share", String(Math.min(1, learnable)));
    const level = learnable > 0.5 ? "well" : learnable > 0.1 ? "weak" : "gone";
    this.meter.className = `meter ${level}`;
    this.meter.replaceChildren(
      make(
        "div",
        { class: "meter-head" },
        make("b", {}, say("one-query.gradient")),
        make("span", {}, shareText(learnable)),
      ),
      make("div", { class: "meter-bar" }, bar),
      make("p", { class: "caption" }, say(`one-query.gradient.${level}`)),
      channels > 2
        ? make(
            "p",
            { class: "caption" },
            say(scaled ? "one-query.spread.scaled" : "one-query.spread", { channels, spread: numberText(spread, 1) }),
          )
        : make("p", { class: "caption" }, say("one-query.plane.only")),
    );
  }
}

openPlayable(
  () => firstQuery(),
  (place, state, frame) => new QueryPage(place, state, frame),
);
