"""The examples of docs/speech.md run, with a small model in place of a trained one."""

import re
from pathlib import Path

import soundfile

from speech import small_whisper
from speech.small_whisper import noise

PAGE = (Path(__file__).parents[2] / "docs" / "speech.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small_whisper.model().save_pretrained(tmp_path)
    small_whisper.processor().save_pretrained(tmp_path)
    soundfile.write("talk.wav", noise(0.8), 16_000)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    names = {"folder": tmp_path}
    capsys.readouterr()
    exec(blocks[0], names)
    exec(blocks[1], names)
    assert (tmp_path / "talk.html").exists()
    assert (tmp_path / "talk.csv").exists()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(names["found"]) > 2
    assert re.fullmatch(r"  0\.\d\d–\d\.\d\d  \S+  \d+%", lines[0])


def test_its_options_exist():
    import inspect

    from regard import speech

    named = re.findall(r"^\| `(\w+)=?` \|", PAGE, re.MULTILINE)
    assert set(named) <= set(inspect.signature(speech.words).parameters)
    assert len(named) >= 5
