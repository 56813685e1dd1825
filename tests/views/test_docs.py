"""The page about pages: its examples run, and it names every option."""

import inspect
import re
from pathlib import Path

import regard

PAGE = (Path(__file__).parents[2] / "docs" / "pages.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    assert {file.name for file in tmp_path.iterdir()} == {"x.html", "y.html"}


def test_every_option_is_named():
    options = {
        name
        for function in (regard.page, regard.show, regard.head_view, regard.model_view)
        for name in inspect.signature(function).parameters
    }
    assert [name for name in sorted(options) if not re.search(rf"\b{name}\b", PAGE)] == []
