// The map of a recording: a header, controls, what is under the crosshair, the map.

import { followAddress } from "/assets/page/address.js";
import { datum, make } from "/assets/page/elements.js";
import { download, exportName, exportPng } from "/assets/page/export.js";
import { Help } from "/assets/page/help.js";
import { say, speak } from "/assets/page/languages.js";
import { inksOf, wearTheme } from "/assets/page/theme.js";
import { TokenSearch } from "/assets/page/token_search.js";
import { foldTool, languageTool, themeTool, tool } from "/assets/page/tools.js";
import { chooseLook, chosenLook, firstLanguage } from "./browser_storage.js";
import { followJob, getJson, getNumbers, postJson } from "./client.js";
import { MapSearch, renderMapControls } from "./controls.js";
import { listenForMapKeys, mapHelp } from "./keys.js";
import { lookAddress } from "./links.js";
import { MapState } from "./map_state.js";
import { TextWindow } from "./text_window.js";
import { TileLayer } from "./tile_layer.js";
import { MapView } from "./view.js";

const REMEMBERED = ["theme", "palette", "language"];

class MapApp {
  constructor(recording, texts, root) {
    this.recording = recording;
    this.texts = texts;
    this.root = root;
    this.path = `/api/recordings/${encodeURIComponent(recording.id)}`;
    this.state = new MapState(recording);
    Object.assign(
      this.state.first,
      this.state.fit({ ...this.state.first, ...chosenLook(), language: firstLanguage() }),
    );
    this.help = new Help(() => mapHelp(recording));
    this.searches = new Map();
    this.found = []; // the tokens of each place that holds the searched text
    this.matches = []; // the first of each
    this.margins = null;
    this.pinnedWeight = null;
    this.layer = null;
    this.pinning = 0;
    this.going = 0;
  }

  /** What an exported picture shows: the map is its own only pane. */
  get panes() {
    return [this];
  }

  start() {
    followAddress(this.state);
    this.state.listen((now, changed) => this.follow(now, changed));
    listenForMapKeys(this);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
    this.build();
  }

  get queryTokens() {
    return this.texts[this.state.call.queryText].tokens;
  }

  get keyTokens() {
    return this.texts[this.state.call.keyText].tokens;
  }

  get keySpecial() {
    return new Set(this.texts[this.state.call.keyText].special);
  }

  searchOf(side) {
    const text = side === "query" ? this.state.call.queryText : this.state.call.keyText;
    if (!this.searches.has(text)) this.searches.set(text, new TokenSearch(this.texts[text].tokens));
    return this.searches.get(text);
  }

  follow(now, changed) {
    const chosen = REMEMBERED.filter((name) => changed.has(name));
    if (chosen.length) chooseLook(Object.fromEntries(chosen.map((name) => [name, now[name]])));
    if (changed.has("language") || changed.has("theme")) {
      this.build();
      return;
    }
    if (changed.has("palette")) this.inks = inksOf(now);
    if (["call", "head", "sinks", "show", "what"].some((name) => changed.has(name)))
      this.openLayer(["call", "head", "sinks", "what"].some((name) => changed.has(name)));
    if (["query", "key", "call", "head", "sinks", "what"].some((name) => changed.has(name))) this.weighPinned();
    this.view.update(now, changed);
    this.text.update(now, changed);
    this.showText(now);
    if (changed.has("call")) this.search.look();
    if (changed.size > 1 || !changed.has("zoom")) this.renderFrame();
  }

  build() {
    const { now } = this.state;
    speak(now.language);
    wearTheme(now.theme);
    this.inks = inksOf(now);
    const { title, model } = this.recording;
    document.title = `${title || model} · ${say("app.map")} · regard`;
    this.view?.destroy();
    this.view = new MapView(this);
    this.search = new MapSearch(this);
    this.bar = make("section", { class: "controls", "aria-label": say("controls") });
    this.text = new TextWindow(this);
    this.stage = make("main", { class: "stage" }, this.view.root, this.text.root);
    this.facts = make("footer", { class: "facts" });
    this.links = make("span", { class: "pair-links" });
    const name = make("h1", {}, make("b", { translate: "no" }, "regard"), datum(title || model, "title"));
    const reading = make("div", { class: "view-bar map-bar" }, this.view.readout.root, this.links, this.search.root);
    this.root.replaceChildren(
      make("header", { class: "top" }, name, this.tools(now)),
      this.bar,
      reading,
      this.stage,
      this.facts,
      this.help.dialog,
    );
    this.openLayer(!this.layer);
    this.weighPinned();
    this.view.update(now, null);
    this.view.mounted();
    this.text.update(now, null);
    this.showText(now);
    this.renderFrame();
  }

  /** The text lies over the map, which keeps its place below. */
  showText({ view }) {
    this.view.root.inert = view === "text";
    this.root.classList.toggle("reads-text", view === "text");
  }

  tools({ language, theme }) {
    const choose = (patch) => this.state.set(patch);
    const copy = tool(say("map.link.short"), say("map.link"), async () => {
      await navigator.clipboard?.writeText(location.href);
      copy.textContent = say("map.copied");
    });
    return make(
      "div",
      { class: "page-tools" },
      copy,
      tool("PNG", say("export.png"), () => this.save(), { translate: "no" }),
      languageTool(language, choose),
      themeTool(theme, choose),
      tool("?", say("help"), () => this.help.toggle()),
      foldTool(this.bar),
    );
  }

  async save() {
    download(await exportPng(this), "image/png", exportName(this, "png"));
  }

  renderFrame() {
    const { call, now } = this.state;
    renderMapControls(this.bar, this);
    const facts = [
      datum(this.recording.model),
      datum(call.name),
      say("size", { queries: call.queries.toLocaleString("en"), keys: call.keys.toLocaleString("en") }),
      ...(call.dense ? [say("dense")] : []),
    ];
    this.facts.replaceChildren(...facts.map((fact) => make("span", {}, fact)));
    const pinned = now.query !== null || now.key !== null;
    this.links.replaceChildren(
      ...(pinned
        ? [
            make(
              "a",
              { class: "quiet", href: lookAddress(this.recording, now, "lines"), title: say("map.lines.title") },
              `${say("map.lines")} ↗`,
            ),
          ]
        : []),
    );
  }

  // ---- the head in sight ------------------------------------------------------------------------

  /** The tiles of the present head; levels and margins are built by the server, once for a head. */
  openLayer(rebuild) {
    const { now, call } = this.state;
    const built = !rebuild && this.layer?.built;
    const greatest = rebuild ? null : this.layer?.greatest;
    this.layer?.stop();
    this.layer = new TileLayer(this.path, call, now, (error) => this.arrived(error));
    this.layer.built = built;
    this.layer.greatest = greatest ?? null;
    if (rebuild) this.margins = null;
    if (!call.weights) {
      this.say(make("p", {}, say("map.nothing")));
      return;
    }
    if (!built) this.buildLevels(this.layer);
    else this.say(null);
  }

  async buildLevels(layer) {
    this.building?.abort();
    const control = new AbortController();
    this.building = control;
    try {
      const { job } = await postJson(`${this.path}/maps`, {
        call: layer.call.index,
        head: layer.head,
        sinks: layer.sinks,
        what: layer.what,
      });
      if (job) await followJob(job, (now) => this.layer === layer && this.showProgress(now), control.signal);
      if (this.layer !== layer) return;
      layer.built = true;
      this.say(null);
      const { values, greatest } = await getNumbers(
        `${this.path}/margins/${layer.call.index}/${layer.head}?${layer.chosen}`,
        control.signal,
      );
      if (
        this.layer !== layer &&
        (this.layer.head !== layer.head || this.layer.call !== layer.call || this.layer.chosen !== layer.chosen)
      )
        return;
      this.layer.built = true;
      this.layer.greatest = greatest;
      this.view.forgetPictures();
      this.margins = { received: values.subarray(0, layer.call.keys), entropy: values.subarray(layer.call.keys) };
      this.view.layout();
    } catch (error) {
      if (error.name === "AbortError" || this.layer !== layer) return;
      this.say(
        make("p", {}, error.message),
        make(
          "button",
          { type: "button", class: "primary", on: { click: () => this.openLayer(true) } },
          say("map.again"),
        ),
      );
    }
  }

  showProgress(job) {
    const share = Math.round(100 * job.share);
    this.say(
      make("p", {}, say(`stage.${job.stage}`), " ", datum(`${share}%`)),
      make("progress", { max: "100", value: String(share) }),
    );
  }

  /** Shows a message over the map, or none. */
  say(...parts) {
    const { notice } = this.view;
    notice.hidden = parts[0] === null;
    notice.replaceChildren(...parts.filter((part) => part !== null));
  }

  arrived(error) {
    if (error?.status === 409) {
      // The server has dropped the levels since then, so it builds them again.
      this.layer.built = false;
      this.buildLevels(this.layer);
    } else if (error) this.say(make("p", {}, error.message));
    if (this.layer.grown) this.view.forgetPictures();
    this.layer.grown = false;
    this.view.progress.hidden = this.layer.idle;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.view.paint());
  }

  /** Goes to a query and the key that it attends to most: around the query itself there may be nothing to see. */
  async goToQuery(query) {
    const { now, call } = this.state;
    this.going += 1;
    const ticket = this.going;
    const path = `${this.path}/rows/${now.call}/${call.heads[now.head]}/${query}?sinks=${now.sinks}`;
    const found = call.weights ? await getJson(path).catch(() => null) : null;
    // Answers can overtake each other: only the last one asked for is gone to.
    if (ticket === this.going) this.view.goTo(query, found && found.weight > 0 ? found.key : null);
  }

  /** The weight of the pinned pair, exactly. */
  async weighPinned() {
    const { now, call } = this.state;
    this.pinning += 1;
    const ticket = this.pinning;
    this.pinnedWeight = null;
    if (now.query === null || now.key === null || !call.weights) return;
    const found = await getJson(
      `${this.path}/peaks/${now.call}/${call.heads[now.head]}/0/${now.query}/${now.key}?${this.layer.chosen}`,
    ).catch(() => null);
    if (ticket !== this.pinning || !found) return;
    this.pinnedWeight = found.weight ?? Number.NaN; // masked
    this.view.paint();
  }
}

const root = document.getElementById("regard");
const id = decodeURIComponent(location.pathname.split("/")[2]);
speak(firstLanguage());
try {
  const path = `/api/recordings/${encodeURIComponent(id)}`;
  const [recording, { texts }] = await Promise.all([getJson(path), getJson(`${path}/texts`)]);
  const app = new MapApp(recording, texts, root);
  app.start();
  // For tests and for curious readers: everything that the map itself uses.
  window.regard = { app, recording, state: app.state, exportPng: () => exportPng(app) };
} catch (error) {
  wearTheme("auto");
  root.replaceChildren(make("p", { class: "notice" }, error.message));
}
