// Heads: the table of statistics.

import { choice, datum, make, press } from "../elements.js";
import { explain } from "../explained.js";
import { say, statisticMeaning, statisticName } from "../languages.js";
import { numberText, shareText, valueText } from "../numbers.js";
import { allHeads, filterHeads, sortHeads } from "../ranking.js";
import { headName, plays, roleChoice, rolesOf, roleTitle } from "../roles.js";
import { Slices } from "../slices.js";
import { summaryNotice } from "../summary_notice.js";
import { shorten } from "../surface.js";
import { greatestPlaces } from "../text_weights.js";

const MOST_EXPORTED = 400;
const LINE = 24;
// The column that sums up a quantity; all others are about weights.
const OWN_COLUMNS = { gradient: "importance", product: "importance", contribution: "contribution" };

/** Statistics of how spread out weights are, which is explained with them. */
const SPREAD = ["entropy", "relative_entropy"];

function meaningOf(name) {
  return [statisticMeaning(name), SPREAD.includes(name) ? say("explain.spread") : ""].filter(Boolean).join("\n");
}

export class HeadsView {
  constructor(app) {
    this.app = app;
    const { state, recording } = app;
    const input = () => state.set({ filter: this.filter.value });
    this.filter = make("input", {
      type: "search",
      placeholder: say("heads.filter.hint"),
      "aria-label": say("heads.filter"),
      on: { input },
    });
    const kinds = [...new Set(recording.calls.map((call) => call.kind))];
    const options = [["", say("kind.all")], ...kinds.map((kind) => [kind, say(`kind.${kind}`)])];
    this.kinds = choice(options, state.now.kinds, (value) => state.set({ kinds: value }), {
      "aria-label": say("kind"),
    });
    this.roles = make("span", { class: "field" });
    this.count = make("span", { class: "hint", role: "status" });
    this.progress = make("span", {});
    this.table = make("table", { class: "numbers" });
    this.empty = make("p", { class: "hint", hidden: true }, say("heads.none"));
    this.note = make("p", { class: "hint" });
    this.root = make(
      "section",
      { class: "view heads" },
      make(
        "div",
        { class: "view-bar" },
        this.filter,
        kinds.length > 1 ? this.kinds : null,
        this.roles,
        this.count,
        this.progress,
      ),
      make("div", { class: "scroll" }, this.table, this.empty, this.note),
    );
    this.slices = new Slices();
    this.several = kinds.length > 1;
    recording.layers.summarise(state.now.call);
    this.measure();
  }

  /** What the whole table depends on. */
  measure() {
    const { recording } = this.app;
    this.greatest = new Map(recording.statistics.map((name) => [name, greatestOf(recording, name)]));
    this.roled = rolesOf(recording).length > 0;
    this.progress.replaceChildren(...summaryNotice(this.app));
  }

  /** Shows what has become known of heads since. */
  summarised() {
    this.measure();
    const focused = this.rows.find(({ root }) => root.contains(document.activeElement));
    this.update(this.app.state.now, null);
    const same = focused && this.rows.find(({ call, head }) => call === focused.call && head === focused.head);
    same?.root.querySelector("button").focus({ preventScroll: true });
  }

  update(now, changed) {
    if (this.filter.value !== now.filter) this.filter.value = now.filter;
    this.kinds.value = now.kinds;
    const own = OWN_COLUMNS[now.what];
    const about = own ? say("heads.what", { what: say(this.app.named), column: statisticName(own) }) : "";
    this.note.textContent = [about, say("heads.note")].filter(Boolean).join(" ");
    if (!changed || ["filter", "kinds", "role", "sort", "descending", "what"].some((name) => changed.has(name)))
      this.build(now);
    if (changed && ["query", "call", "special", "words", "sinks", "pair"].some((name) => changed.has(name)))
      this.build(now);
    for (const row of this.rows) {
      row.root.setAttribute("aria-selected", String(row.call.index === now.call && row.head === now.head));
    }
  }

  build(now) {
    const { recording } = this.app;
    const all = allHeads(recording);
    const wanted = filterHeads(all, now.filter, now.kinds, describeHead).filter((one) => plays(one, now.role));
    const found = sortHeads(wanted, now.sort, now.descending);
    if (!this.roles.contains(document.activeElement)) this.roles.replaceChildren(...roleChoice(this.app));
    this.rows = found.map((one) => ({ ...one, root: this.row(one) }));
    this.count.textContent = say("heads.count", { shown: found.length, all: all.length });
    this.empty.hidden = found.length > 0;
    const heading = make(
      "tr",
      {},
      ...(this.several ? [make("th", { scope: "col" }, say("kind"))] : []),
      this.heading("layer", say("layer"), ""),
      make("th", { scope: "col" }, say("head")),
      ...(this.roled ? [this.heading("role", say("role"), say("explain.role"), "text")] : []),
      ...this.pinnedHeading(),
      ...recording.statistics.map((name) => this.heading(name, statisticName(name), meaningOf(name))),
      make("th", { scope: "col", class: "text" }, say("heads.name")),
    );
    const focused = this.table.querySelector("th button:focus")?.dataset.sort;
    this.table.replaceChildren(
      make("thead", {}, heading),
      ...this.bodies(now.sort === "role", heading.children.length),
    );
    this.slices.run(this.strongest(), () => {});
    if (focused) this.table.querySelector(`th button[data-sort="${CSS.escape(focused)}"]`).focus();
  }

  /** The rows; in the order of roles, under the name of each. */
  bodies(byRole, columns) {
    if (!byRole) return [make("tbody", {}, ...this.rows.map((row) => row.root))];
    const groups = new Map();
    for (const row of this.rows) {
      const name = row.call.roles[row.head]?.role ?? "";
      groups.set(name, [...(groups.get(name) ?? []), row.root]);
    }
    return [...groups].map(([name, rows]) =>
      make(
        "tbody",
        {},
        make(
          "tr",
          { class: "group" },
          make(
            "th",
            { scope: "rowgroup", colspan: columns, class: "text" },
            say(name ? `role.${name}` : "role.none"),
            " ",
            make("small", {}, name ? say(`role.${name}.says`) : "", ` · ${rows.length}`),
          ),
        ),
        ...rows,
      ),
    );
  }

  // ---- the pinned token -------------------------------------------------------------------------

  /** The row of the pinned query in a call, or −1; calls of another text have none. */
  pinnedRow(call) {
    const { state } = this.app;
    if (state.now.query === null || !call.present || !state.keepsPins(call, state.call)) return -1;
    return this.app.lookAt(call.index).rowOf(state.now.query);
  }

  pinnedHeading() {
    const { call } = this.app.state;
    const row = this.pinnedRow(call);
    if (row < 0) return [];
    const name = this.app.lookAt(call.index).rowNames[row];
    return [make("th", { scope: "col", class: "text pinned-token" }, datum(name, "token-text"), " →")];
  }

  /** Fills in what the pinned token attends to most in each head. */
  *strongest() {
    for (const { call, head, root } of this.rows) {
      const cell = root.querySelector(".strongest-key");
      const row = this.pinnedRow(call);
      if (!cell || row < 0) continue;
      const look = this.app.lookAt(call.index);
      const weights = look.row(head, row);
      const [column] = greatestPlaces(weights, 1);
      if (column !== undefined)
        cell.replaceChildren(
          datum(look.columnNames[column], "token-text"),
          " ",
          datum(look.what === "weight" ? shareText(weights[column]) : valueText(weights[column]), "number"),
        );
      yield;
    }
  }

  ready() {
    return this.slices.idle();
  }

  destroy() {
    this.slices.stop();
  }

  heading(name, text, meaning, kind = null) {
    const { state } = this.app;
    const { sort, descending } = state.now;
    const mine = sort === name;
    const turn = () => state.set({ sort: name, descending: mine ? !descending : name !== "layer" });
    const order = mine ? (descending ? "descending" : "ascending") : "none";
    const button = press(text, turn, {
      class: null,
      "data-sort": name,
      "aria-label": say("heads.sort", { name: text }),
    });
    const arrow = make("i", { "aria-hidden": "true" }, mine ? (descending ? "↓ " : "↑ ") : "");
    return make("th", { scope: "col", class: kind, "aria-sort": order }, arrow, explain(button, meaning));
  }

  row({ call, head }) {
    const open = () => this.app.open(call.index, head);
    const label = headName(this.app.recording, call, head);
    const first = make(
      "button",
      { type: "button", class: "link", "aria-label": label },
      datum(String(call.heads[head])),
    );
    const cells = this.app.recording.statistics.map((name) => {
      const value = call.statistic(name)[head];
      const cell = make("td", { "data-value": value, "data-name": name }, datum(statisticText(name, value)));
      cell.classList.toggle("chosen", name === OWN_COLUMNS[this.app.state.now.what]);
      const share = Math.max(0, Math.abs(value) / this.greatest.get(name));
      if (Number.isFinite(share)) cell.style.setProperty("--share", share.toFixed(4));
      return cell;
    });
    return make(
      "tr",
      { "data-call": call.index, "data-head": head, on: { click: open } },
      ...(this.several ? [make("td", {}, say(`kind.${call.kind}`))] : []),
      make("td", {}, datum(String(call.layer))),
      make("td", {}, first),
      ...(this.roled
        ? [make("td", { class: "text", title: roleTitle(call, head) || null }, roleName(call, head))]
        : []),
      ...(this.pinnedRow(this.app.state.call) < 0 ? [] : [make("td", { class: "text strongest-key" })]),
      ...cells,
      make("td", { class: "text" }, datum(call.name, "name")),
    );
  }

  // ---- export -----------------------------------------------------------------------------------

  get columns() {
    const { statistics } = this.app.recording;
    return [
      ...(this.several ? [{ title: say("kind"), width: 70, text: ({ call }) => say(`kind.${call.kind}`) }] : []),
      { title: say("layer"), width: 56, text: ({ call }) => String(call.layer) },
      { title: say("head"), width: 56, text: ({ call, head }) => String(call.heads[head]) },
      ...(this.roled
        ? [{ title: say("role"), width: 130, left: true, text: ({ call, head }) => roleName(call, head) }]
        : []),
      ...statistics.map((name) => ({
        title: statisticName(name),
        width: 92,
        text: ({ call, head }) => statisticText(name, call.statistic(name)[head]),
      })),
      { title: say("heads.name"), width: 300, left: true, text: ({ call }) => call.name },
    ];
  }

  pictureSize() {
    const rows = Math.min(this.rows.length, MOST_EXPORTED);
    return { width: this.columns.reduce((sum, column) => sum + column.width, 0), height: (rows + 1) * LINE + 8 };
  }

  draw(surface) {
    const { inks } = this.app;
    const { width } = this.pictureSize();
    let x = 0;
    for (const column of this.columns) {
      const at = column.left ? x + 20 : x + column.width - 8;
      const style = { anchor: column.left ? "start" : "end", size: 12 };
      surface.text(at, LINE / 2, column.title, { ...style, fill: inks.soft, weight: 600 });
      this.rows.slice(0, MOST_EXPORTED).forEach((row, index) => {
        const text = shorten(column.text(row), column.width - 24, 12);
        surface.text(at, (index + 1.5) * LINE + 4, text, { ...style, fill: inks.ink });
      });
      x += column.width;
    }
    surface.line(0, LINE + 2, width, LINE + 2, inks.hair);
  }
}

/** Importances and contributions are of any size; all other statistics have three places. */
function statisticText(name, value) {
  return Object.values(OWN_COLUMNS).includes(name) ? valueText(value) : numberText(value);
}

function roleName(call, head) {
  const found = call.roles[head];
  return found ? say(`role.${found.role}`) : "–";
}

function describeHead({ call, head }) {
  const number = call.heads[head];
  const kind = `${call.kind} ${say(`kind.${call.kind}`)}`;
  return `${call.layer}.${number} ${call.name} ${kind} ${roleName(call, head)} ${say("layer.n", { layer: call.layer })} ${say("head.n", { head: number })}`;
}

function greatestOf(recording, name) {
  const values = recording.calls.flatMap((call) => [...call.statistic(name)]).filter(Number.isFinite);
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-30);
}
