// The bar of controls: what is shown, and through which lens.

import { PALETTES } from "./colours.js";
import { choice, make, press, segments } from "./elements.js";
import { explainedTerm, term } from "./explained.js";
import { say } from "./languages.js";
import { shareText } from "./numbers.js";
import { explainedQuantity, isSigned, quantityKey } from "./quantities.js";
import { PAIRS } from "./state.js";

/** Builds the bar for the present state. */
export function renderControls(bar, app) {
  fillBar(bar, [
    ...compareControls(app),
    ...headControls(app),
    ...quantityControls(app),
    ...lensControls(app),
    make("span", { class: "push" }, ...colourControls(app)),
  ]);
  fitBar(bar);
}

/** Sets the controls as close as it takes to stay on one line; if nothing helps, the colours come below the others. */
export function fitBar(bar) {
  for (const closeness of ["", "1", "2"]) {
    bar.dataset.close = closeness;
    if (bar.lastElementChild.offsetTop < bar.firstElementChild.offsetTop + bar.firstElementChild.offsetHeight) return;
  }
}

/** Fills a bar of controls; the focus stays on the control that had it. */
export function fillBar(bar, parts) {
  const active = /** @type {HTMLElement} */ (document.activeElement);
  const focused = bar.contains(active) ? active.dataset.control : null;
  const pressed = focused && active.textContent;
  bar.replaceChildren(...parts);
  if (!focused) return;
  const same = [...bar.querySelectorAll(`[data-control="${focused}"]:is(button, select, input):enabled`)];
  (same.find((element) => element.textContent === pressed) ?? same[0])?.focus();
}

/** Which kind of attention, which run, which layer, which head. */
export function headControls({ recording, state }) {
  const { now, call } = state;
  const kinds = [...new Set(recording.calls.map((one) => one.kind))];
  const runs = [...new Set(recording.calls.map((one) => one.run))];
  const alike = recording.calls.filter((one) => one.kind === call.kind && one.run === call.run);
  const parts = [];
  if (kinds.length > 1) {
    const options = kinds.map((kind) => [kind, say(`kind.${kind}`)]);
    parts.push(
      field(
        "kind",
        say("kind"),
        segments(options, call.kind, (kind) => state.set(nearestCall(recording, call, { kind })), say("kind")),
      ),
    );
  }
  if (runs.length > 1) {
    const options = runs.map((run) => [run, String(run)]);
    parts.push(
      field(
        "run",
        say("run"),
        choice(options, call.run, (run) => state.set(nearestCall(recording, call, { run: Number(run) }))),
      ),
    );
  }
  const twice = new Set(alike.map((one) => one.layer)).size < alike.length;
  const layers = alike.map((one) => [one.index, twice ? `${one.layer} · ${one.name}` : String(one.layer)]);
  parts.push(stepper("layer", layers, now.call, (index) => state.set({ call: index })));
  parts.push(
    stepper(
      "head",
      call.heads.map((number, head) => [head, String(number)]),
      now.head,
      (head) => state.set(chooseHead(state, head)),
    ),
  );
  return parts;
}

/** Where two recordings are compared: both, or their difference, if it can be taken. */
function compareControls({ recording, state }) {
  if (!recording.other) return [];
  if (!recording.what.includes("difference"))
    return [make("span", { class: "hint", "data-control": "compare" }, explainedTerm("compare.apart"))];
  const options = [
    ["weight", say("compare.beside")],
    ["difference", say("what.difference")],
  ];
  const shown = state.now.what === "difference" ? "difference" : "weight";
  const control = segments(options, shown, (what) => state.set({ what }), say("compare"));
  control.title = say("what.difference.about");
  return [field("compare", "", control)];
}

/** What is shown of a pair; nothing where there are weights alone. */
export function quantityControls({ recording, state }) {
  const offered = recording.what.filter((what) => what !== "difference"); // it has its own switch
  const { view, group } = state.now;
  // What goes through all layers has no other quantity.
  const through = ["text", "picture"].includes(view) && ["relevance", "rollout"].includes(group);
  if (offered.length < 2 || through) return [];
  const keys = offered.map((what) => [what, quantityKey(recording, what)]);
  const control = field(
    "what",
    say("what"),
    choice(
      keys.map(([what, key]) => [what, say(key)]),
      state.now.what,
      (what) => state.set({ what }),
    ),
  );
  const about = keys.map(([, key]) => explainedQuantity(key)).join("\n\n");
  control.classList.add("what");
  control.querySelector(".name").replaceChildren(explainedTerm("what", say("what"), about));
  return [control];
}

function lensControls(app) {
  const { recording, state } = app;
  const { now } = state;
  const special = recording.calls.some((call) => call.keySpecial.some(Boolean) || call.querySpecial.some(Boolean));
  const pieces = recording.calls.some((call) => hasPieces(call.keyWords) || hasPieces(call.queryWords));
  const toggle = (name, off, on, possible) => {
    const box = make("input", {
      type: "checkbox",
      "data-control": name,
      disabled: !possible,
      on: { change: () => state.set({ [name]: box.checked ? on : off }) },
    });
    box.checked = now[name] === on;
    const words = ["", ".short"].map((short) => make("span", { class: short ? "short" : "long" }, say(name + short)));
    return make("label", { class: "toggle" }, box, ...words);
  };
  const sinks = ["show", "first", ...(special ? ["special"] : [])].map((name) => [name, say(`sinks.${name}`)]);
  const parts = [
    toggle("special", "show", "hide", special),
    toggle("words", "apart", "merge", pieces),
    field(
      "sinks",
      say("sinks"),
      choice(sinks, now.sinks, (value) => state.set({ sinks: value })),
      "sink",
    ),
  ];
  if (recording.sentenceB) {
    const pairs = PAIRS.map((name) => [name, say(`pair.${name}`)]);
    parts.unshift(
      field(
        "pair",
        say("pair"),
        choice(pairs, now.pair, (pair) => state.set({ pair })),
      ),
    );
  }
  if (now.sinks !== "show") {
    const removed = app.look().removed(now.head);
    const mean = removed.reduce((sum, share) => sum + share, 0) / Math.max(1, removed.length);
    parts.push(
      make(
        "span",
        { class: "removed", "data-removed": mean, title: say("removed.how") },
        say("removed", { share: shareText(mean) }),
      ),
    );
  }
  return parts;
}

/** Which scale and which colours; signed numbers have colours of their own. */
export function colourControls({ recording, state }) {
  const { now } = state;
  const scales = ["linear", "log"].map((name) => [name, say(`scale.${name}`)]);
  const palettes = field(
    "palette",
    say("palette"),
    choice(
      PALETTES.map((name) => [name, say(`palette.${name}`)]),
      now.palette,
      (palette) => state.set({ palette }),
    ),
  );
  return [
    field(
      "scale",
      say("scale"),
      segments(scales, now.scale, (scale) => state.set({ scale }), say("scale")),
    ),
    ...(isSigned(recording, now.what) ? [] : [palettes]),
  ];
}

/** Choosing a head also shows its lines, unless the lines of all heads are shown. */
export function chooseHead(state, head) {
  return state.now.heads === null && state.now.view !== "lines" ? { head } : { head, heads: [head] };
}

/** The call most like another one, of another kind or run: the same layer, else the first. */
export function nearestCall(recording, call, wanted) {
  const goal = { kind: call.kind, run: call.run, ...wanted };
  const fits = (one) => one.kind === goal.kind && one.run === goal.run;
  const found = recording.calls.filter(fits);
  const alike = found.length
    ? found
    : recording.calls.filter((one) => Object.entries(wanted).every(([name, value]) => one[name] === value));
  return { call: (alike.find((one) => one.layer === call.layer) ?? alike[0]).index };
}

function stepper(name, options, value, onChange) {
  const at = options.findIndex(([key]) => key === value);
  const arrow = (text, label, to) =>
    press(text, () => onChange(options[to][0]), { class: null, "aria-label": label, disabled: !options[to] });
  const select = choice(options, value, (key) => onChange(Number(key)));
  return field(
    name,
    say(name),
    make(
      "span",
      { class: "stepper" },
      arrow("‹", say(`${name}.before`), at - 1),
      select,
      arrow("›", say(`${name}.next`), at + 1),
    ),
  );
}

/** A control with its name in front, which may be a word to explain. */
export function field(name, label, control, explained = "") {
  const inner = control.matches("select") ? control : control.querySelector("select");
  inner?.setAttribute("aria-label", label);
  for (const part of [control, ...control.querySelectorAll("button, select")]) part.dataset.control = name;
  const word = explained ? term(explained, label) : label;
  return make("div", { class: "field" }, make("span", { class: "name" }, word), control);
}

function hasPieces(words) {
  return words.some((word, at) => at > 0 && word >= 0 && word === words[at - 1]);
}
