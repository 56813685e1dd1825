"""What train, survey and serve print, in English and Chinese: nothing of it in one language only."""

import re
import signal
from pathlib import Path
from unittest.mock import Mock

import matplotlib.figure
import pytest
from click.testing import CliRunner
from matplotlib.text import Text
from rich.console import Console

from app.test_command_languages import english_in
from app.test_train import folder, run  # noqa: F401 - a fixture
from regard.app.commands import train
from regard.app.commands.survey import _finish, _words, told_of_an_end
from regard.app.main import main
from regard.app.server import run_server, served_models
from regard.errors import FontError
from regard.heads.survey import SurveyProgress
from regard.translator import TrainingProgress, training_log
from regard.views.figures import fonts


def test_a_training(folder, monkeypatch):  # noqa: F811
    drawn, save = [], matplotlib.figure.Figure.savefig

    def savefig(figure, *arguments, **options):
        drawn.append({text.get_text() for text in figure.findobj(Text)})
        save(figure, *arguments, **options)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", savefig)
    monkeypatch.setenv("COLUMNS", "200")
    chinese = run(folder, "--recipe", folder / "recipe.json", "--lang", "zh").output
    for words in (
        "训练 ━",
        "3/6  第 4 轮  损失 3.",
        "留出句 3.",
        "剩余 0:0",
        "贪心解码    BLEU",
        "束宽 16     ",
    ):
        assert words in chinese
    english = run(folder, "--resume").output
    assert "greedy                 BLEU" in english
    for lang, shown, texts in (("zh", chinese, drawn[0]), ("en", english, drawn[-1])):
        assert bool(english_in(shown)) == (lang == "en")
        assert bool(english_in(" ".join(texts))) == (lang == "en")
        assert set(training_log.TEXTS.table(lang).values()) <= texts


def test_progress(monkeypatch):
    report = TrainingProgress(step=1, steps=9, epoch=0, loss=2.5, held_out=None, seconds=1.0, left=3700.0)
    going = SurveyProgress(texts=1234, share=0.5, left=75.0)
    for lang, *words in (
        ("en", "epoch 1  loss 2.500  1:01:40 left", "1,234 texts  1:15 left"),
        ("zh", "第 1 轮  损失 2.500  剩余 1:01:40", "1,234 段文本  剩余 1:15"),
    ):
        assert [train._Bar(Console(quiet=True), 9, lang)._words(report), _words(going, lang)] == words
        assert train._plot_style(lang).lang == lang
    monkeypatch.setattr(fonts, "families_for", Mock(side_effect=FontError("Chinese labels need a font.")))
    assert train._plot_style("zh") == training_log.PlotStyle()  # in English


def test_the_end_of_a_survey(capsys):
    counts = {"documents": 2000, "tokens": 30000, "truncated": 3, "divided": 4, "failed": 5}
    for lang in ("en", "zh"):
        _finish(Console(width=200), counts, 72, Path("[out]/report.html"), lang)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[out]/report.html  72 heads over 2,000 documents, 30,000 tokens"
    numbers = [re.findall(r"\d[\d,]*\d|\d", line) for line in lines]
    assert numbers[1:4] == numbers[5:] == [["3"], ["4"], ["5"]]
    assert sorted(numbers[0]) == sorted(numbers[4])
    assert not english_in("\n".join(lines[4:]))
    with pytest.raises(SystemExit), told_of_an_end(2, "zh"):
        signal.raise_signal(signal.SIGTERM)
    said = capsys.readouterr().err
    assert (said[:18], english_in(said)) == ("错误：普查被外部终止（SIGTERM", set())


def test_a_server(monkeypatch):
    def served(*arguments, **environment):
        """What the command prints, and the language that its pages get."""
        shown = CliRunner(env=environment).invoke(main, ["serve", *arguments])
        assert shown.exit_code == 0, shown.output
        return shown.output, given.pop()

    given = []
    monkeypatch.setattr(run_server, "make_app", lambda *things, lang: given.append(lang))
    monkeypatch.setattr(run_server, "serve", lambda app, server_address, ready, limits: ready())
    said, lang = served()
    assert said.splitlines()[0] == "regard is at http://127.0.0.1:8000/"
    assert (lang, served(REGARD_LANG="zh")[1], served("--lang=en", REGARD_LANG="zh")[1]) == (None, "zh", "en")
    said, _ = served("--lang", "zh")
    assert said.splitlines()[0] == "regard 已启动：http://127.0.0.1:8000/"
    assert not english_in(said)
    monkeypatch.setattr(served_models, "_embedded", lambda: None)
    assert "  nothing to show: pass --model or --recording\n" in served()[0]
    assert not english_in(served("--lang", "zh")[0])
