"""The page of the room: its example runs, and its table names every option."""

import dataclasses
import re
from pathlib import Path

from regard import translator
from regard.app.commands.train import train as train_command
from regard.app.commands.translate import translate as translate_command

PAGE = (Path(__file__).parents[2] / "docs" / "translator.md").read_text(encoding="utf-8")


def test_the_example_runs(data, learning, few_everyday, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("cmn.txt").write_bytes(data.read_bytes())
    monkeypatch.setattr(translator, "Recipe", lambda steps: dataclasses.replace(learning, steps=steps // 5))
    translating, code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(translating, {})
    exec(code.replace("The cat sat on the mat.", "I see cats."), {})
    assert capsys.readouterr().out.endswith("我看见猫。\n")


def test_every_option_is_named():
    both = [*train_command.params, *translate_command.params]
    options = {name for option in both for name in option.opts if name.startswith("--")}
    assert {name for name in options if name not in PAGE} == set()


def test_everything_public_is_there():
    assert len(translator.__all__) == len(set(translator.__all__))
    assert all(hasattr(translator, name) for name in translator.__all__)
