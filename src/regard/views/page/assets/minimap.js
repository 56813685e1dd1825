// The whole matrix beside a long one, with the part in sight: click or drag to move there.

import { fitCanvas, make } from "./elements.js";
import { say } from "./languages.js";
import { paintThumbnail, thumbnailOf } from "./thumbnails.js";

export const MINIMAP_SIDE = 116;

export class Minimap {
  /** @param {(row: number, column: number) => void} go where the middle should be, as shares of the whole */
  constructor(go) {
    this.picture = make("canvas", { class: "minimap-picture", width: 1, height: 1 });
    this.frame = make("canvas", { class: "minimap-frame" });
    this.root = make(
      "div",
      { class: "minimap", role: "img", "aria-label": say("matrix.minimap"), hidden: true },
      this.picture,
      this.frame,
    );
    const at = (event) => {
      const box = this.root.getBoundingClientRect();
      go((event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width);
    };
    this.root.addEventListener("pointerdown", (event) => {
      this.root.setPointerCapture(event.pointerId);
      at(event);
    });
    this.root.addEventListener("pointermove", (event) => event.buttons && at(event));
  }

  /** Shows a head; its thumbnail is enough at this size, whatever the lens. */
  show(call, head, shading) {
    paintThumbnail(this.picture, thumbnailOf(call, head, shading.what), shading);
  }

  /** Draws the part in sight and the rows that were searched for. */
  mark(viewport, rows, inks) {
    const side = MINIMAP_SIDE;
    const context = fitCanvas(this.frame, side, side);
    context.fillStyle = inks.negative;
    for (const row of rows) context.fillRect(0, (side * (row + 0.5)) / viewport.rows - 0.5, 7, 1.5);
    const [x, y] = [(side * viewport.column) / viewport.columns, (side * viewport.row) / viewport.rows];
    const width = Math.min(side, (side * viewport.width) / viewport.cellWidth / viewport.columns);
    const height = Math.min(side, (side * viewport.height) / viewport.cellHeight / viewport.rows);
    context.strokeStyle = inks.ink;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(4, width) - 2, Math.max(4, height) - 2);
  }
}
