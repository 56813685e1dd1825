"""The path of ``watch(model)`` is as short as CONTRIBUTING draws it."""

import re
import sys
from pathlib import Path

import pytest
import torch

import regard
from recording.families import FAMILIES

ROOT = Path(__file__).parents[2]
TYPES = {"interception/steps.py", "recording/call.py"}
"""What defines the types that are passed on."""


def drawn():
    """The numbered files of the second drawing."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, drawing = page.partition("### `with regard.watch(")
    return re.findall(r"^ \d  (\S+\.py)", drawing, re.MULTILINE)


def entered(model, ids):
    """The files of the two rooms that run from ``watch`` to a weight."""
    source, found = str(Path(regard.__file__).parent) + "/", set()

    def note(frame, event, argument):
        del event, argument
        if frame.f_code.co_filename.startswith(source):
            found.add(frame.f_code.co_filename.removeprefix(source))

    sys.setprofile(note)
    try:
        with regard.watch(model) as seen:
            model(input_ids=ids)
        seen[0].weights(0)
    finally:
        sys.setprofile(None)
    return {file for file in found if file.startswith(("interception/", "recording/"))}


@pytest.mark.parametrize("name", ["bert", "llama"])
@torch.no_grad()
def test_the_files_are_those_of_the_drawing(name):
    model, ids = FAMILIES[name].build(), torch.randint(3, 61, (2, 13))
    with regard.watch(model):
        model(input_ids=ids)  # what is imported on first use
    assert len(drawn()) == 8
    assert entered(model, ids) == {*drawn(), *TYPES}
