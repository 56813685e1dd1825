// The bar above the map: which head, what a cell shows, what is hidden, how it is coloured; and the search.

import { PALETTES } from "../page/colours.js";
import { nearestCall } from "../page/controls.js";
import { choice, make, segments } from "../page/elements.js";
import { say } from "../page/languages.js";

/** Builds the bar anew; the focus stays where it was. */
export function renderMapControls(bar, app) {
  const focused = bar.contains(document.activeElement) ? document.activeElement.dataset.control : null;
  const pressed = focused && document.activeElement.textContent;
  bar.replaceChildren(...whichHead(app), ...whichCells(app), make("span", { class: "push" }), ...whichColour(app));
  if (!focused) return;
  const same = [...bar.querySelectorAll(`[data-control="${focused}"]`)];
  (same.find((element) => element.textContent === pressed) ?? same[0])?.focus();
}

function whichHead({ recording, state }) {
  const { now, call } = state;
  const parts = [];
  for (const name of ["kind", "run"]) {
    const values = [...new Set(recording.calls.map((one) => one[name]))];
    if (values.length < 2) continue;
    const options = values.map((value) => [value, name === "kind" ? say(`kind.${value}`) : String(value)]);
    const choose = (value) => state.set(nearestCall(recording, call, { [name]: name === "run" ? Number(value) : value }));
    parts.push(field(name, say(name), name === "kind" ? segments(options, call.kind, choose, say(name)) : choice(options, call.run, choose)));
  }
  const alike = recording.calls.filter((one) => one.kind === call.kind && one.run === call.run);
  const twice = new Set(alike.map((one) => one.layer)).size < alike.length;
  const layers = alike.map((one) => [one.index, twice ? `${one.layer} · ${one.name}` : String(one.layer)]);
  parts.push(stepper("layer", layers, now.call, (index) => state.set({ call: index })));
  parts.push(stepper("head", call.heads.map((number, head) => [head, String(number)]), now.head, (head) => state.set({ head })));
  return parts;
}

function whichCells({ state, keySpecial }) {
  const { now } = state;
  const shows = ["max", "mean"].map((name) => [name, say(`map.${name}`)]);
  const sinks = ["show", "first", ...(keySpecial.size ? ["special"] : [])].map((name) => [name, say(`sinks.${name}`)]);
  return [
    field("show", say("map.show"), segments(shows, now.show, (show) => state.set({ show }), say("map.show"))),
    field("sinks", say("sinks"), choice(sinks, now.sinks, (value) => state.set({ sinks: value }))),
  ];
}

function whichColour({ state }) {
  const { now } = state;
  const scales = ["linear", "log"].map((name) => [name, say(`scale.${name}`)]);
  return [
    field("scale", say("scale"), segments(scales, now.scale, (scale) => state.set({ scale }), say("scale"))),
    field("palette", say("palette"), choice(PALETTES.map((name) => [name, say(`palette.${name}`)]), now.palette, (palette) => state.set({ palette }))),
  ];
}

function stepper(name, options, value, onChange) {
  const at = options.findIndex(([key]) => key === value);
  const arrow = (text, label, to) =>
    make("button", { type: "button", "aria-label": label, disabled: !options[to], on: { click: () => onChange(options[to][0]) } }, text);
  const select = choice(options, value, (key) => onChange(Number(key)));
  return field(name, say(name), make("span", { class: "stepper" }, arrow("‹", say(`${name}.before`), at - 1), select, arrow("›", say(`${name}.next`), at + 1)));
}

function field(name, label, control) {
  (control.matches("select") ? control : control.querySelector("select"))?.setAttribute("aria-label", label);
  for (const part of [control, ...control.querySelectorAll("button, select")]) part.dataset.control = name;
  return make("div", { class: "field" }, make("span", { class: "name" }, label), control);
}

/** The search field: finds text among the tokens of one side, and goes from place to place. */
export class MapSearch {
  constructor(app) {
    this.app = app;
    this.at = -1;
    this.count = make("small", { class: "match-count", "aria-live": "polite" });
    this.input = make("input", { type: "search", placeholder: say("map.search"), "aria-label": say("map.search"), on: {
      input: () => this.look(),
      keydown: (event) => event.key === "Enter" && this.step(event.shiftKey ? -1 : 1),
    } });
    const options = ["query", "key"].map((side) => [side, say(`map.${side}`)]);
    this.sides = make("span", { class: "search-sides" }, segments(options, app.state.now.side, (side) => this.turn(side), say("map.side")));
    this.root = make("div", { class: "map-search" }, this.input, this.sides, this.count);
  }

  turn(side) {
    this.app.state.set({ side });
    for (const button of this.sides.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.textContent === say(`map.${side}`)));
    this.look();
  }

  look() {
    const { app } = this;
    app.matches = this.input.value.trim() ? app.searchOf(app.state.now.side).find(this.input.value) : [];
    this.at = -1;
    this.count.textContent = !this.input.value.trim() ? "" : app.matches.length ? app.matches.length.toLocaleString("en") : say("map.nomatch");
    app.view.paint();
  }

  step(by) {
    const { app } = this;
    if (app.matches.length === 0) return;
    this.at = (this.at + by + app.matches.length) % app.matches.length;
    this.count.textContent = say("map.matches", { at: this.at + 1, count: app.matches.length });
    const token = app.matches[this.at];
    if (app.state.now.side === "query") app.view.goTo(token, null);
    else app.view.goTo(null, token);
  }
}
