"""The pages of the room: the examples run, and every public name and role is told of."""

import re
from pathlib import Path

import torch

import regard
from heads.synthetic_heads import looking, recording_of
from recording.families import FAMILIES
from regard import heads
from regard.heads.head_table import COLUMNS
from regard.heads.role_results import ROLES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "heads.md").read_text(encoding="utf-8")
ALIGNMENT = (DOCS / "alignment.md").read_text(encoding="utf-8")
WHY = (DOCS / "why.md").read_text(encoding="utf-8")
STATISTICS = (DOCS / "statistics.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    ids = torch.randint(3, 9, (1, 11))
    names = {
        "model": FAMILIES["bert"].build(),
        "decoder": regard.nn.LanguageModel(100, width=16, heads=2, layers=2),
        "inputs": {"input_ids": ids},
        "tokens": [f"t{x}" for x in ids[0].tolist()],
    }
    with torch.no_grad():
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(code, names)
    assert (tmp_path / "heads.png").stat().st_size > 1000
    assert (tmp_path / "heads.csv").read_text().startswith("call,name,")
    assert "layer" in capsys.readouterr().out


def test_the_examples_of_alignment_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = recording_of(looking(7, 7, lambda i: [i - 4]))
    seen.tokens = ["[CLS]", "C", "O", ">>", "O", "C", "[SEP]"]
    seen.save("reaction.safetensors")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", ALIGNMENT, re.DOTALL):
        exec(code, names)
    assert (tmp_path / "pairs.csv").read_text(encoding="utf-8").startswith("query,query_token,")


def test_everything_is_told_of():
    shown = {
        "Table",
        "Roles",
        "Head",
        "Score",
        "Example",
        "Rollout",
        "ValueWeighted",
        "Divergence",
        "Eviction",
        "Attribution",
        "Relevance",
        "Alignment",
        "AlignedPair",
        "Monitor",
    }  # results
    assert [
        name for name in heads.__all__ if name not in shown and f"{name}(" not in PAGE + ALIGNMENT + WHY
    ] == []
    assert [role for role in ROLES if f"| `{role}` |" not in STATISTICS] == []
    assert [name for name in COLUMNS if f"`{name}`" not in STATISTICS] == []
