// A sentence: type words, change any number of the vectors and matrices, and every step follows.

import { choice, make, press, segments } from "../../page/assets/elements.js";
import { say } from "../../page/assets/languages.js";
import { CellGrid } from "./cell_grid.js";
import { openPlayable } from "./frame.js";
import { maskField } from "./mask_field.js";
import { maskPicture } from "./mask_picture.js";
import { originLine } from "./number_origin.js";
import {
  canRotate,
  firstSentence,
  HEAD_COUNTS,
  MOST_WORDS,
  POSITION_KINDS,
  sentenceResult,
  vectorOf,
} from "./sentence_state.js";
import { originOf, stepsOf } from "./sentence_steps.js";
import { WordLines } from "./word_lines.js";

const CHAPTERS = ["words", "project", "weigh", "collect"];
const MASK_CHOICES = ["", "causal", "window(1, 1)", "causal & window(1, 0)"];

class SentencePage {
  constructor(place, state, { data, language, inks }) {
    this.place = place;
    this.state = state;
    this.start = data.start;
    this.language = language;
    this.inks = inks;
    this.grids = new Map();
    this.marked = [];
    this.build();
  }

  build() {
    const { state } = this;
    this.input = make("input", {
      type: "text",
      class: "sentence-input",
      value: state.text,
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": say("sentence.words"),
      on: { input: () => this.set({ text: this.input.value }) },
    });
    this.field = maskField(state.mask, (mask) => this.set({ mask }), this.language);
    this.field.input.setAttribute("placeholder", say("sentence.mask.none"));
    this.maskPlace = make("div", { class: "mask-small" });
    this.note = make("p", { class: "caption", role: "status" });
    this.controls = make("div", { class: "controls" });
    this.picture = make("div", { class: "lines-place" });
    this.chapters = make("div", { class: "chapters" });
    this.origin = make("aside", { class: "origin", "aria-label": say("sentence.origin"), "aria-live": "polite" });
    this.place.replaceChildren(
      make(
        "div",
        { class: "beginning" },
        make("section", { class: "card" }, this.input, this.note, this.controls),
        make(
          "section",
          { class: "card" },
          make("h2", {}, say("sentence.looks")),
          this.picture,
          make("p", { class: "caption" }, say("sentence.looks.says")),
        ),
      ),
      this.chapters,
      this.origin,
    );
    this.showControls();
    this.pointAway();
    this.update(true);
  }

  showControls() {
    const { state } = this;
    const field = (label, ...parts) =>
      make("div", { class: "field" }, make("span", { class: "name" }, label), ...parts);
    const change = (patch) => {
      this.set(patch);
      this.showControls();
    };
    const preset = (name) => () => {
      Object.assign(state, firstSentence(this.start, name));
      this.build();
    };
    this.controls.replaceChildren(
      field(
        say("sentence.start"),
        make(
          "div",
          { class: "tools" },
          ...["explain", "whole"].map((name) =>
            press(say(`sentence.start.${name}`), preset(name), {
              class: "small",
              "aria-pressed": String(state.preset === name),
            }),
          ),
        ),
      ),
      field(
        say("sentence.heads"),
        segments(
          HEAD_COUNTS.map((count) => [count, String(count)]),
          state.heads,
          (heads) =>
            change({ heads, ...(canRotate(heads) || state.positions !== "rotary" ? {} : { positions: "none" }) }),
          say("sentence.heads"),
        ),
      ),
      field(
        say("sentence.positions"),
        choice(
          POSITION_KINDS.filter((kind) => kind !== "rotary" || canRotate(state.heads)).map((kind) => [
            kind,
            say(`sentence.positions.${kind}`),
          ]),
          state.positions,
          (positions) => change({ positions }),
          { "aria-label": say("sentence.positions") },
        ),
      ),
      field(
        say("sentence.mask"),
        make(
          "div",
          { class: "mask-choice" },
          make("div", { class: "mask-beside" }, this.field.root, this.maskPlace),
          make(
            "div",
            { class: "tools" },
            ...MASK_CHOICES.map((text) =>
              press(text || say("sentence.mask.none"), () => this.field.set(text), { class: "small code" }),
            ),
          ),
        ),
      ),
    );
  }

  /** Changes the state; returns what is wrong with the mask, if anything is. */
  set(patch) {
    Object.assign(this.state, patch);
    return this.update();
  }

  update(fresh = false) {
    const result = sentenceResult(this.state);
    this.note.textContent = result.words.length
      ? result.left
        ? say("sentence.toolong", { most: MOST_WORDS })
        : ""
      : say("sentence.empty");
    if (!result.steps || result.problem) return result.problem;
    this.result = result;
    const steps = stepsOf(this.state, result);
    const shape = JSON.stringify([result.words, steps.map((step) => [step.name, step.stacks.length])]);
    if (fresh || shape !== this.shape) this.rebuild(steps);
    else this.refresh(steps);
    this.shape = shape;
    const { each } = result.steps;
    const mean = each[0].weights.map((row, i) =>
      row.map((_, j) => each.reduce((sum, head) => sum + head.weights[i][j], 0) / each.length),
    );
    this.lines.show(mean);
    this.showMask(result);
    if (this.pointed) this.point(this.pointed);
    return null;
  }

  /** The mask, drawn small beside its text. */
  showMask({ allowed, mask }) {
    const drawing = mask
      ? maskPicture(allowed, { label: mask.text(), room: 96, inks: this.inks, pointed: () => {} })
      : "";
    this.maskPlace.replaceChildren(drawing);
  }

  /** Other numbers in the same grids. */
  refresh(steps) {
    for (const step of steps) {
      step.stacks.forEach((values, head) => {
        this.grids.get(`${step.name} ${head}`).refresh(values);
      });
    }
  }

  rebuild(steps) {
    const { result } = this;
    this.grids.clear();
    this.steps = new Map(steps.map((step) => [step.name, step]));
    this.pointAway();
    this.lines = new WordLines(result.words, { label: say("sentence.looks"), colour: this.inks.accent });
    this.picture.replaceChildren(this.lines.root);
    let number = 0;
    this.chapters.replaceChildren(
      ...CHAPTERS.map((chapter) =>
        make(
          "section",
          { class: `chapter ${chapter}` },
          make("h2", {}, say(`sentence.chapter.${chapter}`)),
          make("p", { class: "caption" }, say(`sentence.chapter.${chapter}.says`)),
          make(
            "div",
            { class: "steps" },
            ...steps
              .filter((step) => step.chapter === chapter)
              .map((step) => {
                number += 1;
                return this.card(step, number);
              }),
          ),
        ),
      ),
    );
  }

  card(step, number) {
    const names = (which, count) =>
      which === "words" ? step.words : which === "none" ? [""] : Array.from({ length: count }, (_, at) => String(at));
    const title = stepTitle(step);
    const grids = step.stacks.map((values, head) => {
      const rows = names(step.rows, values.length);
      const columns = names(step.columns, values[0].length);
      const grid = new CellGrid({
        values,
        rows,
        columns,
        weights: step.name === "weights",
        inks: this.inks,
        label: step.stacks.length > 1 ? `${title}, ${say("head", { head })}` : title,
        name: (i, j) => [title, rows[i], columns[j]].filter(Boolean).join(", "),
        point: (i, j) => this.point({ step: step.name, head, i, j }),
        edit: step.edited ? (i, j, value) => this.edit(step.edited, i, j, value) : null,
      });
      this.grids.set(`${step.name} ${head}`, grid);
      return make(
        "div",
        { class: "grid-place" },
        step.stacks.length > 1 ? make("small", {}, say("head", { head })) : null,
        grid.root,
      );
    });
    const shape = [
      ...(step.stacks.length > 1 ? [step.stacks.length] : []),
      step.stacks[0].length,
      step.stacks[0][0].length,
    ];
    return make(
      "article",
      { class: `step of-${step.name} ${step.edited ? "edited" : ""}` },
      make("h3", {}, make("i", {}, String(number)), " ", title, " ", step.formula()),
      make("p", { class: "caption" }, stepSays(step), " ", make("small", { class: "shape" }, shape.join(" × "))),
      make("div", { class: "grids" }, ...grids),
    );
  }

  edit(name, i, j, value) {
    this.state.preset = null;
    if (name === "x") vectorOf(this.state, this.result.words[i])[j] = value;
    else this.state.matrices[name][i][j] = value;
    this.update();
  }

  /** Shows where a number comes from, and marks the numbers that it comes from. */
  point(cell) {
    this.pointed = cell;
    for (const [grid, i, j, name] of this.marked) grid.mark(i, j, name, false);
    const step = this.steps.get(cell.step);
    const grid = this.grids.get(`${cell.step} ${cell.head}`);
    if (!step || !grid) return;
    const origin = originOf(this.state, this.result, cell);
    this.marked = origin.sources.map(({ step: from, head, i, j }) => [
      this.grids.get(`${from} ${head}`),
      i,
      j,
      "source",
    ]);
    this.marked = this.marked.filter(([found]) => found);
    this.marked.push([grid, cell.i, cell.j, "pointed"]);
    for (const [found, i, j, name] of this.marked) found.mark(i, j, name, true);
    const row = step.rows === "words" ? step.words[cell.i] : String(cell.i);
    const column = step.columns === "words" ? step.words[cell.j] : step.columns === "none" ? null : String(cell.j);
    const where = column === null ? row : `${row}, ${column}`;
    this.origin.replaceChildren(originLine(`${stepTitle(step)} (${where})`, step.formula(), origin));
  }

  pointAway() {
    this.pointed = null;
    this.marked = [];
    this.origin.replaceChildren(make("p", {}, say("sentence.point")));
  }
}

const OWN_TITLES = ["added", "placed", "biased"];
const OWN_SAYS = [...OWN_TITLES, "w_q"];

function stepTitle({ name, turned }) {
  if (turned && name !== "v") return say(`sentence.${name}.turned.title`);
  return say(OWN_TITLES.includes(name) ? `sentence.${name}.title` : `explain.${name}.title`);
}

function stepSays({ name, channels, turned }) {
  if (turned && name !== "v") return say("sentence.turned.says");
  return say(OWN_SAYS.includes(name) ? `sentence.${name}.says` : `explain.${name}.says`, { channels });
}

openPlayable(
  (data) => firstSentence(data.start),
  (place, state, frame) => new SentencePage(place, state, frame),
);
