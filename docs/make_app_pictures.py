"""Take the pictures of the app, of the map and of the Picture view, in headless Chromium.

python docs/make_app_pictures.py [app-home | app-picture | map | map-text | page-picture …]

Needs what ``make test-real`` installs: SmolLM2-135M reads the licence for the map, and a small ViT is trained
on digits first, which takes about a minute.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from make_animation import reach, served
from page_pictures import READY, chromium, small_png

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

SCREEN = {"width": 1200, "height": 760}
LONG_TEXT = 1800
"""Tokens of the text on the map."""


class AppScene(NamedTuple):
    """One picture of the app: the address, and what is done before it is taken."""

    address: str
    act: str
    ready: str


MAP_READY = "window.regard?.app?.layer?.built && regard.app.layer.idle"
SCENES: Mapping[str, AppScene] = {
    "app-home": AppScene("/", "regard.home.fill('She gave the apple to him.')", "window.regard?.home"),
    "app-picture": AppScene("/", "", "window.regard?.home"),
    "map": AppScene("/map/text#call=0&head=3", "", MAP_READY),
    "map-text": AppScene("/map/text#call=0&head=3&view=text&query=930", "", "window.regard?.app?.text?.line"),
}


def write_digits(folder: Path) -> tuple[Path, Path]:
    """A ViT that was trained on digits, with its processor, and a picture of one."""
    import transformers
    from PIL import Image

    from real import digits

    learn, others = digits.data()
    model = folder / "digits"
    digits.trained(learn).save_pretrained(model)
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


@contextmanager
def opened(address: str) -> Iterator[Any]:
    """A page of Chromium at an address."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport=SCREEN, color_scheme="light", reduced_motion="reduce", locale="en")
        reach(page, address)
        yield page
        browser.close()


def wait(page: Any, ready: str) -> None:
    """Until something holds in the page; its policy forbids waiting inside."""
    while not page.evaluate(f"Boolean({ready})"):
        page.wait_for_timeout(50)


def app_picture(base: str, name: str, digit: Path | None) -> bytes:
    """A scene of the app as a PNG."""
    scene = SCENES[name]
    with opened(base + scene.address) as page:
        wait(page, scene.ready)
        if name == "app-picture" and digit is not None:
            page.set_input_files("input[type=file]", digit)
            wait(page, "regard.home.picture.content")
        if scene.act:
            page.evaluate(scene.act)
        page.wait_for_timeout(900)  # tokens are counted, and margins are drawn, a moment later
        page.evaluate(READY)
        found: bytes = page.screenshot()
    return found


def picture_view(model: Path, digit: Path) -> bytes:
    """The Picture view of the digit."""
    from PIL import Image

    import regard
    from regard.recording import load_picture_reader

    seen = load_picture_reader(str(model)).read(Image.open(digit).convert("RGB"))
    path = regard.page(seen, digit.with_suffix(".html"), layer=1, title="a ViT that reads digits")
    with opened(path.as_uri()) as page:
        wait(page, "window.regard?.app")
        page.evaluate("(regard.state.set({ group: 'rollout' }), regard.ready())")
        page.evaluate(READY)
        found: bytes = page.screenshot()
    return found


def main(wanted: list[str]) -> None:
    """Write the pictures, or those named."""
    names = wanted or [*SCENES, "page-picture"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pictures = {"app-picture", "page-picture"} & {*names}
        model, digit = write_digits(folder) if pictures else (None, None)
        text = folder / "text.safetensors"
        maps = {"map", "map-text"} & {*names}
        if maps:
            write_long_text(text)
        found = {}
        if {*names} & {*SCENES}:
            with served(recordings=[text] if maps else [], models=[model] if model else []) as base:
                found = {name: app_picture(base, name, digit) for name in names if name in SCENES}
        if "page-picture" in names and model and digit:
            found["page-picture"] = picture_view(model, digit)
    for name, data in found.items():
        target = DOCS / "pictures" / f"{name}.png"
        target.write_bytes(small_png(data))
        print(f"{target.relative_to(DOCS)}  {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
