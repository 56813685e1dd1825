// A matrix as a table of coloured numbers; some can be typed over, and every one can be pointed at.

import { readableOn, shadeOf } from "../../page/assets/colours.js";
import { make } from "../../page/assets/elements.js";

/** Numbers this far from 0 have the full colour. */
const FULL_COLOUR = 2.5;

/** A number to three places, without a needless 0: 0.5 is "0.5", −1.2345 is "−1.234". */
export function cellNumber(value) {
  if (value === -Infinity) return "−∞";
  const text = Math.abs(value) >= 1000 ? value.toFixed(0) : value.toFixed(3);
  return (text === "-0.000" ? "0.000" : text).replace("-", "−");
}

/** What is typed: 0.5, −1, .25. */
export function typedNumber(text) {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  const value = plain === "" ? Number.NaN : Number(plain);
  return Number.isFinite(value) && Math.abs(value) <= 1e6 ? value : null;
}

/**
 * @param {{ values: number[][], rows: string[], columns: string[], weights: boolean, inks: any, label: string,
 *   name: (i: number, j: number) => string, point: (i: number, j: number) => void,
 *   edit: ((i: number, j: number, value: number) => void) | null }} options
 */
export class CellGrid {
  constructor(options) {
    this.options = options;
    const { rows, columns, values, label } = options;
    this.cells = values.map((row, i) => row.map((_, j) => this.cell(i, j)));
    const head = columns.some(Boolean)
      ? make("thead", {}, make("tr", {}, make("td"), ...columns.map((name) => make("th", { scope: "col" }, name))))
      : null;
    const body = this.cells.map((row, i) =>
      make("tr", {}, make("th", { scope: "row" }, rows[i]), ...row.map((cell) => make("td", {}, cell))),
    );
    this.root = make("table", { class: "cells", "aria-label": label }, head, make("tbody", {}, ...body));
    this.root.addEventListener("keydown", (event) => this.moved(event));
    this.refresh(values);
  }

  cell(i, j) {
    const { edit, point, name } = this.options;
    const first = i === 0 && j === 0;
    const shared = {
      class: "cell",
      "aria-label": name(i, j),
      on: { focus: () => point(i, j), pointerenter: () => point(i, j) },
    };
    if (!edit)
      return make("button", {
        type: "button",
        tabindex: first ? 0 : -1,
        ...shared,
        on: { ...shared.on, click: () => point(i, j) },
      });
    const input = make("input", {
      type: "text",
      inputmode: "decimal",
      tabindex: first ? 0 : -1,
      ...shared,
      on: {
        ...shared.on,
        input: () => {
          const value = typedNumber(input.value);
          input.setAttribute("aria-invalid", String(value === null));
          if (value !== null) edit(i, j, value);
        },
        blur: () => this.refresh(this.options.values),
      },
    });
    return input;
  }

  /** Arrow keys go from cell to cell; in a cell that can be changed, up and down change it by 0.1, with shift by 1. */
  moved(event) {
    const place = this.placeOf(event.target);
    if (!place) return;
    const [i, j] = place;
    const { edit, values } = this.options;
    const inText = edit && event.target.selectionStart !== event.target.selectionEnd;
    const steps = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (edit && steps && !event.altKey) {
      event.preventDefault();
      const value = Math.round((values[i][j] + steps * (event.shiftKey ? 1 : 0.1)) * 1000) / 1000;
      edit(i, j, value);
      event.target.value = cellNumber(value);
      return;
    }
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Enter: [1, 0] }[
      event.key
    ];
    if (!way || (edit && !event.altKey && event.key !== "Enter" && inText)) return;
    if (edit && !event.altKey && event.key !== "Enter" && !atEdge(event)) return;
    const next = this.cells[i + way[0]]?.[j + way[1]];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  placeOf(target) {
    for (let i = 0; i < this.cells.length; i++) {
      const j = this.cells[i].indexOf(target);
      if (j >= 0) return [i, j];
    }
    return null;
  }

  /** Other numbers in the same cells; the one that is being typed keeps its text. */
  refresh(values) {
    this.options.values = values;
    values.forEach((row, i) => {
      row.forEach((value, j) => {
        this.paint(this.cells[i][j], value, this.options.name(i, j));
      });
    });
  }

  paint(cell, value, name) {
    const { edit, inks, weights } = this.options;
    const text = cellNumber(value);
    if (!edit) {
      cell.textContent = text;
      cell.setAttribute("aria-label", `${name}: ${text}`);
    } else if (document.activeElement !== cell) cell.value = text;
    cell.classList.toggle("hidden-pair", value === -Infinity);
    if (value === -Infinity) {
      cell.style.background = "";
      cell.style.color = "";
      return;
    }
    const ramp = weights ? inks.ramp : inks.signed;
    const tone = weights ? value : Math.max(0, Math.min(1, 0.5 + value / (2 * FULL_COLOUR)));
    cell.style.background = shadeOf(ramp, tone);
    cell.style.color = readableOn(ramp, tone);
  }

  /** Marks a cell: "pointed" or "source". */
  mark(i, j, name, on) {
    this.cells[i]?.[j]?.classList.toggle(name, on);
  }
}

/** Whether the arrow would leave the text of a field. */
function atEdge({ target, key }) {
  const at = target.selectionStart;
  return key === "ArrowLeft" ? at === 0 : key === "ArrowRight" ? at === target.value.length : true;
}
