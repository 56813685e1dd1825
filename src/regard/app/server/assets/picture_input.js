// A picture that the reader chose or dropped: shown in the form, made small enough to send, and written as text.

import { make } from "/assets/page/elements.js";
import { say } from "/assets/page/languages.js";

/** Models look at a few hundred pixels, so more need not be sent. */
const LONGEST_SIDE = 768;
const PREVIEW_SIDE = 260;
const SMALL_SIDE = 128; // smaller pictures are shown larger, pixel by pixel

/** Whether a file says that it is a picture. */
export function isPicture(file) {
  return file.type.startsWith("image/");
}

/** The picture of the form: nothing, or one that can be sent. A click on its place opens a file. */
export class PictureInput {
  /** @param {() => void} choose */
  constructor(choose) {
    this.name = "";
    this.content = ""; // base 64
    this.preview = make("canvas", { class: "preview", "aria-hidden": "true", hidden: true });
    this.hint = make("span", { class: "hint" });
    this.root = make(
      "button",
      { type: "button", class: "picture-input", hidden: true, on: { click: choose } },
      this.preview,
      this.hint,
    );
  }

  /** Shows the place for a picture, or hides it. */
  show(shown) {
    this.root.hidden = !shown;
    this.hint.textContent = this.content ? this.name : say("home.picture");
    this.root.title = say("home.picture");
  }

  /**
   * Takes a picture; throws if the browser cannot read it, or if it stays larger than `most` bytes.
   * @param {File} file
   * @param {number} most
   */
  async take(file, most) {
    const image = await createImageBitmap(file);
    const canvas = drawn(make("canvas"), image, LONGEST_SIDE);
    let blob = await written(canvas, "image/png");
    if (blob.size > most) blob = await written(canvas, "image/jpeg");
    if (blob.size > most) throw new Error(say("home.nopicture"));
    this.content = inBase64(new Uint8Array(await blob.arrayBuffer()));
    this.name = file.name;
    drawn(this.preview, image, PREVIEW_SIDE);
    const small = Math.max(image.width, image.height) < SMALL_SIDE;
    this.preview.classList.toggle("small", small);
    this.preview.hidden = false;
    this.show(true);
  }
}

/** A canvas with a picture whose longer side is limited to some pixels. */
function drawn(canvas, image, longest) {
  const scale = Math.min(1, longest / Math.max(image.width, image.height));
  canvas.width = Math.max(1, Math.round(image.width * scale));
  canvas.height = Math.max(1, Math.round(image.height * scale));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

function written(canvas, type) {
  return new Promise((resolve) => canvas.toBlob(resolve, type, 0.92));
}

function inBase64(bytes) {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
}
