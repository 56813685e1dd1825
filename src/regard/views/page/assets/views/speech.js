// What was said and when: the transcript, the spectrogram, and under it each token's attention to the same frames.

import { blankCanvas, datum, fitCanvas, make, press, segments } from "../elements.js";
import { say } from "../languages.js";
import { quantityText, shareText } from "../numbers.js";
import { Shading } from "../shading.js";
import { Sound } from "../sound.js";
import { frameGroup, groupedFrames, timeMarks, timeText } from "../speech_frames.js";
import { CanvasSurface } from "../surface.js";

const HEARD = 104; // pixels of the spectrogram
const AXIS = 24;
const ROW = 17;
const LABELS = 116;
const WIDEST = 1180;
const UNSURE = 0.5; // words of a smaller probability are marked

/** The view of speech. */
export class SpeechView {
  constructor(app) {
    this.app = app;
    this.speech = app.recording.speech;
    this.sound = new Sound(this.speech.samples, this.speech.rate);
    this.together = true; // the mean of the alignment heads, or one head
    this.pointed = null; // { row, frame } under the pointer
    this.pictures = new Map();
    this.means = new Map();
    this.caption = make("p", { class: "speech-caption", role: "status", "aria-live": "polite" });
    this.tools = make("div", { class: "speech-tools" });
    this.words = this.speech.words.map((word, at) => this.wordButton(word, at));
    this.transcript = make("div", {
      class: "speech-transcript",
      role: "group",
      "aria-label": say("speech.transcript"),
      on: { keydown: (event) => this.step(event) },
    });
    this.transcript.append(...this.paragraphs());
    this.canvas = make("canvas", {
      class: "speech-canvas",
      role: "img",
      on: {
        pointermove: (event) => this.point(this.placeAt(event)),
        pointerleave: () => this.point(null),
        click: (event) => this.click(this.placeAt(event)),
      },
    });
    this.cursor = make("div", { class: "speech-cursor", hidden: true });
    this.root = make(
      "div",
      { class: "view speech-view" },
      this.transcript,
      make("div", { class: "speech-line" }, this.caption, this.tools),
      make("div", { class: "speech-drawing" }, this.canvas, this.cursor),
      make(
        "p",
        { class: "speech-heads" },
        say(this.speech.found ? "speech.found" : "speech.named"),
        " ",
        this.headNames(),
      ),
    );
    this.resized = () => this.paint();
    window.addEventListener("resize", this.resized);
  }

  destroy() {
    this.sound.stop();
    window.removeEventListener("resize", this.resized);
  }

  /** The canvas is as wide as its place, which is known from now on. */
  mounted() {
    this.paint();
  }

  // ---- transcript ------------------------------------------------------------------------------

  wordButton(word, at) {
    const said = `${timeText(word.start)}–${timeText(word.end)} s · ${shareText(word.probability)}`;
    return press(datum(word.word), () => this.choose(at, true), {
      class: word.probability < UNSURE ? "speech-word unsure" : "speech-word",
      title: said,
      "aria-label": `${word.word} ${timeText(word.start)} s`,
      tabindex: at === 0 ? "0" : "-1",
      "aria-pressed": "false",
    });
  }

  /** The words of each window, after the time at which it begins where there are several. */
  paragraphs() {
    const { windows, words } = this.speech;
    return windows.map((window, number) => {
      const own = this.words.filter((_, at) => words[at].window === number);
      const time = windows.length > 1 ? [make("span", { class: "speech-time" }, timeText(window.start, 1))] : [];
      return make("p", {}, ...time, ...own.flatMap((button) => [button, " "]));
    });
  }

  headNames() {
    return datum(this.speech.heads.map(([layer, head]) => `${layer}·${head}`).join("  "), "number");
  }

  /** Arrows move from word to word; elsewhere on the page they choose heads. */
  step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = this.words.indexOf(document.activeElement) + by;
    if (!this.words[next]) return;
    this.words[next].focus();
    this.choose(next, false);
  }

  /** Shows a word, in its own window, and plays it. */
  choose(at, aloud) {
    const word = this.speech.words[at];
    const { recording, state } = this.app;
    const { layer } = state.call;
    const own = recording.calls.filter((call) => call.run === word.window);
    const call = own.find((one) => one.layer === layer) ?? own[0];
    this.choosing = true;
    state.set({ call: call.index, query: word.first });
    this.choosing = false;
    if (aloud) this.play(word.start, word.end);
  }

  /** The number of the pinned word, or −1. */
  get chosen() {
    const { now, call } = this.app.state;
    return now.query === null ? -1 : this.wordOf(call.run, now.query);
  }

  wordOf(window, row) {
    return this.speech.words.findIndex((word) => word.window === window && word.first <= row && row <= word.last);
  }

  // ---- sound -----------------------------------------------------------------------------------

  play(from, to) {
    this.sound.play(from, to, () => this.renderTools());
    this.renderTools();
    this.follow();
  }

  /** Moves the cursor while something plays. */
  follow() {
    const { playing } = this.sound;
    this.cursor.hidden = !playing || !this.shown;
    if (!playing) return;
    const { window, left, width } = this.shown;
    const share = (playing.at - window.start) / (window.frames * window.step);
    this.cursor.hidden = share < 0 || share > 1;
    this.cursor.style.transform = `translateX(${left + share * width}px)`;
    this.cursor.style.height = `${this.height}px`;
    requestAnimationFrame(() => this.follow());
  }

  renderTools() {
    const { call } = this.app.state;
    const { speech, chosen } = this;
    const heads = segments(
      [
        ["mean", say("speech.mean", { count: speech.heads.length })],
        ["head", say("speech.head", { layer: call.layer, head: call.heads[this.app.state.now.head] })],
      ],
      this.together ? "mean" : "head",
      (which) => this.show(which === "mean"),
      say("speech.which"),
    );
    const word = speech.words[chosen];
    const seconds = speech.samples.length / speech.rate;
    const buttons = !this.sound.possible
      ? []
      : this.sound.playing
        ? [press(`■ ${say("speech.stop")}`, () => this.sound.stop(), { class: "speech-play" })]
        : [
            ...(word
              ? [press(`▶ ${say("speech.play")}`, () => this.play(word.start, word.end), { class: "speech-play" })]
              : []),
            press(`▶ ${say("speech.all")}`, () => this.play(0, seconds), { class: "speech-play" }),
          ];
    this.tools.replaceChildren(heads, ...buttons);
  }

  show(together) {
    this.together = together;
    this.paint();
  }

  // ---- pointing --------------------------------------------------------------------------------

  /** The row and the frame under a pointer; the row is −1 on the spectrogram. */
  placeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const { look, window, left, width } = this.shown;
    const frame = Math.floor(((event.clientX - box.left - left) / width) * window.frames);
    const row = Math.floor((event.clientY - box.top - HEARD - AXIS) / ROW);
    if (frame >= window.frames || row >= look.rows.count) return null;
    return { row: Math.max(-1, row), frame: Math.max(-1, frame) };
  }

  point(place) {
    const same = place?.row === this.pointed?.row && place?.frame === this.pointed?.frame;
    this.pointed = place;
    if (!same) this.say();
  }

  /** On a row: its word; on the spectrogram: the word that is spoken there. */
  click(place) {
    if (!place) return;
    const { look, window } = this.shown;
    const { run } = this.app.state.call;
    const time = window.start + place.frame * window.step;
    const at =
      place.row >= 0
        ? this.wordOf(run, look.rows.first[place.row])
        : this.speech.words.findIndex((word) => word.window === run && word.start <= time && time < word.end);
    if (at >= 0) this.choose(at, true);
    else if (place.row >= 0) this.app.state.set({ query: look.rows.first[place.row] });
  }

  // ---- drawing ---------------------------------------------------------------------------------

  update(now, changed) {
    // Choosing a head shows that head.
    const run = this.app.state.call.run;
    if (changed && !this.choosing && (changed.has("head") || (changed.has("call") && run === this.run))) {
      this.together = false;
    }
    if (run !== this.run || (changed && ["theme", "palette"].some((name) => changed.has(name)))) this.pictures.clear();
    this.run = run;
    this.pointed = null;
    if (this.canvas.isConnected) this.paint();
  }

  /** The weights that are shown, (row, frame): those of one head, or the mean of the alignment heads. */
  weights() {
    const { app, speech } = this;
    const { now, call } = app.state;
    const look = app.lookAt(call.index, "weight");
    const { rows, columns } = look;
    if (!this.together) return look.weights(now.head, 0, rows.count, 0, columns.count);
    const name = [call.run, rows.count, columns.count, now.words, now.special].join(" ");
    if (!this.means.has(name)) {
      const mean = new Float32Array(rows.count * columns.count);
      for (const [layer, number] of speech.heads) {
        const own = app.recording.calls.find((one) => one.run === call.run && one.layer === layer);
        const head = own ? own.heads.indexOf(number) : -1;
        if (head < 0) continue;
        const part = app.lookAt(own.index, "weight").weights(head, 0, rows.count, 0, columns.count);
        for (let at = 0; at < mean.length; at += 1) mean[at] += part[at] / speech.heads.length;
      }
      this.means.set(name, mean);
    }
    return this.means.get(name);
  }

  paint() {
    const { app, speech } = this;
    const { call } = app.state;
    const look = app.lookAt(call.index, "weight");
    const window = speech.windows[call.run];
    const across = Math.max(280, Math.min(WIDEST, this.canvas.parentElement?.clientWidth || WIDEST));
    const left = Math.min(LABELS, Math.round(across / 4));
    const width = across - left - 8;
    const size = frameGroup(window.frames, width);
    const values = groupedFrames(this.weights(), look.rows.count, look.columns.count, size);
    const greatest = values.reduce((most, value) => Math.max(most, value), 0);
    const shading = new Shading({ ...app.shading(), what: "weight", signed: false, ramp: app.inks.ramp, greatest });
    this.shown = { look, window, left, width, size, values, shading };
    this.width = across;
    this.height = HEARD + AXIS + ROW * look.rows.count + 6;
    this.marks();
    this.say();
    this.renderTools();
    this.drawAll(new CanvasSurface(fitCanvas(this.canvas, this.width, this.height)));
  }

  /** Which word of the transcript is chosen. */
  marks() {
    const { chosen } = this;
    this.words.forEach((button, at) => {
      button.setAttribute("aria-pressed", String(at === chosen));
      button.setAttribute("tabindex", at === Math.max(0, chosen) ? "0" : "-1");
    });
  }

  /** In words: the weight under the pointer, or the chosen word. */
  say() {
    const { speech, chosen, pointed } = this;
    const { look, window, size, values } = this.shown;
    let said = say(this.sound.possible ? "speech.click" : "speech.click.silent");
    if (chosen >= 0) said = this.wordSaid(speech.words[chosen]);
    if (pointed && pointed.row >= 0 && pointed.frame >= 0) {
      const groups = Math.ceil(window.frames / size);
      const group = Math.floor(pointed.frame / size);
      said = say("speech.cell", {
        token: look.rowNames[pointed.row],
        start: timeText(window.start + group * size * window.step),
        end: timeText(window.start + Math.min(window.frames, (group + 1) * size) * window.step),
        weight: quantityText(values[pointed.row * groups + group], "weight"),
      });
    }
    this.caption.replaceChildren(datum(said));
    this.canvas.setAttribute("aria-label", `${say("speech.drawing")} ${said}`);
  }

  wordSaid({ word, start, end, probability }) {
    return say("speech.word", { word, start: timeText(start), end: timeText(end), share: shareText(probability) });
  }

  drawAll(surface) {
    const { look, left, width } = this.shown;
    const top = HEARD + AXIS;
    const { inks } = this.app;
    surface.rect(left, 0, width, HEARD, inks.raised);
    surface.image(this.heard(), left, 0, width, HEARD);
    surface.image(this.matrix(), left, top, width, ROW * look.rows.count);
    this.drawTimes(surface);
    this.drawStretches(surface, top);
    this.drawChosen(surface, top);
    look.rowNames.forEach((name, row) => {
      const own = this.isChosen(row);
      const style = { fill: own ? inks.accent : inks.soft, weight: own ? 600 : 400, size: 12 };
      surface.text(left - 8, top + (row + 0.5) * ROW, name, { anchor: "end", limit: left - 10, ...style });
    });
  }

  /** What the model heard: grey, so that only attention has colour. */
  heard() {
    const { window } = this.shown;
    if (!this.pictures.has("heard")) {
      const { frames, bands, heard } = window;
      const canvas = blankCanvas(frames, bands);
      const context = canvas.getContext("2d");
      const pixels = context.createImageData(frames, bands);
      const ink = this.app.inks.dark ? 255 : 0;
      for (let band = 0; band < bands; band += 1)
        for (let frame = 0; frame < frames; frame += 1) {
          const at = 4 * ((bands - 1 - band) * frames + frame);
          pixels.data.fill(ink, at, at + 3);
          pixels.data[at + 3] = heard[band * frames + frame];
        }
      context.putImageData(pixels, 0, 0);
      this.pictures.set("heard", canvas);
    }
    return this.pictures.get("heard");
  }

  matrix() {
    const { look, window, size, values, shading } = this.shown;
    const groups = Math.ceil(window.frames / size);
    // The last group may have fewer frames: it is drawn frame by frame, so that all stay under their sound.
    const canvas = blankCanvas(window.frames, look.rows.count);
    const context = canvas.getContext("2d");
    const small = new Uint8ClampedArray(4 * values.length);
    shading.paint(small, values);
    const pixels = context.createImageData(window.frames, look.rows.count);
    for (let row = 0; row < look.rows.count; row += 1)
      for (let frame = 0; frame < window.frames; frame += 1) {
        const from = 4 * (row * groups + Math.floor(frame / size));
        pixels.data.set(small.subarray(from, from + 4), 4 * (row * window.frames + frame));
      }
    context.putImageData(pixels, 0, 0);
    return canvas;
  }

  x(frame) {
    const { left, width, window } = this.shown;
    return left + (frame / window.frames) * width;
  }

  drawTimes(surface) {
    const { window, width } = this.shown;
    const { inks } = this.app;
    const marks = timeMarks(window.start, window.start + window.frames * window.step, width);
    const places = marks.length > 1 && marks[1] - marks[0] < 1 ? 1 : 0;
    for (const time of marks) {
      const x = this.x((time - window.start) / window.step);
      surface.line(x, HEARD, x, HEARD + 4, inks.faint);
      const last = x > this.width - 30;
      surface.text(x, HEARD + 14, `${timeText(time, places)} s`, {
        fill: inks.faint,
        size: 11,
        anchor: last ? "end" : "middle",
      });
    }
  }

  /** The stretch of frames that each token got: the path. */
  drawStretches(surface, top) {
    const { look, window } = this.shown;
    const { inks } = this.app;
    for (let row = 0; row < look.rows.count; row += 1) {
      const [from, to] = [window.begins[look.rows.first[row]], window.begins[look.rows.last[row]]];
      const style = { width: this.isChosen(row) ? 2.5 : 1.2 };
      this.frame(surface, this.x(from), top + row * ROW, this.x(to), top + (row + 1) * ROW, inks.negative, style);
    }
  }

  drawChosen(surface, top) {
    const word = this.speech.words[this.chosen];
    if (!word) return;
    const { window, look } = this.shown;
    const { inks } = this.app;
    const [from, to] = [word.start, word.end].map((time) => this.x((time - window.start) / window.step));
    surface.rect(from, 0, to - from, HEARD, inks.accent, { opacity: 0.22 });
    this.frame(surface, from, 0, to, HEARD, inks.accent, { width: 2 });
    for (const x of [from, to])
      surface.line(x, HEARD, x, top + ROW * look.rows.count, inks.accent, { opacity: 0.45, dash: [3, 3] });
  }

  frame(surface, left, top, right, bottom, ink, style) {
    surface.line(left, top, right, top, ink, style);
    surface.line(left, bottom, right, bottom, ink, style);
    surface.line(left, top, left, bottom, ink, style);
    surface.line(right, top, right, bottom, ink, style);
  }

  isChosen(row) {
    const word = this.speech.words[this.chosen];
    const { look } = this.shown;
    return Boolean(word) && look.rows.first[row] <= word.last && look.rows.last[row] > word.first;
  }

  pictureSize() {
    return { width: this.width, height: this.height };
  }

  /** The drawing on paper, for exports. */
  draw(surface) {
    this.drawAll(surface);
  }
}
