"""``regard survey``: what the heads of a model do over a corpus."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.app.device_argument import device_of
from regard.app.languages import TEXTS, lang_option
from regard.app.model_input import BUILT_IN
from regard.app.number_list import NUMBERS

if TYPE_CHECKING:
    from rich.console import Console

    from regard.heads.survey import SurveyProgress
    from regard.heads.survey.survey_run import SurveyListener
    from regard.recording.reader import Reader


@click.command()
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option(
    "--model",
    required=True,
    metavar="NAME-OR-PATH",
    help='A transformers model, or "translator", the built-in one, whose encoder is surveyed.',
)
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), required=True, help="Folder for all output."
)
@click.option(
    "--unit",
    type=click.Choice(["line", "paragraph", "file"]),
    help="What counts as a document in a text file; by default a line, or in a folder each file.",
)
@click.option(
    "--field",
    default="text",
    show_default=True,
    help="The field of JSONL or the column of Parquet with the texts.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Read only the first N documents.")
@click.option("--layers", type=NUMBERS, help="Only these layers, for example 0,3-5.")
@click.option(
    "--long",
    type=click.Choice(["truncate", "split"]),
    default="truncate",
    show_default=True,
    help="What to do with a document that is too long for the model.",
)
@click.option(
    "--longest", type=int, metavar="N", help="Most tokens of a text; by default as many as the model allows."
)
@click.option(
    "--batch-tokens",
    type=click.IntRange(1),
    default=4096,
    show_default=True,
    help="Tokens computed together, padding included.",
)
@click.option(
    "--checkpoint-every",
    type=click.FloatRange(0),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between checkpoints.",
)
@click.option(
    "--pages",
    type=click.IntRange(0),
    default=12,
    show_default=True,
    help="Number of examples that get a page.",
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="cpu, cuda, cuda:1 …; auto uses a GPU if there is one.",
)
@lang_option
def survey(
    corpus: Path,
    model: str,
    folder: Path,
    unit: str | None,
    field: str,
    limit: int | None,
    layers: list[int] | None,
    long: str,
    longest: int | None,
    batch_tokens: int,
    checkpoint_every: float,
    pages: int,
    device: str,
    lang: str,
) -> None:
    """Measure every head of a model over a CORPUS: a text file, a folder, JSONL or Parquet.

    The folder gets heads.parquet, distances.parquet, examples.parquet, failed.jsonl, summary.json and
    report.html. If it is interrupted, start it again with the same folder: it continues, and the results
    are the same.

    \b
    regard survey corpus.txt --model translator --out survey
    regard survey corpus.txt --model ./bert-base-uncased --out survey
    regard survey corpus.jsonl --field body --limit 10000 --model gpt2 --out survey
    torchrun --nproc-per-node 4 -m regard survey corpus.parquet --model gpt2 --out survey
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.heads.survey import Corpus
    from regard.heads.survey.survey_run import prepare
    from regard.processes import joined
    from regard.views.report import write_report
    from regard.views.terminal_weights import SafeConsole

    texts = Corpus.open(corpus, unit=unit, field=field, limit=limit)
    with joined() as processes, told_of_an_end(processes.count, lang):
        console = SafeConsole(quiet=not processes.first)
        place = device_of(device)
        reader = _reader(model)
        reader.model.to(place)
        run = prepare(
            reader,
            texts,
            folder,
            layers=layers,
            batch_tokens=batch_tokens,
            long=long,
            longest=longest,
            checkpoint_every=checkpoint_every,
            processes=processes,
        )
        with _progress(console, lang) as report:
            found = run.go(report)
        if found is not None:
            console.print(TEXTS.say("survey.writing", lang), highlight=False)
            found.save(folder, run.subject.tokens)
            path = write_report(found, run.subject, run.batches, folder, pages=pages, lang=lang)
            _finish(console, found.counts, len(found.places), path, lang)


def _reader(model: str) -> Reader:
    """The built-in translator, or a transformers model."""
    if model == BUILT_IN:
        from regard.translator.source_reader import source_reader

        return source_reader()
    from regard.recording.reader import load_reader

    return load_reader(model)


@contextmanager
def told_of_an_end(count: int, lang: str = "en") -> Iterator[None]:
    """If another process dies, torchrun ends this one: an error message instead of a traceback."""
    if count == 1:
        yield
        return

    def ended(number: int, frame: Any) -> None:
        del frame
        click.echo(TEXTS.say("survey.ended", lang, signal=signal.Signals(number).name), err=True)
        # Not an Exception: those that a model raises for a text are caught, and this must not be.
        raise SystemExit(1)

    before = signal.signal(signal.SIGTERM, ended)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress(console: Console, lang: str) -> Iterator[SurveyListener]:
    """A progress bar with the time left; in a file, a line now and then."""
    if console.quiet:
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn(TEXTS.say("survey.begun", lang)),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[says]}"),
    )
    with_bar = Progress(*columns, console=console)
    task = with_bar.add_task("", total=1.0, says="")
    said = -1

    def show(state: SurveyProgress) -> None:
        nonlocal said
        says = _words(state, lang)
        if console.is_terminal:
            with_bar.start()  # not before the first batch, so that an early error is the only output
            with_bar.update(task, completed=state.share, says=says)
        elif int(20 * state.share) > said:
            said = int(20 * state.share)
            console.print(f"{100 * state.share:3.0f} %  {says}", highlight=False)

    try:
        yield show
    finally:
        if with_bar.live.is_started:
            with_bar.stop()


def _words(state: SurveyProgress, lang: str) -> str:
    if math.isnan(state.left):
        return TEXTS.say("survey.says", lang, texts=state.texts)
    return TEXTS.say("survey.says.left", lang, texts=state.texts, left=_clock(state.left))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _finish(console: Console, counts: dict[str, int], heads: int, path: Path, lang: str) -> None:
    from rich.markup import escape

    size = {"heads": heads, "documents": counts["documents"], "tokens": counts["tokens"]}
    said = TEXTS.say("survey.done", lang, path=escape(str(path)), **size)
    console.print(said, highlight=False, soft_wrap=True)
    for name in ("truncated", "divided", "failed"):
        if counts[name]:
            console.print(f"  {TEXTS.say(f'survey.{name}', lang, count=counts[name])}", highlight=False)
