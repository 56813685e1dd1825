"""docs/edits.md: its examples run, and it tells of every metric."""

import re
from pathlib import Path

import torch

from recording.families import FAMILIES, inputs_of
from regard import metrics

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "edits.md").read_text(encoding="utf-8")


def test_the_examples_of_effects_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"model": FAMILIES["gpt2"].build(), "inputs": inputs_of(FAMILIES["gpt2"], "none")}
    second_half = PAGE[PAGE.index("## Effects") :]
    blocks = re.findall(r"```python\n(.*?)```", second_half, re.DOTALL)
    assert len(blocks) == 2
    with torch.no_grad():
        for code in blocks:
            exec(code, names)
    assert (tmp_path / "effects.png").stat().st_size > 1000


def test_every_metric_is_told_of():
    named = ("Metric", "ModelInputs", "Outcome", "token_id")  # types, and a helper
    assert [name for name in metrics.__all__ if name not in named and f"`metrics.{name}" not in PAGE] == []
    for picture in re.findall(r"\]\((pictures/[^)]+)\)", PAGE):
        assert (DOCS / picture).stat().st_size <= 120_000
