// Text: the running text, wrapped like a book. The token that is pointed at or pinned shades all others by what it
// attends to, or by what attends to it; or all tokens are shaded by their relevance for one position, through all
// layers. Source and target of a translation are two blocks with lines between them.

import { choice, datum, make, segments } from "../elements.js";
import { say } from "../languages.js";
import { legendElement } from "../legend.js";
import { groupNames, groupTokens } from "../lens.js";
import { quantityText, shareText, valueText } from "../numbers.js";
import { cardsSection } from "../role_cards.js";
import { headsOfRole, pairParts, rolesOf } from "../roles.js";
import { Shading } from "../shading.js";
import { oncePerFrame } from "../slices.js";
import { CanvasSurface } from "../surface.js";
import {
  firstAtLeast,
  greatestPlaces,
  greatestSizeOf,
  meanOf,
  restingKeys,
  strongestColour,
  sumOverUnits,
  textDirection,
} from "../text_weights.js";
import { AlignmentPlay } from "./text_alignment.js";
import { drawLinks, linksLayer } from "./text_links.js";
import { markProbabilities, nextParts, probabilityLegend, writtenSide } from "./text_next.js";

const TONES = 24;
const DECADES = 2; // of the logarithmic scale, below the strongest weight shown
const MOST_LISTED = 6;
// What the bar above the text depends on.
const IN_BAR = ["call", "head", "group", "direction", "quiet", "likely", "what", "scale", "palette"];
// What the pictures of the cards depend on.
const CARD_COLOURS = ["what", "scale", "palette"];
const UNKNOWN = 100; // no tone, so that a token is painted again
const BEYOND = 80; // pixels above and below what is in sight that are painted too

export class TextView {
  constructor(app) {
    this.app = app;
    this.pointed = null; // { side, unit } under the pointer, or played
    // By the next frame another view may be in its place, and the state that of another text.
    this.paintSoon = oncePerFrame(() => this.root.isConnected && this.paint());
    this.shadeSoon = oncePerFrame(() => this.shadeAll());
    this.bar = make("div", { class: "view-bar text-bar" });
    this.legend = make("span", { class: "legend-place" });
    this.caption = make("p", { class: "text-caption", role: "status", "aria-live": "polite" });
    this.listed = make("ol", { class: "strongest", "aria-label": say("text.strongest") });
    this.next = make("div", { class: "next-tokens" });
    this.book = make("div", { class: "book", on: { scroll: () => this.shadeSoon() } });
    this.cards = make("div", { class: "role-cards-place" });
    this.root = make(
      "section",
      { class: "view text" },
      this.bar,
      make("div", { class: "text-said" }, this.caption, this.listed, this.next),
      make("div", { class: "scroll" }, this.book, this.cards),
    );
    this.resized = new ResizeObserver(() => {
      for (const block of Object.values(this.blocks)) block.tops = null;
      this.paintSoon();
    });
    this.resized.observe(this.book);
    this.play = new AlignmentPlay(this);
  }

  destroy() {
    this.resized.disconnect();
    this.play.stop();
  }

  mounted() {
    this.showCards();
    if (this.app.opening && this.cross) this.play.start();
    this.app.opening = false;
    this.showPinned();
  }

  showCards() {
    this.cards.replaceChildren(...cardsSection(this.app));
  }

  /** The heads on cards are those of all layers as soon as they are known. */
  summarised() {
    if (this.app.recording.layers.summaries.done && !this.cards.contains(document.activeElement)) this.showCards();
  }

  get cross() {
    return this.app.state.call.kind === "cross";
  }

  update(now, changed) {
    if (changed) this.play.stop();
    const rebuilt = !changed || ["call", "special", "words", "what"].some((name) => changed.has(name));
    if (changed && CARD_COLOURS.some((name) => changed.has(name))) this.showCards();
    if (rebuilt && (!changed || this.differs(now))) this.build(now);
    this.book.classList.toggle("likely", now.likely === "on" && writtenSide(this) !== null);
    if (!changed || IN_BAR.some((name) => changed.has(name))) this.buildBar(now);
    if (rebuilt) this.pointed = null;
    if (rebuilt || changed.has("find")) this.markFound();
    this.paint();
  }

  /** Whether the text shown is another one: layers of one kind share theirs. */
  differs({ call, special, words, what }) {
    const { kind, ...own } = this.app.recording.calls[call].tokensOf(what);
    const { tokens, lens } = this.shown;
    const same = tokens.key === own.key && tokens.query === own.query && tokens.kind === kind;
    return !same || lens[0] !== special || lens[1] !== words;
  }

  // ---- what can be chosen ----------------------------------------------------------------------

  buildBar(now) {
    const { state, recording } = this.app;
    const roles = rolesOf(recording).filter((role) => headsOfRole(recording, state.call, role).length);
    const groups = ["head", "mean"].map((name) => [name, say(`text.${name}`)]);
    if (this.relevant.length) groups.push(["relevance", say("text.relevance")]);
    const named = recording.layers.whole ? "text.role" : "text.role.layer";
    const options = [...groups, ...roles.map((role) => [role, say(named, { role: say(`role.${role}`) })])];
    const offered = options.some(([name]) => name === now.group); // a picture has one more
    const ways = ["from", "to"].map((name) => [name, say(`text.${name}`)]);
    const box = make("input", {
      type: "checkbox",
      on: { change: () => state.set({ quiet: box.checked ? "on" : "off" }) },
    });
    box.checked = now.quiet === "on";
    const focused = this.bar.contains(document.activeElement)
      ? [...this.bar.querySelectorAll("button, select, input")].indexOf(document.activeElement)
      : -1;
    this.bar.replaceChildren(
      ...[
        make(
          "div",
          { class: "field" },
          choice(options, offered ? now.group : "head", (group) => state.set({ group }), {
            "aria-label": say("text.group"),
            title: this.relevant.length ? say("text.relevance.about") : null,
          }),
        ),
        this.cross || this.relevance
          ? null
          : segments(ways, now.direction, (direction) => this.turn(direction), say("text.direction")),
        make("label", { class: "toggle" }, box, say("text.quiet")),
        this.legend,
        ...this.likelySwitch(now),
        now.likely === "on" ? null : make("span", { class: "hint wide-only" }, this.hint),
      ].filter(Boolean),
    );
    this.root.classList.toggle("two", this.cross);
    if (focused >= 0) [...this.bar.querySelectorAll("button, select, input")][focused]?.focus();
  }

  get hint() {
    if (this.relevance) return say("text.relevance.about");
    return say(this.cross ? "text.hint.cross" : "text.hint");
  }

  /** The colour bar of what is shaded: colours are relative to the strongest number, another one for each token. */
  showLegend(seen) {
    const name = seen
      ? [seen.shading.named, seen.shading.greatest, seen.shading.scale, this.app.inks.dark].join(" ")
      : "";
    if (this.legend.dataset.shown === name) return;
    this.legend.dataset.shown = name;
    const bar = seen ? legendElement(seen.shading, this.app.inks) : null;
    this.legend.replaceChildren(...(bar ? [bar] : []));
  }

  /** The switch that colours tokens by their probability, where it is known. */
  likelySwitch(now) {
    if (!writtenSide(this)) return [];
    const { state, recording } = this.app;
    const box = make("input", {
      type: "checkbox",
      on: { change: () => state.set({ likely: box.checked ? "on" : "off" }) },
    });
    box.checked = now.likely === "on";
    const text = say(recording.next.generated === null ? "text.likely.read" : "text.likely.written");
    const label = make("label", { class: "toggle" }, box, text);
    return now.likely === "on" ? [label, probabilityLegend()] : [label];
  }

  /** The other direction, with the same token pinned. */
  turn(direction) {
    const { state } = this.app;
    const { offset } = state.call;
    const { query, key } = state.now;
    const pins =
      direction === "to"
        ? { query: null, key: query === null ? key : query + offset }
        : { query: key === null || key < offset ? query : key - offset, key: null };
    state.set({ direction, ...pins });
  }

  // ---- the text --------------------------------------------------------------------------------

  build({ special, words, what }) {
    const { call } = this.app.state;
    const texts = call.tokensOf(what);
    this.shown = { tokens: texts, lens: [special, words] };
    const side = (name, tokens, marks, wordsOf, spaces) => {
      const hidden = marks.map((is) => special === "hide" && is);
      const units = groupTokens(wordsOf, hidden, words === "merge");
      return {
        side: name,
        tokens,
        marks,
        units,
        names: groupNames(units, tokens),
        spaces,
        tones: new Int8Array(units.count), // what each unit should look like
        painted: new Int8Array(units.count), // what it looks like
        tops: null, // where each unit is in the book, measured when needed
      };
    };
    const key = side("key", texts.key, call.keySpecial, call.keyWords, call.keySpaces);
    this.blocks = { key };
    if (this.cross) {
      this.blocks.query = side("query", texts.query, call.querySpecial, call.queryWords, call.querySpaces);
    }
    const blocks = Object.values(this.blocks);
    const longest = Math.max(...blocks.map((block) => block.units.count));
    this.book.className = `book ${longest > 300 ? "long" : longest > 60 ? "middling" : "short"}`;
    for (const block of blocks) this.buildBlock(block);
    markProbabilities(this);
    this.links = this.cross ? linksLayer() : null;
    this.book.replaceChildren(...(this.links ? [this.links] : []), ...blocks.map((block) => block.root));
  }

  buildBlock(block) {
    const { units, names, marks, tokens, spaces, side } = block;
    block.elements = names.map((name, unit) => {
      const first = units.first[unit];
      const kind = marks[first] ? "token special" : "token";
      return make("span", { class: kind, role: "option", id: this.idOf(side, unit), "data-unit": unit }, name);
    });
    const parts = [];
    block.elements.forEach((element, unit) => {
      if (!spaces[units.first[unit]]) {
        element.classList.add("joined");
        parts.at(-1)?.classList.add("joins");
      } else if (parts.length) parts.push(" ");
      parts.push(element);
      if (/⏎$/.test(names[unit])) parts.push(make("br", { role: "presentation" }));
    });
    const unitOf = (event) => {
      const found = event.target.closest?.("[data-unit]");
      return found ? Number(found.dataset.unit) : -1;
    };
    const point = (event) => this.point(side, event.pointerType === "touch" ? -1 : unitOf(event));
    const click = (event) => {
      if (unitOf(event) >= 0) this.pin(side, unitOf(event));
    };
    const label = this.cross ? say(side === "key" ? "text.source" : "text.target") : say("text.label");
    const text = make(
      "div",
      {
        class: "running",
        role: "listbox",
        tabindex: "0",
        dir: textDirection(tokens, marks),
        translate: "no",
        "aria-label": label,
        on: {
          pointermove: point,
          pointerleave: () => this.point(side, -1),
          click,
          keydown: (event) => this.walk(event, side),
        },
      },
      ...parts,
    );
    block.text = text;
    block.root = make("div", { class: `text-block ${side}` }, this.cross ? make("h2", {}, label) : "", text);
  }

  idOf(side, unit) {
    return `${this.app.prefix}${side}-${unit}`;
  }

  // ---- pointing and pinning --------------------------------------------------------------------

  point(side, unit) {
    if (unit >= 0) this.play.stop();
    else if (this.play.running) return;
    const next = unit < 0 ? null : { side, unit };
    if (this.pointed?.side === next?.side && this.pointed?.unit === next?.unit) return;
    this.pointed = next;
    this.app.onPoint?.(next && { [side]: this.blocks[side].units.first[unit] });
    this.paintSoon();
  }

  /** Shows what is pointed at in another pane. */
  pointTo(where) {
    const side = where && this.cross && where.query !== null ? "query" : "key";
    const unit = where ? (this.blocks[side].units.groupOf[where[side]] ?? -1) : -1;
    this.play.stop();
    this.pointed = unit < 0 ? null : { side, unit };
    this.paintSoon();
  }

  /** Pins a token; pinned again, it is released. */
  pin(side, unit) {
    this.play.stop();
    const pins = this.pinsOf(side, unit);
    const { query, key } = this.app.state.now;
    const again = pins.query === query && pins.key === key;
    this.app.state.set(again ? { query: null, key: null } : pins);
    this.blocks[side].text.focus({ preventScroll: true });
  }

  pinsOf(side, unit) {
    const token = this.blocks[side].units.first[unit];
    if (this.cross) return side === "key" ? { query: null, key: token } : { query: token, key: null };
    const { state } = this.app;
    const query = token - state.call.offset;
    return state.now.direction === "to" ? { query: null, key: token } : { query: query < 0 ? null : query, key: null };
  }

  /** The pinned token: { side, unit }, or null. */
  get pinned() {
    const { now, call } = this.app.state;
    const at = (side, token) => {
      const unit = token === null ? -1 : (this.blocks[side].units.groupOf[token] ?? -1);
      return unit < 0 ? null : { side, unit };
    };
    if (this.cross) return at("query", now.query) ?? at("key", now.key);
    const token = now.direction === "to" ? now.key : now.query === null ? null : now.query + call.offset;
    return at("key", token);
  }

  /** Arrow keys inside the text walk from token to token and from line to line. */
  walk(event, side) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { units, elements, text } = this.blocks[side];
    const pinned = this.pinned?.side === side ? this.pinned.unit : -1;
    const along = text.dir === "rtl" ? { ArrowLeft: 1, ArrowRight: -1 } : { ArrowLeft: -1, ArrowRight: 1 };
    let unit = -1;
    if (event.key in along) unit = pinned < 0 ? 0 : pinned + along[event.key];
    else if (event.key === "Home") unit = 0;
    else if (event.key === "End") unit = units.count - 1;
    else if (event.key === "ArrowUp" || event.key === "ArrowDown")
      unit = lineAway(elements, Math.max(pinned, 0), event.key === "ArrowUp" ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (unit < 0 || unit >= units.count) return;
    this.play.stop();
    this.app.state.set(this.pinsOf(side, unit));
    elements[unit].scrollIntoView({ block: "nearest" });
  }

  /** Scrolls to what was pinned last: the strongest key, or the token itself. */
  showPin() {
    this.showPinned(this.target ?? this.pinned);
  }

  /** The key pinned beside a query of the same text: { side, unit }, or null. */
  get target() {
    const { now } = this.app.state;
    if (now.key === null || now.query === null || (!this.cross && now.direction === "to")) return null;
    const unit = this.blocks.key.units.groupOf[now.key] ?? -1;
    return unit < 0 ? null : { side: "key", unit };
  }

  /** Marks the tokens that were searched for. */
  markFound() {
    const found = this.app.found();
    for (const { side, units, elements } of Object.values(this.blocks)) {
      const wanted = new Set([...found[side]].map((token) => units.groupOf[token]));
      elements.forEach((element, unit) => {
        if (wanted.has(unit) !== element.classList.contains("found")) element.classList.toggle("found");
      });
    }
  }

  /** Scrolls the text, and nothing around it, to a token. */
  showPinned(pinned = this.pinned) {
    if (!pinned) return;
    const [box, book] = [this.blocks[pinned.side].elements[pinned.unit], this.book].map((one) =>
      one.getBoundingClientRect(),
    );
    if (box.bottom > book.bottom || box.top < book.top) this.book.scrollTop += box.top - book.top - book.height / 3;
  }

  // ---- relevance -------------------------------------------------------------------------------

  /** What is known about the relevance of the tokens of this text: { row, values }. */
  get relevant() {
    const { recording, state } = this.app;
    const { call } = state;
    return recording.relevance
      .filter(({ run }) => run === call.run)
      .map(({ row, own, source }) => ({ row, values: call.kind === "decoder" || source === null ? own : source }))
      .filter(({ values }) => values.length === call.keys);
  }

  /** The relevance that is shown: that for the token pointed at or pinned, else the first; null if weights are shown. */
  get relevance() {
    const { state } = this.app;
    if (state.now.group !== "relevance") return null;
    const found = this.relevant;
    const here = this.blocks ? (this.pointed ?? this.pinned) : null;
    const token = here ? this.blocks[here.side].units.first[here.unit] : -1;
    return found.find(({ row }) => row === token) ?? found[0] ?? null;
  }

  /** The tokens by their relevance; the position itself, which is always relevant, is left out. */
  seenRelevance({ row, values }) {
    const { call, now } = this.app.state;
    const { key, query } = this.blocks;
    const block = this.cross ? query : call.kind === "encoder" && this.twoTexts ? null : key;
    const unit = block?.units.groupOf[row] ?? -1;
    const here = unit < 0 ? null : { side: block.side, unit };
    const shown = sumOverUnits(values, key.units);
    if (here?.side === "key") shown[unit] = 0;
    if (now.quiet === "on") {
      const rests = this.resting(this.everyHead);
      key.units.first.forEach((_, at) => {
        if (rests[at]) shown[at] = 0;
      });
    }
    const { ramp } = this.app.inks;
    const greatest = greatestSizeOf(shown);
    const named = "text.relevance";
    const shading = new Shading({ ramp, scale: now.scale, greatest, what: "relevance", named });
    return { here, asQuery: true, other: key, weights: shown, shown, rested: 0, shading, row };
  }

  /** All heads that read this text. */
  get everyHead() {
    const { recording, state } = this.app;
    const { kind, run } = state.call;
    const alike = recording.calls.filter((call) => call.present && call.kind === kind && call.run === run);
    return alike.flatMap((call) => call.heads.map((_, head) => ({ call, head })));
  }

  /** Whether there is a source besides the text that is written. */
  get twoTexts() {
    return this.app.recording.calls.some(({ kind }) => kind === "cross");
  }

  // ---- weights ---------------------------------------------------------------------------------

  /** The heads that are shown: one, all of the layer, or those of a role. */
  get heads() {
    const { recording, state } = this.app;
    const { group, head } = state.now;
    if (group === "mean") return state.call.heads.map((_, one) => ({ call: state.call, head: one }));
    const found = group === "head" ? [] : headsOfRole(recording, state.call, group);
    return found.length ? found : [{ call: state.call, head }];
  }

  /**
   * What the token at `here` attends to, or what attends to it: one number for each unit of the other side, 0 where it
   * is masked.
   * @param {{ side: string, unit: number }} here
   * @param {string} what
   */
  weightsFrom(here, what = this.app.state.now.what) {
    const { state } = this.app;
    const asQuery = this.cross ? here.side === "query" : state.now.direction === "from";
    const token = this.blocks[here.side].units.first[here.unit];
    const other = this.blocks[this.cross ? (asQuery ? "key" : "query") : "key"];
    const offset = this.cross ? 0 : state.call.offset;
    const look = this.app.lookAt(state.now.call, what);
    const [row, column] = asQuery ? [look.rowOf(token - offset), -1] : [-1, look.columnOf(token)];
    const weights = new Float32Array(other.units.count);
    if (row < 0 && column < 0) return { asQuery, other, weights };
    const found = meanOf(
      this.heads.map(({ call, head }) => {
        const own = this.app.lookAt(call.index, what);
        return asQuery ? own.row(head, row) : own.values(head, 0, own.rows.count, column, column + 1);
      }),
    );
    const place = asQuery ? (unit) => look.columnOf(unit) : (unit) => look.rowOf(unit - offset);
    other.units.first.forEach((first, unit) => {
      const at = place(first);
      if (at >= 0 && !Number.isNaN(found[at])) weights[unit] = found[at];
    });
    return { asQuery, other, weights };
  }

  /** Which keys are sinks, kept quiet. */
  restingTokens(heads = this.heads) {
    const first = heads.reduce((sum, { call, head }) => sum + call.statistic("first_weight")[head], 0) / heads.length;
    return restingKeys(this.blocks.key.marks, first);
  }

  /** Which units of the keys' text are sinks, kept quiet. */
  resting(heads = this.heads) {
    const tokens = this.restingTokens(heads);
    return this.blocks.key.units.first.map((token) => tokens[token]);
  }

  /** The weights of a row as they are shown: the mean of the heads, quiet sinks without any. */
  shownRow(row) {
    const look = this.app.look();
    const found = meanOf(this.heads.map(({ call, head }) => this.app.lookAt(call.index).row(head, row)));
    if (this.app.state.now.quiet === "off") return found;
    const resting = this.restingTokens();
    return found.map((weight, column) => (resting[look.columns.first[column]] ? 0 : weight));
  }

  // ---- painting --------------------------------------------------------------------------------

  /** The token in focus with its weights, sinks apart; null without one. */
  seen() {
    const { relevance } = this;
    if (relevance) return this.seenRelevance(relevance);
    const here = this.pointed ?? this.pinned;
    if (!here) return null;
    const { asQuery, other, weights } = this.weightsFrom(here);
    const shown = weights.slice();
    let rested = 0;
    if (asQuery && this.app.state.now.quiet === "on") {
      this.resting().forEach((is, unit) => {
        if (!is) return;
        rested += shown[unit];
        shown[unit] = 0;
      });
    }
    return { here, asQuery, other, weights, shown, rested, shading: this.shadingOf(shown) };
  }

  /** Colours relative to the strongest number that is shown. */
  shadingOf(shown) {
    const shading = this.app.shading();
    shading.beyond = false;
    shading.greatest = shading.what === "weight" ? strongestColour(shown) : greatestSizeOf(shown) || 1;
    return shading;
  }

  paint() {
    const seen = this.seen();
    this.now = seen;
    const pinned = this.pinned;
    for (const block of Object.values(this.blocks)) {
      this.setTones(block, seen?.other === block ? seen : null);
      this.shade(block);
      this.markHere(block, seen?.here, pinned);
    }
    this.markTarget();
    this.tell(seen);
    this.showLegend(seen);
    if (this.links) drawLinks(this, seen, new CanvasSurface(this.links.fit(this.book)));
  }

  /** The style of each tone, from −TONES to TONES; few, so that most tokens keep theirs when the pointer moves. */
  styles(shading) {
    const { ramp } = shading;
    if (this.styled?.ramp !== ramp) {
      const texts = Array.from({ length: 2 * TONES + 1 }, (_, at) => {
        const place = placeOf(at - TONES, shading);
        return at === TONES ? "" : `background:${shading.colour(place)};color:${shading.ink(place)}`;
      });
      this.styled = { ramp, texts };
    }
    return this.styled.texts;
  }

  /** The tone of every unit: how strong its number is compared with the strongest. */
  setTones(block, seen) {
    const { tones } = block;
    if (seen) block.shading = seen.shading;
    for (let unit = 0; unit < tones.length; unit += 1) {
      tones[unit] = seen ? toneOfUnit(seen.shown[unit], seen.shading) : 0;
    }
  }

  shadeAll() {
    for (const block of Object.values(this.blocks)) this.shade(block);
  }

  /** Paints the units whose tone changed; of a long text only those in sight, the others when they get there. */
  shade(block) {
    const { elements, tones, painted } = block;
    const shading = block.shading ?? this.app.shading();
    const texts = this.styles(shading);
    if (block.ramp !== shading.ramp) painted.fill(UNKNOWN);
    block.ramp = shading.ramp;
    const [from, to] = this.unitsInSight(block);
    for (let unit = from; unit < to; unit += 1) {
      if (painted[unit] === tones[unit]) continue;
      painted[unit] = tones[unit];
      elements[unit].style.cssText = texts[tones[unit] + TONES];
    }
  }

  /** The units in sight, the last exclusive: all of them, unless the book scrolls. */
  unitsInSight(block) {
    const { elements } = block;
    const { book } = this;
    if (!book.classList.contains("long") || !book.clientHeight) return [0, elements.length];
    block.tops ??= Float64Array.from(elements, (element) => element.offsetTop);
    const [top, bottom] = [book.scrollTop - BEYOND, book.scrollTop + book.clientHeight + BEYOND];
    return [firstAtLeast(block.tops, top), firstAtLeast(block.tops, bottom)];
  }

  markTarget() {
    this.targeted?.classList.remove("target");
    const target = this.pointed ? null : this.target;
    this.targeted = target ? this.blocks[target.side].elements[target.unit] : null;
    this.targeted?.classList.add("target");
  }

  markHere(block, here, pinned) {
    const { elements, text, side, tones } = block;
    block.marked?.classList.remove("here", "pinned", "shaded");
    block.marked?.removeAttribute("aria-selected");
    block.marked = here?.side === side ? elements[here.unit] : null;
    block.marked?.classList.add("here");
    if (block.marked && tones[here.unit] !== 0) block.marked.classList.add("shaded");
    if (pinned?.side === side) {
      text.setAttribute("aria-activedescendant", this.idOf(side, pinned.unit));
      if (block.marked && pinned.unit === here.unit) {
        block.marked.classList.add("pinned");
        block.marked.setAttribute("aria-selected", "true");
      }
    } else text.removeAttribute("aria-activedescendant");
  }

  /** Who attends to whom, in words, with the strongest others as a list. */
  tell(seen) {
    const where = this.where();
    const parts = nextParts(this, seen?.here);
    this.next.replaceChildren(...parts);
    this.next.hidden = parts.length === 0;
    if (!seen) {
      this.caption.replaceChildren(
        make("span", { class: "where" }, where),
        " ",
        make("span", { class: "hint" }, say("text.nothing")),
      );
      this.listed.replaceChildren();
      return;
    }
    if (seen.row !== undefined) {
      this.tellRelevance(seen);
      return;
    }
    const { here, asQuery, other, shown, rested } = seen;
    const own = this.blocks[here.side].names[here.unit];
    const best = greatestPlaces(shown, MOST_LISTED);
    const pair = (unit) => (asQuery ? [own, other.names[unit]] : [other.names[unit], own]);
    const told = best.length
      ? pairParts(...pair(best[0]), shown[best[0]], this.said(shown[best[0]]))
      : [datum(own, "pair-token"), " ", make("span", { class: "hint" }, say(asQuery ? "text.blind" : "text.unseen"))];
    const rest =
      rested > 0.005 && this.app.state.now.what === "weight"
        ? [" ", make("small", {}, say("text.rested", { share: shareText(rested) }))]
        : [];
    this.caption.replaceChildren(make("span", { class: "where" }, say("text.where", { where })), ...told, ...rest);
    this.caption.dataset.weight = best.length ? String(shown[best[0]]) : "";
    this.list(best.slice(1), other, shown);
  }

  /** What the relevance is for, and the most relevant tokens. */
  tellRelevance({ here, other, shown, row }) {
    const name = here ? this.blocks[here.side].names[here.unit] : String(row);
    const best = greatestPlaces(shown, MOST_LISTED);
    this.caption.replaceChildren(
      make("span", { class: "where" }, say("text.relevance.for"), " "),
      datum(name, "pair-token"),
    );
    this.caption.dataset.weight = best.length ? String(shown[best[0]]) : "";
    this.list(best, other, shown);
  }

  list(units, other, shown) {
    const item = (unit) =>
      make("li", {}, datum(other.names[unit], "pair-token"), " ", datum(this.said(shown[unit]), "number"));
    this.listed.replaceChildren(...units.map(item));
  }

  /** A number as text: weights are shares of a query's attention, other quantities are not. */
  said(value) {
    if (this.relevance) return valueText(value);
    const { what } = this.app.state.now;
    return what === "weight" ? shareText(value) : quantityText(value, what);
  }

  /** "Layer 2 · head 1", "Layer 2 · mean of 12 heads", or the heads of a role. */
  where() {
    const { call, now } = this.app.state;
    const { what } = now;
    const layer = `${what === "weight" ? "" : `${say(this.app.named)} · `}${say("layer.n", { layer: call.layer })}`;
    const count = this.heads.length;
    if (now.group === "mean") return `${layer} · ${say("text.mean.of", { count })}`;
    if (now.group !== "head" && this.heads.some(({ call: one, head }) => one.roles[head]?.role === now.group))
      return say("text.role.of", { role: say(`role.${now.group}`), count });
    return `${layer} · ${say("text.head.n", { head: call.heads[now.head] })}`;
  }

  // ---- export ----------------------------------------------------------------------------------

  pictureSize() {
    return { width: Math.max(200, this.book.scrollWidth), height: Math.max(60, this.book.scrollHeight + 34) };
  }

  draw(surface) {
    const { inks } = this.app;
    surface.text(0, 10, this.caption.textContent, {
      fill: inks.ink,
      size: 14,
      weight: 600,
      limit: this.pictureSize().width,
    });
    const from = this.book.getBoundingClientRect();
    const [left, top] = [from.left - this.book.scrollLeft, from.top - this.book.scrollTop - 34];
    for (const block of Object.values(this.blocks)) {
      const size = Number.parseFloat(getComputedStyle(block.text).fontSize);
      block.elements.forEach((element, unit) => {
        const box = element.getClientRects()[0];
        if (!box) return;
        const tone = block.tones[unit];
        const place = tone ? placeOf(tone, this.now.shading) : 0;
        const [x, y] = [box.left - left, box.top - top];
        if (tone) surface.rect(x, y, box.width, box.height, this.now.shading.colour(place), { radius: 4 });
        const special = element.classList.contains("special");
        const fill = tone ? this.now.shading.ink(place) : special ? inks.faint : inks.ink;
        const weight = element.classList.contains("here") ? 700 : 400;
        surface.text(x + box.width / 2, y + box.height / 2, block.names[unit], {
          fill,
          size: special ? size * 0.7 : size,
          anchor: "middle",
          weight,
        });
      });
    }
  }
}

/** How strongly a unit is shaded, −TONES … TONES. */
function toneOfUnit(value, shading) {
  const tone = Math.round(TONES * shading.strength(value, DECADES));
  return shading.signed && value < 0 ? -tone : tone;
}

/** The place of a tone on the ramp. */
function placeOf(tone, { signed }) {
  return signed ? 0.5 + tone / TONES / 2 : Math.max(0, tone) / TONES;
}

/** The unit above or below another one, nearest to it. */
function lineAway(elements, unit, step) {
  const box = elements[unit].getBoundingClientRect();
  const middle = (box.left + box.right) / 2;
  let [best, distance, line] = [unit, Infinity, null];
  for (let at = unit + step; at >= 0 && at < elements.length; at += step) {
    const other = elements[at].getBoundingClientRect();
    if (Math.abs(other.top - box.top) < box.height / 2) continue;
    line ??= other.top;
    if (Math.abs(other.top - line) >= box.height / 2) break;
    const away = Math.abs((other.left + other.right) / 2 - middle);
    if (away < distance) [best, distance] = [at, away];
  }
  return best;
}
