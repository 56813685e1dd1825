// Overview: every head as a small picture, by layer, or in the order of a statistic.

import { SHOWN } from "../call_view.js";
import { fillBar } from "../controls.js";
import { choice, datum, make, press } from "../elements.js";
import { explain } from "../explained.js";
import { foundIn } from "../find.js";
import { say, statisticMeaning, statisticName } from "../languages.js";
import { legendElement } from "../legend.js";
import { numberText } from "../numbers.js";
import { allHeads, sortHeads } from "../ranking.js";
import { headName, plays, roleBadge, roleChoice, rolesOf, roleTitle } from "../roles.js";
import { Slices } from "../slices.js";
import { summaryNotice } from "../summary_notice.js";
import { paintThumbnail, thumbnailOf } from "../thumbnails.js";
import { Tiles } from "../tiles.js";

const QUICK = 3e7; // multiplications, a tenth of a second

/** The order of the heads: "" is by layer. */
function orderOf({ sort }) {
  return sort === "layer" ? "" : sort;
}

export class OverviewView {
  constructor(app) {
    this.app = app;
    this.slices = new Slices();
    this.cards = [];
    this.bar = make("div", { class: "view-bar" });
    this.body = make("div", { class: "scroll" });
    this.legend = make("span", { class: "legend-place" });
    this.root = make("section", { class: "view overview" }, this.bar, this.body);
  }

  destroy() {
    this.slices.stop();
  }

  ready() {
    return this.slices.idle();
  }

  update(now, changed) {
    const rebuilt = !changed || ["sort", "descending", "role", "what"].some((name) => changed.has(name));
    if (rebuilt) this.build(now);
    if (!rebuilt && (changed.has("scale") || changed.has("palette"))) this.showLegend();
    if (!rebuilt && SHOWN.some((name) => changed.has(name))) this.buildBar(now);
    if (rebuilt || changed.has("find")) this.markFound();
    const repaint = ["scale", "palette", ...SHOWN];
    if (rebuilt || repaint.some((name) => changed.has(name))) this.paintAll();
    for (const card of this.cards) {
      card.root.setAttribute("aria-current", String(card.call.index === now.call && card.head === now.head));
    }
    if (!changed) return;
    // Another order begins at its beginning.
    if (["sort", "descending", "role"].some((name) => changed.has(name))) this.body.scrollTop = 0;
    else if (changed.has("call")) this.reveal();
  }

  mounted() {
    // In other orders the first heads are those to look at.
    const { call, sort } = this.app.state.now;
    if (call > 0 && (sort === "" || sort === "layer")) this.reveal();
  }

  /** Brings the current head into sight. */
  reveal() {
    const current = this.cards.find(({ root }) => root.getAttribute("aria-current") === "true");
    current?.root.scrollIntoView({ block: "nearest" });
  }

  build(now) {
    this.app.recording.layers.summarise(now.call);
    this.buildBar(now);
    this.cards = [];
    const sorted = orderOf(now);
    const parts = { "": () => this.grouped(), role: () => this.byRole() };
    this.body.replaceChildren(...(parts[sorted]?.() ?? [this.flat(sorted, now.descending)]));
  }

  /** Shows what has become known of heads since: in place, or in a new order once all are known. */
  summarised() {
    const { state, recording } = this.app;
    const { now } = state;
    this.buildBar(now);
    if (orderOf(now) === "" && now.role === "") for (const card of this.cards) this.dress(card);
    else if (recording.layers.summaries.done) {
      const focused = this.cards.find(({ root }) => root === document.activeElement);
      const top = this.body.scrollTop;
      this.update(now, null);
      this.body.scrollTop = top;
      if (focused) this.cards.find(({ call, head }) => call === focused.call && head === focused.head)?.root.focus();
      return;
    }
    this.paintAll();
  }

  buildBar(now) {
    const { recording, state } = this.app;
    const options = [
      ["", say("overview.layers")],
      ...(rolesOf(recording).length ? [["role", say("overview.roles")]] : []),
      ...recording.statistics.map((name) => [name, statisticName(name)]),
    ];
    const sorted = orderOf(now);
    fillBar(this.bar, [
      make(
        "label",
        { class: "field" },
        say("order"),
        choice(options, sorted, (sort) => state.set({ sort }), { "data-control": "sort" }),
      ),
      press(say(now.descending ? "order.down" : "order.up"), () => state.set({ descending: !now.descending }), {
        hidden: !sorted || sorted === "role",
        "data-control": "descending",
      }),
      ...roleChoice(this.app),
      this.legend,
      make("span", { class: "hint" }, statisticMeaning(sorted)),
      ...summaryNotice(this.app),
    ]);
    this.showLegend();
  }

  /** One scale for all heads, so that they can be compared. */
  showLegend() {
    this.legend.replaceChildren(...[legendElement(this.app.shading(), this.app.inks)].filter(Boolean));
  }

  /** One block for each run and kind, one row for each layer. */
  grouped() {
    const { role } = this.app.state.now;
    const blocks = new Map();
    for (const call of this.app.recording.calls) {
      const name = `${call.run} ${call.kind}`;
      blocks.set(name, [...(blocks.get(name) ?? []), call]);
    }
    const runs = new Set(this.app.recording.calls.map((call) => call.run)).size;
    return [...blocks.values()].map((calls) => {
      const most = Math.max(...calls.map((call) => call.heads.length));
      const title = say("overview.kind", { kind: say(`kind.${calls[0].kind}`) });
      const grid = make("div", { class: "heads-grid" });
      grid.style.setProperty("--heads", most);
      for (const call of calls) {
        const row = make("div", { class: "heads-row" });
        row.append(...call.heads.map((_, head) => this.card(call, head, "", this.badge(call, head))));
        // Heads keep their places, so that the eye finds them again; those of other roles fade.
        for (const card of this.cards.slice(-call.heads.length))
          card.root.classList.toggle("other", !plays(card, role));
        grid.append(make("div", { class: "layer-name" }, say("layer.n", { layer: call.layer })), row);
      }
      const count = calls.reduce((sum, call) => sum + call.heads.length, 0);
      return make(
        "div",
        { class: "block" },
        make(
          "h2",
          {},
          title,
          runs > 1 ? ` · ${say("run.n", { run: calls[0].run })}` : "",
          make(
            "small",
            {},
            say(calls.length === 1 ? "overview.heads.one" : "overview.heads", { layers: calls.length, heads: count }),
            " · ",
            say("size", { queries: calls[0].queries, keys: calls[0].keys }),
          ),
        ),
        grid,
      );
    });
  }

  /** One block for each role, the clearest heads first. */
  byRole() {
    const { role } = this.app.state.now;
    const blocks = new Map();
    for (const one of sortHeads(allHeads(this.app.recording), "role", true).filter((found) => plays(found, role))) {
      const name = one.call.roles[one.head]?.role ?? "";
      blocks.set(name, [...(blocks.get(name) ?? []), one]);
    }
    return [...blocks].map(([name, found]) =>
      make(
        "div",
        { class: "block" },
        make(
          "h2",
          {},
          say(name ? `role.${name}` : "role.none"),
          make(
            "small",
            {},
            name ? `${say(`role.${name}.says`)} · ` : "",
            say(found.length === 1 ? "overview.count.one" : "overview.count", { count: found.length }),
          ),
        ),
        make("div", { class: "flat" }, ...found.map((one) => this.placedCard(one))),
      ),
    );
  }

  /** A head outside its row, with its layer. */
  placedCard({ call, head }, number = "") {
    const kinds = new Set(this.app.recording.calls.map((one) => one.kind)).size;
    const where = `${kinds > 1 ? `${say(`kind.${call.kind}`)} ` : ""}${call.layer} · ${call.heads[head]}`;
    return this.card(call, head, where, number);
  }

  flat(name, descending) {
    const { role } = this.app.state.now;
    const found = sortHeads(allHeads(this.app.recording), name, descending).filter((one) => plays(one, role));
    return make(
      "div",
      { class: "flat" },
      ...found.map((one) => this.placedCard(one, numberText(one.call.statistic(name)[one.head]))),
    );
  }

  /** The effect of a head where effects were measured, or how far it changed where recordings are compared. */
  badge(call, head) {
    const name = ["effect", "change"].find((one) => this.app.recording.statistics.includes(one));
    return name ? numberText(call.statistic(name)[head]) : "";
  }

  card(call, head, where, number = "") {
    const canvas = make("canvas", { width: 1, height: 1, "aria-hidden": "true" });
    const marks = make("canvas", { class: "marks", hidden: true, "aria-hidden": "true" });
    const picture = make("span", { class: "picture" }, canvas, marks);
    const caption = make(
      "span",
      { class: "caption" },
      datum(where || String(call.heads[head])),
      ...(number ? [" ", datum(number, "number")] : []),
    );
    const root = press([], () => this.app.open(call.index, head), { class: "card" });
    root.addEventListener("pointerenter", () => this.app.onPoint?.({ call: call.index, head }));
    root.addEventListener("pointerleave", () => this.app.onPoint?.(null));
    const card = { call, head, canvas, marks, picture, caption, root, where, number, role: undefined };
    this.dress(card);
    this.cards.push(card);
    return root;
  }

  /** Writes on a card what its head does, where that has become known. */
  dress(card) {
    const { call, head, root, picture, caption, where, number } = card;
    const role = call.roles[head];
    if (card.role === role) return;
    card.role = role;
    const label = headName(this.app.recording, call, head);
    const badge = roleBadge(call, head);
    // The name holds what is written on the card, in the same order.
    const written = [caption.textContent, badge?.textContent].filter(Boolean).join(" ");
    root.setAttribute("aria-label", where || number || badge ? `${label}, ${written}` : label);
    root.replaceChildren(picture, caption, " ", ...[badge].filter(Boolean));
    explain(root, [label, roleTitle(call, head)].filter(Boolean).join("\n"));
  }

  /** Marks the head that is pointed at in another pane. */
  pointTo(where) {
    for (const { call, head, root } of this.cards)
      root.classList.toggle("elsewhere", call.index === where?.call && head === where.head);
  }

  /** Ticks beside the rows of the tokens that were searched for. */
  markFound() {
    const { state, inks } = this.app;
    for (const { call, marks } of this.cards) {
      const { query } = foundIn(call, state.now.find);
      marks.hidden = query.size === 0;
      if (!query.size) continue;
      [marks.width, marks.height] = [1, Math.min(128, call.queries)];
      const context = marks.getContext("2d");
      context.fillStyle = inks.negative;
      for (const token of query) context.fillRect(0, Math.floor((marks.height * token) / call.queries), 1, 1);
    }
  }

  /** The card of the current head. */
  get home() {
    return this.cards.find(({ root }) => root.getAttribute("aria-current") === "true")?.root;
  }

  // ---- pictures ---------------------------------------------------------------------------------

  paintAll() {
    this.slices.run(this.pictures(), () => {});
  }

  /** The cards in sight first, each group in its order; before the view is laid out, all in their order. */
  inSight() {
    const sight = this.body.getBoundingClientRect();
    const [top, bottom] = [Math.max(sight.top, 0), Math.min(sight.bottom, innerHeight)];
    const seen = new Set(
      this.cards.filter(({ root }) => {
        const place = root.getBoundingClientRect();
        return place.bottom > top && place.top < bottom;
      }),
    );
    return [...seen, ...this.cards.filter((card) => !seen.has(card))];
  }

  /** First the thumbnails, then finer pictures; through a lens the thumbnails are not right. */
  *pictures() {
    const cards = this.inSight();
    for (const card of cards) {
      const picture = thumbnailOf(card.call, card.head, this.app.state.now.what);
      const exact = card.call.present && !this.app.lookAt(card.call.index).plain;
      card.root.classList.toggle("waiting", exact || !picture);
      if (picture) this.paintCard(card, picture);
      yield;
    }
    for (const card of cards.filter(({ call }) => call.present)) {
      const look = this.app.lookAt(card.call.index);
      const slow = look.effort * look.rows.count * look.columns.count > QUICK;
      // Those of a long text are as fine as they need be.
      const fine = look.plain && (slow || !this.app.recording.layers.whole);
      if (look.rows.count && look.columns.count && !fine)
        this.paintCard(card, yield* new Tiles(look, card.head).whole());
      card.root.classList.remove("waiting");
    }
  }

  paintCard(card, picture) {
    paintThumbnail(card.canvas, picture, this.app.shading());
  }

  // ---- export -----------------------------------------------------------------------------------

  get across() {
    const most = Math.max(...this.app.recording.calls.map((call) => call.heads.length));
    return this.app.state.now.sort ? Math.min(12, this.cards.length) : most;
  }

  pictureSize() {
    const size = { width: 0, height: 0 };
    const onCard = (_card, x, y) => Object.assign(size, { width: Math.max(size.width, x + 92), height: y + 112 });
    this.place(onCard, (_title, y) => Object.assign(size, { height: y + 20 }));
    return size;
  }

  draw(surface) {
    const { inks } = this.app;
    this.place(
      (card, x, y) => {
        surface.rect(x, y, 84, 84, inks.void);
        surface.image(card.canvas, x, y, 84, 84);
        const name = card.where || `${card.call.layer} · ${card.call.heads[card.head]}`;
        surface.text(x, y + 94, name, { fill: inks.soft, size: 11, limit: card.number ? 50 : 84 });
        if (card.number) surface.text(x + 84, y + 94, card.number, { fill: inks.ink, size: 11, anchor: "end" });
      },
      (title, y) => surface.text(0, y + 10, title, { fill: inks.ink, size: 14, weight: 600 }),
    );
  }

  /** Where each picture is in an export: a new row for each layer, a title for each kind. */
  place(onCard, onTitle) {
    const flat = Boolean(this.app.state.now.sort); // by role too: one picture after another
    let [x, y, kind, layer] = [0, -108, null, null];
    this.cards.forEach((card, index) => {
      const { call } = card;
      const name = `${call.run} ${call.kind}`;
      if (!flat && name !== kind) {
        y += kind === null ? 108 : 120;
        onTitle(say("overview.kind", { kind: say(`kind.${call.kind}`) }), y);
        [y, kind, layer] = [y + 30 - 108, name, null];
      }
      const fresh = flat ? index % this.across === 0 : call.index !== layer;
      [x, y] = fresh ? [0, y + 108] : [x + 92, y];
      layer = call.index;
      onCard(card, x, y);
    });
  }
}
