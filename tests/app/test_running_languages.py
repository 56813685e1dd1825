"""What train, survey and serve print, in English and Chinese: nothing of it in one language only."""

import re
import signal
from pathlib import Path

import matplotlib.figure
import pytest
from click.testing import CliRunner
from matplotlib.text import Text
from rich.console import Console

from app.test_train import folder, run  # noqa: F401 - a fixture
from regard.app.commands import train
from regard.app.commands.survey import _finish, _words, told_of_an_end
from regard.app.main import main
from regard.app.server import run_server, served_models
from regard.errors import FontError
from regard.heads.survey import SurveyProgress
from regard.translator import TrainingProgress, training_log
from regard.views.figures import fonts

WORD = re.compile(r"[A-Za-z]{2,}")
NAMES = {"BLEU", "chrF", "MB", "regard", "Ctrl", "SIGTERM", "failed", "jsonl", "report", "html", "http"}
"""Names of measures, units, keys, files and signals, which are the same in both languages."""


def english_in(text, *names):
    for name in names:
        text = text.replace(str(name), " ")
    return set(WORD.findall(text)) - NAMES


def test_a_training_in_chinese(folder, monkeypatch):  # noqa: F811
    drawn = []
    save = matplotlib.figure.Figure.savefig

    def savefig(figure, *arguments, **options):
        drawn.append({text.get_text() for text in figure.findobj(Text)})
        save(figure, *arguments, **options)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", savefig)
    monkeypatch.setenv("COLUMNS", "200")
    shown = run(folder, "--recipe", folder / "recipe.json", "--lang", "zh")
    assert shown.exit_code == 0, shown.output
    for words in (
        "训练 ━",
        "3/6  第 4 轮  损失 3.",
        "留出句 3.",
        "剩余 0:0",
        "贪心解码  BLEU",
        "束宽 4    BLEU",
    ):
        assert words in shown.output
    assert not english_in(shown.output, folder / "run" / "model")
    assert set(training_log.TEXTS.table("zh").values()) <= drawn[-1]
    assert not [text for text in drawn[-1] if WORD.search(text)]
    again = run(folder, "--resume")
    assert "greedy              BLEU" in again.output
    assert english_in(again.output, folder / "run" / "model")
    assert set(training_log.TEXTS.table("en").values()) <= drawn[-1]


def test_a_training_before_the_first_checkpoint():
    report = TrainingProgress(step=1, steps=9, epoch=0, loss=2.5, held_out=None, seconds=1.0, left=3700.0)
    bars = {lang: train._Bar(Console(quiet=True), 9, lang) for lang in ("en", "zh")}
    assert bars["en"]._words(report) == "epoch 1  loss 2.500  1:01:40 left"
    assert bars["zh"]._words(report) == "第 1 轮  损失 2.500  剩余 1:01:40"


def test_a_machine_without_chinese_letters_draws_the_loss_in_english(monkeypatch):
    def none(texts):
        raise FontError("Chinese labels need a font.")

    assert train._plot_style("zh").lang == "zh"
    monkeypatch.setattr(fonts, "families_for", none)
    assert train._plot_style("zh") == training_log.PlotStyle()


def test_a_survey(capsys):
    going = SurveyProgress(texts=1234, share=0.5, left=75.0)
    assert [_words(going, lang) for lang in ("en", "zh")] == [
        "1,234 texts  1:15 left",
        "1,234 段文本  剩余 1:15",
    ]
    counts = {"documents": 2000, "tokens": 30000, "truncated": 3, "divided": 4, "failed": 5}
    for lang in ("en", "zh"):
        _finish(Console(width=200), counts, 72, Path("[out]/report.html"), lang)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "[out]/report.html  72 heads over 2,000 documents, 30,000 tokens",
        "  3 were too long and were truncated",
    ]
    assert [re.findall(r"[\d,]+", line) for line in lines[1:4]] == [["3"], ["4"], ["5"]]
    assert [re.findall(r"[\d,]+", line) for line in lines[5:]] == [["3"], ["4"], ["5"]]
    assert not english_in("\n".join(lines[4:]), "[out]")
    with pytest.raises(SystemExit), told_of_an_end(2, "zh"):
        signal.raise_signal(signal.SIGTERM)
    said = capsys.readouterr().err
    assert said.startswith("错误：普查被外部终止（SIGTERM）")
    assert not english_in(said)


def served(monkeypatch, *arguments, **environment):
    """What the command prints, and the language that its pages get."""
    found = {}
    monkeypatch.setattr(run_server, "make_app", lambda *things, lang: found.update(lang=lang))
    monkeypatch.setattr(run_server, "serve", lambda app, server_address, ready, limits: ready())
    shown = CliRunner(env=environment).invoke(main, ["serve", *arguments])
    assert shown.exit_code == 0, shown.output
    return shown.output, found["lang"]


def test_a_server(monkeypatch):
    lines, lang = served(monkeypatch)
    assert lines.splitlines()[0] == "regard is at http://127.0.0.1:8000/"
    assert lang is None  # the browser chooses
    said, lang = served(monkeypatch, "--lang", "zh")
    assert said.splitlines()[0] == "regard 已启动：http://127.0.0.1:8000/"
    assert not english_in(said)
    assert lang == served(monkeypatch, REGARD_LANG="zh")[1] == "zh"
    assert served(monkeypatch, "--lang", "en", REGARD_LANG="zh")[1] == "en"
    monkeypatch.setattr(served_models, "_embedded", lambda: None)
    assert "  nothing to show: pass --model or --recording\n" in served(monkeypatch)[0]
    assert not english_in(served(monkeypatch, "--lang", "zh")[0], "--model", "--recording")
