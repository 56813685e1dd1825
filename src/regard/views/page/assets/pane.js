// One recording on the page: its state, its view, and what its views need. Most pages have one pane; a page that
// compares two recordings has two.

import { CallView, SHOWN } from "./call_view.js";
import { make } from "./elements.js";
import { closeExplanation } from "./explained.js";
import { foundIn } from "./find.js";
import { comparedSize, greatestOfHeads, isSigned, quantityKey } from "./quantities.js";
import { Shading } from "./shading.js";
import { PageState } from "./state.js";
import { greatestPlaces } from "./text_weights.js";
import { HeadsView } from "./views/heads.js";
import { LinesView } from "./views/lines.js";
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

const MOST_LOOKS = 400;

export class Pane {
  /**
   * @param {any} recording
   * @param {string} prefix of the ids of its elements, which no other pane has
   */
  constructor(recording, prefix = "") {
    this.recording = recording;
    this.prefix = prefix;
    this.state = new PageState(recording);
    this.callViews = new Map();
    this.opening = true; // until the first view has been shown
    this.closest = "matrix"; // the view that opens one head: the one used last
    this.place = make("div", { class: "pane" }); // where the view is
    /** @type {any} the colours of the theme, given by the frame */
    this.inks = null;
    /** @type {any} */
    this.view = null;
    /** @type {((where: any) => void) | null} told what is pointed at */
    this.onPoint = null;
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
      if (this.callViews.size > MOST_LOOKS) this.callViews.clear();
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

  openView(now) {
    closeExplanation();
    const focused = this.place.contains(document.activeElement);
    this.view?.destroy?.();
    this.view = new VIEW_CLASSES[now.view](this);
    if (now.view === "lines" || now.view === "matrix") this.closest = now.view;
    const panel = {
      role: "tabpanel",
      id: `${this.prefix}view`,
      "aria-labelledby": `tab-${now.view}`,
      tabindex: "-1",
    };
    for (const [name, value] of Object.entries(panel)) this.view.root.setAttribute(name, value);
    this.place.replaceChildren(this.view.root);
    this.view.update(now, null);
    this.view.mounted?.();
    if (focused) this.view.root.focus({ preventScroll: true });
  }
}
