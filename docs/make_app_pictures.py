"""Take the pictures of the app, of the map and of the Picture view, in headless Chromium.

python docs/make_app_pictures.py [app-home | app-picture | map | map-text | page-picture …]

Needs what ``make test-real`` installs: SmolLM2-135M reads the licence for the map, and a small ViT is trained
on digits first.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from picture_browser import opened, painted, served, started, until, write_picture

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

LONG_TEXT = 1800
"""Tokens of the text on the map."""

EPOCHS = 28
"""Of the training on digits: enough for a picture in which the digit is what counts."""


class AppScene(NamedTuple):
    """One picture of the app: its address, when it is ready, what is then done, and when that is done."""

    address: str
    ready: str
    act: str = "0"
    done: str = "true"


MAP_READY = "window.regard?.app?.layer?.built && regard.app.layer.idle && regard.app.margins"
SCENES: Mapping[str, AppScene] = {
    "app-home": AppScene(
        "/",
        "window.regard?.home",
        "regard.home.fill('She gave the apple to him.')",
        "document.body.innerText.includes(' of 128 tokens')",  # they are counted a moment later
    ),
    "app-picture": AppScene("/", "window.regard?.home", done="regard.home.picture.content"),
    "map": AppScene("/map/text#call=0&head=3", MAP_READY),
    "map-text": AppScene("/map/text#call=0&head=3&view=text&query=930", "window.regard?.app?.text?.line"),
}


def write_digits(folder: Path) -> tuple[Path, Path]:
    """A ViT that was trained on digits, with its processor, and a picture of one."""
    import transformers
    from PIL import Image

    from real import digits

    learn, others = digits.data()
    model = folder / "digits"
    digits.trained(learn, EPOCHS).save_pretrained(model)
    side = {"height": digits.SIDE, "width": digits.SIDE}
    transformers.ViTImageProcessor(size=side, do_normalize=False).save_pretrained(model)
    picture = folder / "six.png"
    pixels = (others.pixels[3].permute(1, 2, 0) * 255).byte().numpy()
    Image.fromarray(pixels).resize((240, 240), Image.Resampling.NEAREST).save(picture)
    return model, picture


def write_long_text(path: Path) -> None:
    """Three layers of SmolLM2 over the beginning of the licence."""
    import torch

    import regard
    from real import smollm2

    model, tokenizer = smollm2.load()
    text = (DOCS.parent / "LICENSE").read_text(encoding="utf-8")
    inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=LONG_TEXT)
    with torch.no_grad(), regard.watch(model, layers=[17, 18, 23]) as seen:
        model(**inputs)
    seen.tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    seen.save(path)


def app_picture(browser: Any, base: str, name: str, digit: Path | None) -> bytes:
    """A scene of the app as a PNG."""
    scene = SCENES[name]
    with opened(browser, base + scene.address) as page:
        until(page, scene.ready)
        if name == "app-picture" and digit is not None:
            page.set_input_files("input[type=file]", digit)
        page.evaluate(scene.act)
        until(page, scene.done)
        painted(page)
        found: bytes = page.screenshot()
    return found


OVERLAY = """(value) => {
  const slider = document.querySelector("input[type=range]");
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
}"""


def picture_view(browser: Any, model: Path, digit: Path) -> bytes:
    """The Picture view of the digit, which shines through what the rollout paints over it."""
    from PIL import Image

    import regard
    from regard.recording import load_picture_reader

    seen = load_picture_reader(str(model)).read(Image.open(digit).convert("RGB"))
    path = regard.page(seen, digit.with_suffix(".html"), layer=1, title="a ViT that reads digits")
    with opened(browser, path.as_uri()) as page:
        until(page, "window.regard?.app")
        page.evaluate("(regard.state.set({ group: 'rollout' }), regard.ready())")
        until(page, "document.querySelector('input[type=range]')")
        page.evaluate(OVERLAY, 0.5)
        page.evaluate("regard.ready()")
        painted(page)
        found: bytes = page.screenshot()
    return found


def main(wanted: list[str]) -> None:
    """Write the pictures, or those named."""
    names = wanted or [*SCENES, "page-picture"]
    if unknown := {*names} - {*SCENES} - {"page-picture"}:
        raise SystemExit(f"Not a picture of this script: {', '.join(sorted(unknown))}.")
    with tempfile.TemporaryDirectory() as place, started() as browser:
        folder = Path(place)
        model, digit = write_digits(folder) if {"app-picture", "page-picture"} & {*names} else (None, None)
        if "page-picture" in names and model and digit:
            write_picture("page-picture", picture_view(browser, model, digit))
        text = folder / "text.safetensors"
        maps = {"map", "map-text"} & {*names}
        if maps:
            write_long_text(text)
        in_app = [name for name in names if name in SCENES]
        if in_app:
            with served([text] if maps else [], [model] if model else []) as base:
                for name in in_app:
                    write_picture(name, app_picture(browser, base, name, digit))


if __name__ == "__main__":
    main(sys.argv[1:])
