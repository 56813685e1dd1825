// The bar above the map: which head, what a cell shows, what is hidden, how it is coloured; and the search.

import { colourControls, field, fillBar, headControls, quantityControls } from "/assets/page/controls.js";
import { choice, make, segments } from "/assets/page/elements.js";
import { say } from "/assets/page/languages.js";

/** Builds the bar for the present state. */
export function renderMapControls(bar, app) {
  fillBar(bar, [
    ...viewControls(app),
    ...headControls(app),
    ...quantityControls(app),
    ...cellControls(app),
    make("span", { class: "push" }),
    ...colourControls(app),
  ]);
}

/** The map, or the text by windows; cross-attention has two texts, so only the map. */
function viewControls({ state }) {
  if (state.call.kind === "cross") return [];
  const options = ["map", "text"].map((name) => [name, say(name === "map" ? "app.map" : "view.text")]);
  return [
    field(
      "view",
      "",
      segments(options, state.now.view, (view) => state.set({ view }), say("views")),
    ),
  ];
}

function cellControls({ state, keySpecial }) {
  const { now } = state;
  const weighs = now.what === "weight";
  const shows = ["max", "mean"].map((name) => [name, say(name === "max" && !weighs ? "map.furthest" : `map.${name}`)]);
  const sinks = ["show", "first", ...(keySpecial.size ? ["special"] : [])].map((name) => [name, say(`sinks.${name}`)]);
  return [
    field(
      "show",
      say("map.show"),
      segments(shows, now.show, (show) => state.set({ show }), say("map.show")),
    ),
    field(
      "sinks",
      say("sinks"),
      choice(sinks, now.sinks, (value) => state.set({ sinks: value })),
      "sink",
    ),
  ];
}

/** The search field: finds text among the tokens of one side, and goes from place to place. */
export class MapSearch {
  constructor(app) {
    this.app = app;
    this.at = -1;
    app.found = [];
    app.matches = [];
    this.count = make("small", { class: "match-count", "aria-live": "polite" });
    this.input = make("input", {
      type: "search",
      placeholder: say("map.search"),
      "aria-label": say("map.search"),
      on: {
        input: () => this.look(),
        keydown: (event) => event.key === "Enter" && this.step(event.shiftKey ? -1 : 1),
      },
    });
    const options = ["query", "key"].map((side) => [side, say(`map.${side}`)]);
    this.sides = make(
      "span",
      { class: "search-sides" },
      segments(options, app.state.now.side, (side) => this.turn(side), say("map.side")),
    );
    this.root = make("div", { class: "map-search" }, this.input, this.sides, this.count);
  }

  turn(side) {
    this.app.state.set({ side });
    for (const button of this.sides.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.textContent === say(`map.${side}`)));
    this.look();
  }

  look() {
    const { app } = this;
    app.found = this.input.value.trim() ? app.searchOf(app.state.now.side).matches(this.input.value) : [];
    app.matches = app.found.map(({ from }) => from);
    this.at = -1;
    this.count.textContent = !this.input.value.trim()
      ? ""
      : app.matches.length
        ? say("find.count", { count: app.matches.length.toLocaleString("en") })
        : say("map.nomatch");
    app.view.paint();
    app.text.mark();
  }

  step(by) {
    const { app } = this;
    if (app.matches.length === 0) return;
    const from = this.at < 0 && by < 0 ? 0 : this.at; // backwards, the last match is the first
    this.at = (from + by + app.matches.length) % app.matches.length;
    this.count.textContent = say("map.matches", { at: this.at + 1, count: app.matches.length });
    const token = app.matches[this.at];
    if (app.state.now.side === "query") app.goToQuery(token);
    else app.view.goTo(null, token);
  }
}
