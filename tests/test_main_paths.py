"""The two main paths, from a call to its result, enter the files that CONTRIBUTING draws, and no others."""

import re
import sys
from pathlib import Path

import pytest
import torch

import regard
from recording.families import FAMILIES
from regard import masks

ROOT = Path(__file__).parents[1]

ASKED = {f"kernels/{name}.py" for name in ("direct_call", "equal_squares", "precision", "sorted_layouts")}
"""What attention asks on its way: for a shorter path, a cheaper layout, and the precision of products."""

TYPES = {"kernels/mask_parts.py", "interception/call_types.py", "recording/call.py"}
"""What defines the types that are passed on."""


def drawn(title):
    """The numbered files of a drawing."""
    _, _, rest = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"### `{title}")
    return set(re.findall(r"^ \d  (?:   └─ )?(\S+\.py)", rest.split("```")[1], re.MULTILINE))


def entered(run, *rooms):
    """The files of some rooms of regard that run enters."""
    source, found = str(Path(regard.__file__).parent), set()

    def note(frame, event, argument):
        del event, argument
        if frame.f_code.co_filename.startswith(source):
            found.add(Path(frame.f_code.co_filename).relative_to(source).as_posix())

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return {file for file in found if file.startswith(rooms)}


def test_attention():
    q = torch.randn(1, 2, 600, 16)
    regard.attention(q, q, q, mask=masks.window(9, 9))  # what is imported on first use
    assert len(drawn("regard.attention")) == 8
    found = entered(lambda: regard.attention(q, q, q, mask=masks.window(128, 128)), "kernels/")
    assert found == drawn("regard.attention") | ASKED | (TYPES & found)


@pytest.mark.parametrize("name", ["bert", "llama"])
@torch.no_grad()
def test_watch(name):
    model, ids = FAMILIES[name].build(), torch.randint(3, 61, (2, 13))

    def run():
        with regard.watch(model) as seen:
            model(input_ids=ids)
        seen[0].weights(0)

    run()  # what is imported on first use
    assert len(drawn("with regard.watch")) == 8
    found = entered(run, "interception/", "recording/")
    assert found == drawn("with regard.watch") | (TYPES & found)
