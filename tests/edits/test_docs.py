"""docs/edits.md: its first half runs, and it tells of every edit."""

import re
from pathlib import Path

import torch

from recording.families import FAMILIES, inputs_of
from regard import edits

PAGE = (Path(__file__).parents[2] / "docs" / "edits.md").read_text(encoding="utf-8")
FIRST_HALF = PAGE[: PAGE.index("## Effects")]


def test_the_examples_run():
    inputs = inputs_of(FAMILIES["gpt2"], "none")
    other = {**inputs, "input_ids": inputs["input_ids"].flip(1)}
    names = {"model": FAMILIES["gpt2"].build(), "inputs": inputs, "corrupted": other}
    blocks = re.findall(r"```python\n(.*?)```", FIRST_HALF, re.DOTALL)
    assert len(blocks) == 2
    with torch.no_grad():
        for code in blocks:
            exec(code, names)
    assert names["edited"].calls


def test_every_edit_is_told_of():
    makers = [name for name in edits.__all__ if name[0].islower()]
    assert makers
    assert [name for name in makers if f"{name}(" not in FIRST_HALF] == []
