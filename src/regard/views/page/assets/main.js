// The page: a header, a bar of controls, one view, a line of facts. Everything follows the state.

import { followAddress } from "./address.js";
import { SHOWN } from "./call_view.js";
import { Comparison } from "./comparison.js";
import { fitBar, renderControls } from "./controls.js";
import { openRecording } from "./data/payload.js";
import { datum, make, press } from "./elements.js";
import { closeExplanation } from "./explained.js";
import { download, exportName, exportPng, exportSvg } from "./export.js";
import { FindBar } from "./find.js";
import { Help, pageHelp } from "./help.js";
import { listenForKeys } from "./keyboard.js";
import { say, speak, TEXTS } from "./languages.js";
import { showLoading } from "./layer_loading.js";
import { numberText, valueText } from "./numbers.js";
import { Pane } from "./pane.js";
import { greatestOfHeads } from "./quantities.js";
import { viewsOf } from "./state.js";
import { inksOf, wearTheme } from "./theme.js";
import { foldTool, languageTool, themeTool, tool } from "./tools.js";
import { linesInSight } from "./views/lines_drawing.js";

// What the tabs, the controls and the line of facts depend on.
const FRAME = ["view", "call", "head", "group", ...SHOWN, "scale", "palette"];

/** The first pane, and the frame around all of them. */
class App extends Pane {
  constructor(recording, root) {
    super(recording);
    this.root = root;
    this.help = new Help(() => pageHelp(recording));
    this.comparison = recording.other ? new Comparison(this) : null;
  }

  start() {
    followAddress(this.state);
    this.state.listen((now, changed) => this.follow(now, changed));
    this.comparison?.start();
    this.recording.layers.listen((what) => this.followLayers(what));
    listenForKeys(this);
    window.addEventListener("resize", () => fitBar(this.bar));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
    this.build();
  }

  /** The panes in sight. */
  get panes() {
    return this.comparison?.beside ? [this, this.comparison.second] : [this];
  }

  follow(now, changed) {
    if (["language", "theme", "embed"].some((name) => changed.has(name))) {
      this.build();
      return;
    }
    if (changed.has("palette")) this.inks = inksOf(now);
    if (changed.has("what")) this.arrange();
    // The frame first, because it decides how much room the view has.
    if (FRAME.some((name) => changed.has(name))) this.renderFrame();
    if (changed.has("find") || changed.has("call")) this.find.update(now);
    if (changed.has("view")) this.openView(now);
    else this.view.update(now, changed);
  }

  /** Follows what arrives of a long text: the call that was asked for, or what is shown of all heads. */
  followLayers(what) {
    if (what === "summaries") this.view.summarised?.();
    else showLoading(this.loading, this.recording);
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
    this.loading = make("div", { class: "layer-loading", hidden: true });
    showLoading(this.loading, this.recording);
    this.facts = make("footer", { class: "facts" });
    // On small screens the controls are folded away; this says which head is shown.
    this.shown = make("span", { class: "now-shown" });
    const name = make("h1", {}, make("b", { translate: "no" }, "regard"), datum(title || model, "title"), this.shown);
    this.root.replaceChildren(
      make("header", { class: "top" }, name, this.tabs, this.tools(now)),
      this.bar,
      this.find.root,
      this.loading,
      this.stage,
      this.facts,
      this.help.dialog,
    );
    this.root.classList.toggle("embedded", now.embed);
    this.renderFrame();
    this.arrange();
    this.openView(now);
  }

  /** Puts the panes in sight onto the stage. */
  arrange() {
    const { comparison, stage } = this;
    if (!comparison) stage.replaceChildren(this.place);
    else if (!stage.firstChild || stage.classList.contains("beside") !== comparison.beside) {
      comparison.arrange(stage);
      comparison.openSecond();
    }
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
          "aria-controls": this.panes.map(({ prefix }) => `${prefix}view`).join(" "),
          "data-view": view,
        },
      ),
    );
    const focused = [...this.tabs.children].indexOf(document.activeElement);
    this.tabs.replaceChildren(...tabs);
    this.tabs.children[focused]?.focus();
    const shown = this.tabs.querySelector('[aria-selected="true"]');
    // On a narrow screen the tabs scroll.
    if (shown) this.tabs.scrollLeft = shown.offsetLeft - (this.tabs.clientWidth - shown.offsetWidth) / 2;
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
  ready: () => Promise.all(app.panes.map(async ({ view }) => view?.ready?.())),
  lines: () => linesInSight(app.view),
  exportSvg: () => exportSvg(app),
  exportPng: () => exportPng(app),
};
