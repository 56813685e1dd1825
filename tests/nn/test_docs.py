"""The page of the room: its examples run, and its table names everything that is public."""

import re
from pathlib import Path

import torch

from regard import nn

PAGE = (Path(__file__).parents[2] / "docs" / "nn.md").read_text(encoding="utf-8")


def test_the_examples_run():
    torch.manual_seed(0)
    keep = torch.ones(2, 6, dtype=torch.bool)
    names = {"keep": keep, "target_keep": keep}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        tokens = "from_torch" not in code
        names["source"] = torch.randint(3, 50, (2, 6)) if tokens else torch.randn(2, 6, 256)
        names["target"] = torch.randint(3, 50, (2, 6)) if tokens else torch.randn(2, 6, 256)
        exec(code, names)
    torch.testing.assert_close(torch.cat([names["first"], names["last"]], 1), names["attend"](names["x"]))


def test_the_table_is_complete():
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    parts = {"Encoded", "Generated", "TokenEmbedding"}  # met on the way, not built by hand
    assert [name for name in nn.__all__ if name not in parts and name not in table] == []
