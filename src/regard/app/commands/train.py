"""``regard train``: trains a translator on a file of sentence pairs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.app.languages import TEXTS, lang_option

if TYPE_CHECKING:
    from rich.console import Console

    from regard.translator import Recipe, TrainingProgress, TrainingRun
    from regard.translator.training import Listener
    from regard.translator.training_log import PlotStyle


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--out", "folder", type=click.Path(path_type=Path), help="Folder for all output.")
@click.option(
    "--dictionary",
    help="A dictionary that teaches words: cc-cedict, or a file in its format.",
)
@click.option(
    "--recipe",
    "recipe_file",
    type=click.Path(path_type=Path),
    help="Recipe as a JSON file, or built-in: that of the built-in translator.",
)
@click.option("--resume", is_flag=True, help="Continue from the last checkpoint in the folder.")
@click.option("--steps", type=int, help="Optimizer steps, instead of the recipe's.")
@click.option("--seed", type=int, help="Random seed, instead of the recipe's.")
@click.option("--minutes", type=click.FloatRange(0), help="Stop after this many minutes; --resume continues.")
@click.option(
    "--num-beams",
    "--beams",
    "num_beams",
    type=click.IntRange(1),
    default=16,
    show_default=True,
    help="Beams of the second evaluation.",
)
@click.option(
    "--evaluate",
    "measured",
    type=click.Path(path_type=Path),
    help="Do not train: measure the model in this folder (run/model) again, and write its scores and card.",
)
@lang_option
def train(
    data: Path,
    folder: Path | None,
    dictionary: str | None,
    recipe_file: Path | None,
    resume: bool,
    steps: int | None,
    seed: int | None,
    minutes: float | None,
    num_beams: int,
    measured: Path | None,
    lang: str,
) -> None:
    """Train an English→Chinese translator on the sentence pairs in DATA.

    DATA is tab-separated: English, Chinese, attribution; cmn.txt from www.manythings.org/anki, or the
    same with a header. The folder gets checkpoints, a log, a plot of the loss, and at the end
    model/: averaged weights, vocabularies, recipe and scores on held-out sentences.

    \b
    regard train cmn.txt --out run --dictionary cc-cedict
    regard train cmn.txt --out run --dictionary cc-cedict --recipe built-in   # the built-in translator
    regard train cmn.txt --out run --resume          # after an interruption, with the same result
    regard train cmn.txt --out quick --steps 500
    regard train cmn.txt --evaluate run/model        # BLEU, chrF and the table of everyday sentences
    torchrun --nproc-per-node 2 -m regard train cmn.txt --out run
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.errors import ArgumentError
    from regard.processes import joined
    from regard.translator import read_dictionary, read_pairs
    from regard.translator import train as train_translator
    from regard.translator.evaluation import check_scoring
    from regard.views.terminal_weights import SafeConsole

    check_scoring()  # now, rather than after hours of training
    if measured is not None:
        _evaluate(SafeConsole(), data, dictionary, measured, num_beams, lang)
        return
    if folder is None:
        raise ArgumentError(
            "A training run needs a folder for its output.",
            got="no --out",
            do="Pass, for example, --out run.",
        )
    changes = {name: value for name, value in (("steps", steps), ("seed", seed)) if value is not None}
    with joined() as processes:
        console = SafeConsole(quiet=not processes.first)
        recipe = _recipe(recipe_file, folder if resume else None, changes)
        pairs = read_pairs(data)
        words = None if dictionary is None else read_dictionary(dictionary)
        with _progress(console, recipe, lang) as report:
            run = train_translator(
                pairs,
                folder,
                recipe,
                dictionary=words,
                resume=resume,
                minutes=minutes,
                processes=processes,
                report=report,
                lettering=_plot_style(lang),
            )
        if processes.first:
            _finish(console, run, num_beams, lang)


def _recipe(file: Path | None, begun: Path | None, changes: dict[str, Any]) -> Recipe:
    """The recipe from the file, from the run to resume, or the default; with changes."""
    from regard.translator import Recipe, recipe_of
    from regard.translator.built_in import BUILT_IN, FOLDER
    from regard.translator.translate_text import RECIPE

    if file is not None:
        recipe = Recipe.read(FOLDER / RECIPE if str(file) == BUILT_IN else file)
    else:
        recipe = (recipe_of(begun) if begun is not None else None) or Recipe()
    return replace(recipe, **changes)


def _plot_style(lang: str) -> PlotStyle:
    """The language and fonts of the plot of the loss; English if no Chinese font is installed."""
    from regard.translator import training_log

    if lang == "en":
        return training_log.PlotStyle()
    from regard.errors import FontError
    from regard.views.figures.fonts import families_for

    try:
        return training_log.PlotStyle(lang, tuple(families_for(training_log.TEXTS.table(lang).values())))
    except FontError:
        return training_log.PlotStyle()


def _progress(console: Console, recipe: Recipe, lang: str) -> AbstractContextManager[Listener]:
    if console.quiet:
        return nullcontext(lambda _: None)
    return _Bar(console, recipe.steps, lang)


class _Bar(AbstractContextManager["Listener"]):
    """A progress bar with the loss and the time left."""

    def __init__(self, console: Console, steps: int, lang: str = "en") -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self.lang = lang
        columns = ("{task.description}", "{task.completed}/{task.total}", "{task.fields[says]}")
        texts = [TextColumn(text) for text in columns]
        self.progress = Progress(texts[0], BarColumn(), *texts[1:], console=console)
        self.held_out: float | None = None
        self.task = self.progress.add_task(TEXTS.say("train.begun", lang), total=steps, says="")
        # Learning the words takes a minute; the spinner leaves no trace.
        self.preparing = console.status(TEXTS.say("train.preparing", lang))

    def __enter__(self) -> Listener:
        self.preparing.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self.preparing.stop()
        if self.progress.live.is_started:
            self.progress.stop()

    def _show(self, report: TrainingProgress) -> None:
        # Not before the first step, so that an early error is the only output; repeating this is harmless.
        self.preparing.stop()
        self.progress.start()
        says = self._words(report)
        self.progress.update(self.task, completed=report.step, says=says)
        if not self.progress.console.is_terminal and report.held_out != self.held_out:
            # In a file a bar would appear only at the end, so there is a line per checkpoint.
            self.progress.console.print(f"{report.step}/{report.steps}  {says}", highlight=False)
        self.held_out = report.held_out

    def _words(self, report: TrainingProgress) -> str:
        known = {"epoch": report.epoch + 1, "loss": report.loss, "left": _clock(report.left)}
        if report.held_out is None:
            return TEXTS.say("train.says", self.lang, **known)
        return TEXTS.say("train.says.held_out", self.lang, **known, held_out=report.held_out)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _finish(console: Console, run: TrainingRun, num_beams: int, lang: str) -> None:
    from rich.markup import escape

    from regard.translator.exported_model import MODEL, export, megabytes

    console.print(TEXTS.say("train.exporting", lang), highlight=False)
    scores: dict[str, Any] = export(run, num_beams=num_beams)
    model = run.folder / MODEL
    size = {"parameters": scores["parameters"], "megabytes": megabytes(model)}
    said = TEXTS.say("train.done", lang, model=escape(str(model)), **size)
    console.print(said, highlight=False, soft_wrap=True)
    if scores["missing"]:
        counted = {"averaged": len(scores["averaged"]), "missing": ", ".join(scores["missing"])}
        said = TEXTS.say("train.missing", lang, **counted)
        console.print(said, style="yellow", highlight=False, markup=False)
    _show_scores(console, scores, num_beams, lang)


def _show_scores(console: Console, scores: dict[str, Any], num_beams: int, lang: str) -> None:
    from rich.cells import cell_len, set_cell_size

    labels = {
        "greedy": TEXTS.say("train.greedy", lang),
        "beam": TEXTS.say("train.beams", lang, beams=num_beams),
        "validation": TEXTS.say("train.validation", lang),
        "everyday": TEXTS.say("train.everyday", lang),
        "development": TEXTS.say("train.development", lang),
    }
    width = max(cell_len(label) for name, label in labels.items() if name in scores)
    for name, label in labels.items():
        one = scores.get(name)
        if one is not None:
            said = f"  {set_cell_size(label, width)}  BLEU {one['bleu']:5.2f}   chrF {one['chrf']:5.2f}"
            console.print(said, highlight=False)


def _evaluate(
    console: Console, data: Path, dictionary: str | None, folder: Path, num_beams: int, lang: str
) -> None:
    """Measure a model again, and print its scores and the table of everyday sentences."""
    from rich.table import Table
    from rich.text import Text

    from regard.app.model_input import busy
    from regard.translator import everyday_sentences, load_translator, read_dictionary, read_pairs
    from regard.translator.exported_model import evaluate_model
    from regard.translator.measured_model import judged_table

    pairs = read_pairs(data)
    words = None if dictionary is None else read_dictionary(dictionary)
    with busy(console, TEXTS.say("train.measuring", lang)):
        scores = evaluate_model(folder, pairs, dictionary=words, num_beams=num_beams)
        rows = judged_table(load_translator(folder), everyday_sentences(), num_beams=num_beams)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for row in rows:
        judged = TEXTS.say(f"train.judged.{row.judgement}", lang)
        table.add_row(Text(judged, "dim"), Text(row.english), Text(row.chinese, "bold"))
    console.print(table)
    _show_scores(console, scores, num_beams, lang)
    counted = {name: scores["everyday"][name] for name in ("good", "wrong", "unread")}
    console.print("  " + TEXTS.say("train.judged", lang, **counted), highlight=False)
