"""``regard train``: a translator from a file of sentence pairs."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from regard.translator import Recipe, Report, Run
    from regard.translator.training import Listener


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), required=True, help="Folder for everything written."
)
@click.option(
    "--recipe", "recipe_file", type=click.Path(path_type=Path), help="JSON file; the default without it."
)
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint in the folder.")
@click.option("--steps", type=int, help="Steps of the optimizer, in place of the recipe's.")
@click.option("--seed", type=int, help="Chance of split, weights and batches, in place of the recipe's.")
@click.option("--minutes", type=float, help="Stop after so long; --resume goes on.")
@click.option("--beams", default=4, show_default=True, help="Beams of the second evaluation.")
def train(
    data: Path,
    folder: Path,
    recipe_file: Path | None,
    resume: bool,
    steps: int | None,
    seed: int | None,
    minutes: float | None,
    beams: int,
) -> None:
    """Train an English→Chinese translator on the sentence pairs in DATA.

    DATA is tab-separated: English, Chinese, attribution; cmn.txt of www.manythings.org/anki, or the
    same with a header. The folder gets checkpoints, a log, a picture of the loss, and in the end
    model/: averaged weights, vocabularies, recipe and scores on held-out sentences.

    \b
    regard train cmn.txt --out run
    regard train cmn.txt --out run --resume          # after a kill: exactly as if nothing had been
    regard train cmn.txt --out quick --steps 500
    torchrun --nproc-per-node 2 -m regard train cmn.txt --out run
    """
    # Before torch is loaded: its threads shall sleep while they wait for each other, not spin. On a
    # machine with other work a spinning step takes ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from rich.console import Console

    from regard.processes import joined
    from regard.translator import read_pairs
    from regard.translator import train as train_translator

    changes = {name: value for name, value in (("steps", steps), ("seed", seed)) if value is not None}
    with joined() as processes:
        console = Console(quiet=not processes.first)
        recipe = _recipe(recipe_file, folder if resume else None, changes)
        pairs = read_pairs(data)
        with _progress(console, recipe) as report:
            run = train_translator(
                pairs, folder, recipe, resume=resume, minutes=minutes, processes=processes, report=report
            )
        if processes.first:
            _finish(console, run, beams)


def _recipe(file: Path | None, begun: Path | None, changes: dict[str, Any]) -> Recipe:
    """The recipe of the file, of the training that goes on, or the default; with changes."""
    from regard.translator import Recipe, recipe_of

    if file is not None:
        recipe = Recipe.read(file)
    else:
        recipe = (recipe_of(begun) if begun is not None else None) or Recipe()
    return replace(recipe, **changes)


def _progress(console: Console, recipe: Recipe) -> AbstractContextManager[Listener]:
    if console.quiet:
        return nullcontext(lambda _: None)
    return _Bar(console, recipe.steps)


class _Bar(AbstractContextManager["Listener"]):
    """A bar with the loss and the time left."""

    def __init__(self, console: Console, steps: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = ("{task.description}", "{task.completed}/{task.total}", "{task.fields[says]}")
        texts = [TextColumn(text) for text in columns]
        self.progress = Progress(texts[0], BarColumn(), *texts[1:], console=console)
        self.held_out: float | None = None
        self.task = self.progress.add_task("training", total=steps, says="")

    def __enter__(self) -> Listener:
        return self._show

    def __exit__(self, *_: object) -> None:
        if self.progress.live.is_started:
            self.progress.stop()

    def _show(self, report: Report) -> None:
        # Not before the first step, so that an error stands alone; starting again does nothing.
        self.progress.start()
        held_out = "" if report.held_out is None else f"  held out {report.held_out:.3f}"
        says = f"epoch {report.epoch + 1}  loss {report.loss:.3f}{held_out}  {_clock(report.left)} left"
        self.progress.update(self.task, completed=report.step, says=says)
        if not self.progress.console.is_terminal and report.held_out != self.held_out:
            # In a file a bar shows itself only in the end; there a line per checkpoint tells.
            self.progress.console.print(f"{report.step}/{report.steps}  {says}", highlight=False)
        self.held_out = report.held_out


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _finish(console: Console, run: Run, beams: int) -> None:
    from regard.translator.export import MODEL, export, megabytes

    console.print("averaging, exporting, translating the held-out sentences …", highlight=False)
    scores: dict[str, Any] = export(run, beams=beams)
    model = run.folder / MODEL
    console.print(
        f"[bold]{model}[/]  {scores['parameters']:,} parameters, {megabytes(model):.1f} MB", highlight=False
    )
    for name, label in (("greedy", "greedy"), ("beam", f"{beams} beams")):
        one = scores[name]
        console.print(f"  {label:<8}  BLEU {one['bleu']:5.2f}   chrF {one['chrf']:5.2f}", highlight=False)
