// The page: a header, a bar of controls, one view, a line of facts. Everything follows the state.

import { followAddress } from "./address.js";
import { CallView, SHOWN } from "./call_view.js";
import { renderControls } from "./controls.js";
import { openRecording } from "./data/payload.js";
import { datum, make, press } from "./elements.js";
import { closeExplanation } from "./explained.js";
import { download, exportName, exportPng, exportSvg } from "./export.js";
import { FindBar, foundIn } from "./find.js";
import { Help, pageHelp } from "./help.js";
import { listenForKeys } from "./keyboard.js";
import { say, speak, TEXTS } from "./languages.js";
import { numberText, valueText } from "./numbers.js";
import { comparedSize, greatestOfHeads, isSigned, quantityKey } from "./quantities.js";
import { Shading } from "./shading.js";
import { PageState, viewsOf } from "./state.js";
import { greatestPlaces } from "./text_weights.js";
import { inksOf, wearTheme } from "./theme.js";
import { foldTool, languageTool, themeTool, tool } from "./tools.js";
import { HeadsView } from "./views/heads.js";
import { LinesView } from "./views/lines.js";
import { linesInSight } from "./views/lines_drawing.js";
import { MatrixView } from "./views/matrix.js";
import { OverviewView } from "./views/overview.js";
import { PictureView } from "./views/picture.js";
import { SpeechView } from "./views/speech.js";
import { StepsView } from "./views/steps.js";
import { TextView } from "./views/text.js";

const VIEW_CLASSES = {
  text: TextView,
  overview: OverviewView,
  lines: LinesView,
  matrix: MatrixView,
  heads: HeadsView,
  steps: StepsView,
  picture: PictureView,
  speech: SpeechView,
};

// What the tabs, the controls and the line of facts depend on.
const FRAME = ["view", "call", "head", ...SHOWN, "scale", "palette"];

/** What the parts of the page share. */
class App {
  constructor(recording, root) {
    this.recording = recording;
    this.root = root;
    this.state = new PageState(recording);
    this.help = new Help(() => pageHelp(recording));
    this.callViews = new Map();
    this.opening = true; // until the first view has been shown
    this.closest = "matrix"; // the view that opens one head: the one used last
  }

  start() {
    followAddress(this.state);
    this.state.listen((now, changed) => this.follow(now, changed));
    listenForKeys(this);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
    this.build();
  }

  /** The present call through the present lens. */
  look() {
    return this.lookAt(this.state.now.call);
  }

  /** A call through the present lens; `what` in place of the present quantity. */
  lookAt(index, what = this.state.now.what) {
    const shown = { ...this.state.now, what };
    const name = [index, ...SHOWN.map((part) => shown[part])].join(" ");
    if (!this.callViews.has(name)) {
      if (this.callViews.size > 400) this.callViews.clear();
      const named = quantityKey(this.recording, what);
      this.callViews.set(name, new CallView(this.recording.calls[index], shown, named));
    }
    return this.callViews.get(name);
  }

  /** The key of the name of what is shown. */
  get named() {
    return quantityKey(this.recording, this.state.now.what);
  }

  /**
   * Which number has which colour: in some heads of a call, or in all heads of the page, where they are compared.
   * @param {any} call
   * @param {number[]} heads
   */
  shading(call = null, heads = []) {
    const { recording, inks, named } = this;
    const { what, scale } = this.state.now;
    const signed = isSigned(recording, what);
    const ramp = signed ? inks.signed : inks.ramp;
    const greatest = call ? greatestOfHeads(call, what, heads) : comparedSize(recording, what);
    return new Shading({ ramp, scale, signed, greatest, what, named, beyond: !call });
  }

  /** Opens one head in the view for single heads that was used last. */
  open(call, head) {
    this.state.set({ view: this.closest, call, head, heads: [head] });
    this.focusView();
  }

  /** The tokens of the present call that hold what is searched for. */
  found() {
    const { call, now } = this.state;
    if (this.foundFor?.call !== call || this.foundFor.find !== now.find)
      this.foundFor = { call, find: now.find, found: foundIn(call, now.find) };
    return this.foundFor.found;
  }

  /** Pins the key that the pinned query attends to most, and brings it into sight. */
  toStrongest() {
    const { now } = this.state;
    const look = this.look();
    const row = look.rowOf(now.query);
    if (row < 0) return;
    const weights = this.view.shownRow?.(row) ?? look.row(now.head, row);
    const [column] = greatestPlaces(weights, 1);
    if (column === undefined) return;
    this.state.set({ key: look.columns.first[column] });
    this.view.showPin?.();
  }

  /** The keyboard continues in the view: where it says, else at its beginning. */
  focusView() {
    (this.view.home ?? this.view.root).focus({ preventScroll: true });
  }

  follow(now, changed) {
    if (["language", "theme", "embed"].some((name) => changed.has(name))) {
      this.build();
      return;
    }
    if (changed.has("palette")) this.inks = inksOf(now);
    // The frame first, because it decides how much room the view has.
    if (FRAME.some((name) => changed.has(name))) this.renderFrame();
    if (changed.has("find") || changed.has("call")) this.find.update(now);
    if (changed.has("view")) this.openView(now);
    else this.view.update(now, changed);
  }

  /** Builds everything again, in another language or theme. */
  build() {
    const { now } = this.state;
    if (this.help.isOpen) this.help.close();
    speak(now.language);
    wearTheme(now.theme);
    this.inks = inksOf(now);
    const { title, model } = this.recording;
    document.title = `${title || model} · regard`;
    this.tabs = make("nav", { class: "tabs", role: "tablist", "aria-label": say("views") });
    this.bar = make("section", { class: "controls", "aria-label": say("controls") });
    closeExplanation();
    this.find = new FindBar(this);
    this.stage = make("main", { class: "stage" });
    this.facts = make("footer", { class: "facts" });
    // On small screens the controls are folded away; this says which head is shown.
    this.shown = make("span", { class: "now-shown" });
    const name = make("h1", {}, make("b", { translate: "no" }, "regard"), datum(title || model, "title"), this.shown);
    this.root.replaceChildren(
      make("header", { class: "top" }, name, this.tabs, this.tools(now)),
      this.bar,
      this.find.root,
      this.stage,
      this.facts,
      this.help.dialog,
    );
    this.root.classList.toggle("embedded", now.embed);
    this.renderFrame();
    this.openView(now);
  }

  tools({ language, theme }) {
    const choose = (patch) => this.state.set(patch);
    return make(
      "div",
      { class: "page-tools" },
      tool("SVG", say("export.svg"), () => this.save("svg"), { translate: "no" }),
      tool("PNG", say("export.png"), () => this.save("png"), { translate: "no" }),
      languageTool(language, choose),
      themeTool(theme, choose),
      tool("⌕", say("find"), () => this.find.open()),
      tool("?", say("help"), () => this.help.toggle()),
      foldTool(this.bar),
    );
  }

  async save(ending) {
    const content = ending === "svg" ? await exportSvg(this) : await exportPng(this);
    download(content, ending === "svg" ? "image/svg+xml" : "image/png", exportName(this, ending));
  }

  openView(now) {
    closeExplanation();
    const focused = this.stage.contains(document.activeElement);
    this.view?.destroy?.();
    this.view = new VIEW_CLASSES[now.view](this);
    if (now.view === "lines" || now.view === "matrix") this.closest = now.view;
    const panel = { role: "tabpanel", id: "view", "aria-labelledby": `tab-${now.view}`, tabindex: "-1" };
    for (const [name, value] of Object.entries(panel)) this.view.root.setAttribute(name, value);
    this.stage.replaceChildren(this.view.root);
    this.view.update(now, null);
    this.view.mounted?.();
    if (focused) this.view.root.focus({ preventScroll: true });
  }

  renderFrame() {
    const { now, call } = this.state;
    const tabs = viewsOf(this.recording).map((view, at) =>
      press(
        [make("kbd", { "aria-hidden": "true" }, String(at + 1)), say(`view.${view}`)],
        () => this.state.set({ view }),
        {
          class: null,
          role: "tab",
          id: `tab-${view}`,
          "aria-selected": String(view === now.view),
          "aria-controls": "view",
          "data-view": view,
        },
      ),
    );
    const focused = [...this.tabs.children].indexOf(document.activeElement);
    this.tabs.replaceChildren(...tabs);
    this.tabs.children[focused]?.focus();
    renderControls(this.bar, this);
    this.shown.textContent = `${say("layer.n", { layer: call.layer })} · ${say("head.n", { head: call.heads[now.head] })}`;
    const facts = [
      datum(this.recording.model),
      datum(call.name),
      say("size", { queries: call.queries, keys: call.keys }),
      ...(call.dense ? [say("dense")] : []),
      ...(Number.isFinite(call.error) ? [this.errorSaid(now.what, call)] : []),
    ];
    this.facts.replaceChildren(...facts.map((fact) => make("span", {}, fact)));
  }

  /** How exact the numbers are. */
  errorSaid(what, call) {
    if (what === "weight") return say("error", { error: numberText(call.error, 4) });
    const all = call.heads.map((_, head) => head);
    const greatest = greatestOfHeads(call, what, all);
    return say("error.what", {
      what: say(this.named),
      error: valueText(call.errorOf(what)),
      greatest: valueText(greatest),
    });
  }
}

const recording = await openRecording(document);
const app = new App(recording, document.getElementById("regard"));
app.start();
// For tests and for curious readers: everything that the page itself uses.
window.regard = {
  app,
  recording,
  state: app.state,
  texts: TEXTS,
  ready: async () => app.view.ready?.(),
  lines: () => linesInSight(app.view),
  exportSvg: () => exportSvg(app),
  exportPng: () => exportPng(app),
};
