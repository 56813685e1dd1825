"""docs/why.md: its code runs."""

import re

from docs.scripts import DOCS


def test_the_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "why.md").read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(block, names)
    found = names["regard"].attribution(names["model"], names["ids"], target=7)
    assert abs(found.total - found.logit) < 1e-4
