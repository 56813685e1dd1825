// Two recordings on one page: side by side, with linked states, pointers and scrolling; or one pane with the
// difference of their weights.

import { datum, make } from "./elements.js";
import { say } from "./languages.js";
import { Pane } from "./pane.js";
import { tokenPartners, turnedAround } from "./token_pairs.js";

// What both panes have in common; the rest of the state is translated.
const LINKED = [
  ...["view", "direction", "group", "least", "likely", "quiet", "special", "words", "sinks", "pair", "scale", "theme"],
  ...["palette", "language", "sort", "descending", "filter", "find", "kinds", "role", "embed"],
];
// What the second pane depends on through the frame, so that its view is built again.
const REBUILT = ["view", "language", "theme", "embed"];
const SCROLLED = ".scroll, .book.long";

/** From the calls, heads and tokens of one recording to those of the other. */
class Translation {
  /**
   * @param {any} from recording
   * @param {any} to recording
   * @param {Map<number, number>} calls
   * @param {Translation | null} opposite the other way, if this one is its reverse
   */
  constructor(from, to, calls, opposite = null) {
    this.from = from;
    this.to = to;
    this.calls = calls;
    this.opposite = opposite;
    this.partners = new Map(); // by texts
  }

  /** The place of the corresponding call, or null. */
  call(index) {
    return this.calls.get(index) ?? null;
  }

  /** The place of a head with the same number, or null. */
  head(index, head) {
    const to = this.call(index);
    if (to === null) return null;
    const place = this.to.calls[to].heads.indexOf(this.from.calls[index].heads[head]);
    return place < 0 ? null : place;
  }

  /** The same token of the other text, or null. */
  token(index, side, token) {
    const to = this.call(index);
    if (to === null || token === null || token === undefined) return null;
    const [own, theirs] = [this.from.calls[index], this.to.calls[to]].map((call) => call[`${side}Tokens`]);
    const partner = this.partnersOf(own, theirs)[token] ?? -1;
    return partner < 0 ? null : partner;
  }

  partnersOf(own, theirs) {
    if (!this.partners.has(own)) this.partners.set(own, new Map());
    const known = this.partners.get(own);
    if (!known.has(theirs)) {
      const { opposite } = this;
      known.set(
        theirs,
        opposite ? turnedAround(opposite.partnersOf(theirs, own), own.length) : tokenPartners(own, theirs),
      );
    }
    return known.get(theirs);
  }
}

export class Comparison {
  constructor(first) {
    const { recording } = first;
    this.first = first;
    this.second = new Pane(recording.other, "other-");
    const pairs = recording.pairs.map(({ call, twin }) => [call, twin]);
    this.there = new Translation(recording, recording.other, new Map(pairs));
    this.back = new Translation(
      recording.other,
      recording,
      new Map(pairs.map(([call, twin]) => [twin, call])),
      this.there,
    );
    this.headings = [make("h2", { class: "side" }), make("h2", { class: "side" })];
    this.absent = make("p", { class: "notice", hidden: true });
    this.moved = new WeakMap(); // where an element was scrolled to because the other one was
  }

  /** Whether both recordings are shown. */
  get beside() {
    return this.first.state.now.what !== "difference";
  }

  start() {
    const { first, second } = this;
    this.carry(first, second, this.there, null);
    first.state.listen((_now, changed, cause) => {
      if (cause !== "link") this.carry(first, second, this.there, changed);
      this.describe();
    });
    second.state.listen((now, changed, cause) => {
      this.follow(now, changed);
      if (cause !== "link") this.carry(second, first, this.back, changed);
      this.describe();
    });
    first.onPoint = (where) => this.pointed(first, second, this.there, where);
    second.onPoint = (where) => this.pointed(second, first, this.back, where);
  }

  /** The second pane follows its own state. */
  follow(now, changed) {
    if (!this.beside || !this.second.view) return;
    this.second.inks = this.first.inks;
    if (REBUILT.some((name) => changed.has(name))) this.second.openView(now);
    else this.second.view.update(now, changed);
  }

  /** One pane has changed: the other one follows. Without names, everything is carried over. */
  carry(from, to, translation, changed) {
    const { now } = from.state;
    const has = (...names) => !changed || names.some((name) => changed.has(name));
    const patch = Object.fromEntries(LINKED.filter((name) => has(name)).map((name) => [name, now[name]]));
    const call = translation.call(now.call);
    if (has("call", "head") && call !== null) {
      patch.call = call;
      patch.head = translation.head(now.call, now.head) ?? to.state.now.head;
    }
    if (has("call", "heads") && call !== null)
      patch.heads = now.heads?.map((head) => translation.head(now.call, head)).filter((head) => head !== null) ?? null;
    if (has("call", "query", "key") && call !== null)
      for (const side of ["query", "key"]) patch[side] = translation.token(now.call, side, now[side]);
    if (has("what") && now.what !== "difference") patch.what = now.what;
    if (has("zoom") && this.sameSize()) patch.zoom = now.zoom;
    to.state.set(patch, "link");
  }

  /** Whether both matrices have the same axes. */
  sameSize() {
    const [one, other] = [this.first, this.second].map(({ state }) => state.call);
    return one.queries === other.queries && one.keys === other.keys;
  }

  /** What is pointed at in one pane is shown in the other: tokens by their partners, or a head. */
  pointed(from, to, translation, where) {
    if (!this.beside || !to.view?.pointTo) return;
    if (where === null) {
      to.view.pointTo(null);
      return;
    }
    const found =
      "head" in where
        ? { call: translation.call(where.call), head: translation.head(where.call, where.head) }
        : {
            query: translation.token(from.state.now.call, "query", where.query),
            key: translation.token(from.state.now.call, "key", where.key),
          };
    to.view.pointTo(Object.values(found).every((value) => value === null) ? null : found);
  }

  // ---- on the stage ------------------------------------------------------------------------------

  /** Puts one pane or both onto the stage. */
  arrange(stage) {
    const { first, second, headings, beside, absent } = this;
    stage.classList.add("compared");
    stage.classList.toggle("beside", beside);
    const side = (pane, heading, ...rest) => make("section", { class: "side-pane" }, heading, ...rest, pane.place);
    const own = side(first, headings[0]);
    if (beside) {
      const other = side(second, headings[1], absent);
      other.classList.add("second");
      stage.replaceChildren(own, other);
    } else stage.replaceChildren(own);
    if (!stage.dataset.linked) stage.addEventListener("scroll", (event) => this.scrolled(event.target), true);
    stage.dataset.linked = "yes";
    this.describe();
  }

  /** Opens the view of the second pane, where it is in sight. */
  openSecond() {
    const { second } = this;
    second.inks = this.first.inks;
    if (this.beside) second.openView(second.state.now);
    else second.view?.destroy?.();
    if (!this.beside) second.view = null;
  }

  /** The headings: what each side is, and which head of it is shown. */
  describe() {
    const { first, second, headings, beside, absent } = this;
    const names = [first, second].map(({ recording }) => recording.side);
    if (!beside) {
      headings[0].replaceChildren(
        datum(`${names[1]} − ${names[0]}`),
        " ",
        make("small", {}, moreIn("positive", names[1]), " ", moreIn("negative", names[0])),
      );
      headings[0].parentElement?.setAttribute("aria-label", say("what.difference"));
      return;
    }
    const missing = this.there.call(first.state.now.call) === null;
    absent.hidden = !missing;
    absent.textContent = missing ? say("compare.absent", { layer: first.state.call.layer }) : "";
    second.place.hidden = missing;
    [first, second].forEach(({ state }, at) => {
      const { call, now } = state;
      const where =
        now.view === "overview" || now.view === "heads" || (at && missing)
          ? ""
          : `${say("layer.n", { layer: call.layer })} · ${say("head.n", { head: call.heads[now.head] })}`;
      headings[at].replaceChildren(datum(names[at]), " ", make("small", {}, where));
      headings[at].parentElement?.setAttribute("aria-label", names[at]);
    });
  }

  /** What one pane scrolls, the other one scrolls too, by the same share. */
  scrolled(element) {
    if (!this.beside || !this.second.view) return;
    const [own, theirs] = [this.first, this.second].map(({ place }) => [...place.querySelectorAll(SCROLLED)]);
    const other = own.includes(element) ? theirs[own.indexOf(element)] : own[theirs.indexOf(element)];
    if (!other) return;
    const echo = Math.abs((this.moved.get(element) ?? -1) - element.scrollTop) < 1;
    this.moved.delete(element);
    if (echo) return;
    other.scrollTop = shareScrolled(element) * Math.max(0, other.scrollHeight - other.clientHeight);
    this.moved.set(other, other.scrollTop);
  }
}

function moreIn(sign, name) {
  return make("span", { class: `more-in ${sign}` }, say("compare.more", { name }));
}

function shareScrolled({ scrollTop, scrollHeight, clientHeight }) {
  return scrollTop / Math.max(1, scrollHeight - clientHeight);
}
