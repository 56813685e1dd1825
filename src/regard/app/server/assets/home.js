// The first page: a form for a text and a model, the progress of its job, and lists of recordings.

import { chooseLook, chosenLook, firstLanguage, store, stored } from "/assets/map/browser_storage.js";
import { followJob, getJson, postJson } from "/assets/map/client.js";
import { choice, datum, make } from "/assets/page/elements.js";
import { say, speak } from "/assets/page/languages.js";
import { wearTheme } from "/assets/page/theme.js";
import { languageTool, themeTool } from "/assets/page/tools.js";
import { isPicture, PictureInput } from "./picture_input.js";

const LONG_READING = 1500; // from this many tokens on, the map is the better first view
const MOST_RECENT = 12;
const COMPACT = { notation: "compact", maximumSignificantDigits: 3 };
const COUNT_AFTER = 350; // milliseconds without a keystroke until tokens are counted

class Home {
  constructor(state, root) {
    this.state = state;
    this.root = root;
    this.look = { theme: "auto", palette: "blue", ...chosenLook(), language: firstLanguage() };
    this.text = stored("regard.text", "");
    this.running = null;
    this.picture = new PictureInput(() => this.file.click());
  }

  build() {
    const { state, look } = this;
    speak(look.language);
    wearTheme(look.theme);
    document.title = "regard";
    const change = (patch) => {
      this.text = this.area?.value ?? this.text;
      chooseLook(patch);
      Object.assign(this.look, patch);
      this.build();
    };
    this.root.replaceChildren(
      make(
        "header",
        { class: "top" },
        make("h1", {}, make("b", { translate: "no" }, "regard"), make("span", { class: "title" }, state.version)),
        make("div", { class: "page-tools" }, languageTool(look.language, change), themeTool(look.theme, change)),
      ),
      make(
        "main",
        { class: "home" },
        make("div", { class: "lead" }, make("h2", {}, say("home.title")), make("p", {}, say(this.lead()))),
        ...(state.models.length
          ? [this.form()]
          : [make("p", { class: "notice" }, say(state.recordings.length ? "home.nomodel" : "home.nothing"))]),
        ...this.lists(),
      ),
    );
  }

  lead() {
    const { models } = this.state;
    return models.length === 1 && models[0].id === "translator" ? "home.lead.translator" : "home.lead";
  }

  form() {
    const { models } = this.state;
    this.area = make("textarea", {
      rows: "8",
      placeholder: say("home.placeholder"),
      "aria-label": say("home.text"),
      spellcheck: "false",
      on: {
        input: () => this.typed(),
        keydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.read(),
      },
    });
    this.area.value = this.text;
    this.model = choice(
      models.map(({ id, label }) => [id, nameOf(id, label)]),
      stored("regard.model", models[0].id),
      () => this.chosen(),
      { "aria-label": say("home.model") },
    );
    if (!this.model.value) this.model.value = models[0].id;
    this.about = make("small", {});
    this.counter = make("p", { class: "counter" });
    this.examples = make("p", { class: "examples" });
    this.note = make("p", { class: "note", role: "status", "aria-live": "polite" });
    this.button = make("button", { type: "submit", class: "primary" }, say("home.read"));
    this.file = make("input", {
      type: "file",
      hidden: true,
      on: { change: () => this.file.files[0] && this.open(this.file.files[0]) },
    });
    const file = make(
      "button",
      { type: "button", class: "quiet", on: { click: () => this.file.click() } },
      say("home.file"),
    );
    this.pair = make("textarea", { rows: "2", spellcheck: "false" });
    this.pairLabel = make("label", { class: "option" }, make("span", {}, say("home.pair")), this.pair);
    this.generate = make("input", { type: "number", min: "0", max: String(this.state.limits.generated), value: "0" });
    this.generateLabel = make("label", { class: "option" }, make("span", {}, say("home.generate")), this.generate);
    this.options = make(
      "details",
      { class: "options" },
      make("summary", {}, say("home.options")),
      this.pairLabel,
      this.generateLabel,
    );
    const form = make(
      "form",
      {
        class: "reading",
        on: {
          submit: (event) => {
            event.preventDefault();
            this.read();
          },
        },
      },
      this.area,
      this.picture.root,
      this.counter,
      this.examples,
      make(
        "div",
        { class: "reading-bar" },
        make("label", { class: "field" }, make("span", { class: "name" }, say("home.model")), this.model),
        this.about,
        make("span", { class: "push" }),
        file,
        this.file,
        this.button,
      ),
      this.note,
      this.options,
    );
    for (const event of ["dragover", "drop"]) form.addEventListener(event, (moved) => this.dropped(moved, form));
    form.addEventListener("dragleave", () => form.classList.remove("over"));
    this.chosen();
    return form;
  }

  lists() {
    const given = this.state.recordings.map((one) => entry(one));
    const recent = stored("regard.recent", []).map((one) => entry(one));
    const list = (title, entries) =>
      entries.length ? [make("section", { class: "entries" }, make("h3", {}, title), make("ul", {}, ...entries))] : [];
    return [...list(say("home.recent"), recent), ...list(say("home.recordings"), given)];
  }

  chosen() {
    const model = this.state.models.find(({ id }) => id === this.model.value);
    store("regard.model", model.id);
    const most = Math.min(model.longest ?? Infinity, this.state.limits.tokens);
    const pictures = model.kind === "picture";
    const size = model.parameters.toLocaleString(this.look.language, COMPACT);
    this.about.textContent = [
      say(pictures && model.pair ? "kind.picture.asked" : `kind.${model.kind}.model`),
      ...(pictures ? [] : [say("home.longest", { count: most.toLocaleString("en") })]),
      // The class of the built-in model says nothing to anybody else.
      ...(model.id === "translator" ? [] : [model.architecture]),
      say("home.parameters", { count: size }),
    ].join(" · ");
    this.area.hidden = pictures;
    this.picture.show(pictures);
    this.pairLabel.hidden = !model.pair || model.kind === "decoder";
    if (!this.pairLabel.hidden) this.pairLabel.firstChild.textContent = say(`home.pair.${model.kind}`);
    this.generateLabel.hidden = model.kind !== "decoder";
    this.options.hidden = this.pairLabel.hidden && this.generateLabel.hidden;
    this.options.open ||= pictures && model.pair; // a picture is read with a question
    this.examples.replaceChildren(
      ...(model.examples.length ? [make("span", {}, say("home.examples"))] : []),
      ...model.examples.map((text) =>
        make("button", { type: "button", class: "quiet", on: { click: () => this.fill(text) } }, datum(text)),
      ),
    );
    this.typed();
  }

  fill(text) {
    this.area.value = text;
    this.area.focus();
    this.typed();
  }

  typed() {
    const { letters } = this.state.limits;
    const count = this.area.value.length;
    this.button.disabled = count > letters;
    this.tell(
      count > letters
        ? say("home.long", { count: count.toLocaleString("en"), most: letters.toLocaleString("en") })
        : "",
    );
    this.examples.hidden = count > 0;
    clearTimeout(this.counting);
    if (this.area.hidden || count === 0 || count > letters) this.counter.replaceChildren();
    else this.counting = setTimeout(() => this.count(), COUNT_AFTER);
  }

  /** Says how many tokens the text has for the chosen model, and offers to read the first ones if it has too many. */
  async count() {
    const text = this.area.value;
    const model = this.model.value;
    const found = await postJson("/api/counts", { model, text }).catch(() => null);
    if (!found || text !== this.area.value || model !== this.model.value) return;
    const said = { count: found.tokens.toLocaleString("en"), most: found.most.toLocaleString("en") };
    const over = found.tokens > found.most;
    this.counter.classList.toggle("error", over);
    this.counter.replaceChildren(say(over ? "home.over" : "home.count", said));
    if (over && found.characters) {
      // The server counts characters as Python does: one for each code point.
      const first = [...text].slice(0, found.characters).join("");
      const shorten = () => {
        this.fill(first);
        this.read();
      };
      this.counter.append(
        " ",
        make("button", { type: "button", class: "quiet", on: { click: shorten } }, say("home.first", said)),
      );
    }
  }

  /** Says what went wrong, in the colour of errors; "" clears it. */
  tell(problem) {
    this.note.classList.toggle("error", Boolean(problem));
    this.note.textContent = problem;
  }

  dropped(event, form) {
    event.preventDefault();
    form.classList.toggle("over", event.type === "dragover");
    const [file] = event.dataTransfer.files;
    if (event.type === "drop" && file) this.open(file);
  }

  /** A picture goes to a model that reads pictures, a text to the chosen model. */
  async open(file) {
    if (isPicture(file)) {
      await this.openPicture(file);
      return;
    }
    if (this.area.hidden) {
      this.tell(say("home.nopicture"));
      return;
    }
    const most = 4 * this.state.limits.letters;
    try {
      this.area.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.slice(0, most + 4).arrayBuffer());
      this.typed();
    } catch {
      this.tell(say("home.notext"));
    }
  }

  async openPicture(file) {
    const reads = ({ kind }) => kind === "picture";
    const chosen = this.state.models.find(({ id }) => id === this.model.value);
    const model = reads(chosen) ? chosen : this.state.models.find(reads);
    if (!model) {
      this.tell(say("home.nopicturemodel"));
      return;
    }
    try {
      await this.picture.take(file, this.state.limits.picture);
      this.model.value = model.id;
      this.chosen();
    } catch {
      this.tell(say("home.nopicture"));
    }
  }

  async read() {
    if (this.running) {
      this.running.abort();
      return;
    }
    const model = this.state.models.find(({ id }) => id === this.model.value);
    const pictures = model.kind === "picture";
    const text = pictures ? this.picture.name || "picture" : this.area.value;
    if (pictures ? !this.picture.content : !text.trim()) {
      this.tell(say(pictures ? "home.picture.first" : "home.empty"));
      if (!pictures) this.area.focus();
      return;
    }
    if (!pictures) store("regard.text", text.length < 20000 ? text : "");
    this.running = new AbortController();
    this.button.textContent = say("home.cancel");
    try {
      const body = { model: model.id, text };
      if (pictures) body.picture = this.picture.content;
      if (!this.pairLabel.hidden && this.pair.value.trim()) body.pair = this.pair.value;
      if (!this.generateLabel.hidden && Number(this.generate.value) > 0) body.generate = Number(this.generate.value);
      const { job } = await postJson("/api/readings", body);
      const { recording, unsaved } = await followJob(job, (now) => this.progress(now), this.running.signal);
      const described = await getJson(`/api/recordings/${recording}`);
      const tokens = Math.max(...described.calls.map((call) => call.keys));
      const found = { id: recording, title: described.title, reader: model.id, model: model.label, tokens, unsaved };
      store("regard.recent", [found, ...stored("regard.recent", [])].slice(0, MOST_RECENT));
      location.assign(`/${tokens > LONG_READING ? "map" : "look"}/${recording}`);
    } catch (error) {
      this.tell(error.name === "AbortError" ? "" : error.message);
    } finally {
      this.running = null;
      this.button.textContent = say("home.read");
    }
  }

  progress(job) {
    const share = Math.round(100 * job.share);
    this.note.classList.remove("error");
    this.note.replaceChildren(
      make("span", {}, say(`stage.${job.stage}`), " ", datum(`${share}%`)),
      make("progress", { max: "100", value: String(share) }),
    );
  }
}

/** The name of a model; the embedded one has a name in every language. */
function nameOf(id, label) {
  return id === "translator" ? say("model.translator") : label;
}

function entry({ id, title, reader, model, tokens, unsaved }) {
  const name = encodeURIComponent(id);
  return make(
    "li",
    {},
    make("a", { class: "entry-title", href: `/${tokens > LONG_READING ? "map" : "look"}/${name}` }, datum(title)),
    make(
      "small",
      {},
      datum(nameOf(reader, model)),
      " · ",
      say("home.tokens", { count: tokens.toLocaleString("en") }),
      unsaved ? ` · ${say("home.unsaved")}` : "",
    ),
    make(
      "span",
      { class: "entry-links" },
      make("a", { href: `/look/${name}` }, say("app.views")),
      make("a", { href: `/map/${name}` }, say("app.map")),
    ),
  );
}

const root = document.getElementById("home");
speak(firstLanguage());
try {
  const home = new Home(await getJson("/api/state"), root);
  home.build();
  window.regard = { home };
} catch (error) {
  wearTheme("auto");
  root.replaceChildren(make("p", { class: "notice" }, error.message));
}
