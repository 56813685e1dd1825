"""``regard ablate``: which heads, layers or keys a model needs for its answer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard import atomic
from regard.app.languages import TEXTS, lang_option
from regard.app.shared_options import check_figure_file, model_option, pair_option
from regard.app.text_argument import HELP, read_argument

if TYPE_CHECKING:
    from rich.console import Console

    from regard.app.model_input import MeasuredText


@click.command(epilog=HELP)
@click.argument("text")
@model_option
@pair_option
@click.option("--target", metavar="TOKEN", help='The token that should come next, such as " Mary".')
@click.option(
    "--against", metavar="TOKEN", help="Another token: the logit of --target minus that of this one."
)
@click.option(
    "--by",
    type=click.Choice(["head", "layer", "key"]),
    default="head",
    show_default=True,
    help="What to remove, one at a time.",
)
@click.option(
    "--most",
    "--top",
    "most",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="Print at most N rows.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    callback=check_figure_file,
    help="Also a figure as .png, .svg or .pdf.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Also every number, as .csv or .json.")
@lang_option
def ablate(
    text: str,
    model: str | None,
    pair: str | None,
    target: str | None,
    against: str | None,
    by: str,
    most: int,
    figure: Path | None,
    out: Path | None,
    lang: str,
) -> None:
    """Remove one head, layer or key at a time, and see how the answer changes.

    Without --target, the loss of the text is measured. Press Ctrl+C to stop early and see what was
    measured so far.

    \b
    regard ablate "The cat sat on the mat."
    regard ablate @prompt.txt --model ./gpt2 --target " Mary" --against " John" --figure heads.png
    regard ablate @text.txt --model ./gpt2 --by layer --out layers.csv
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.app.model_input import BUILT_IN, measured_text
    from regard.views.terminal_weights import SafeConsole

    if against is not None and target is None:
        raise click.UsageError("--against needs a --target.")
    if target is not None and model in (None, BUILT_IN):
        raise click.UsageError("--target needs a --model; the built-in translator is measured by its loss.")
    if out is not None and out.suffix not in (".csv", ".json"):
        raise click.UsageError("--out must be a .csv or a .json file.")
    atomic.check_writable(figure, out)
    console = SafeConsole()
    other = None if pair is None else read_argument(pair)
    subject = measured_text(console, read_argument(text), model=model, pair=other, lang=lang)
    _sweep(console, subject, by, target, against, most, figure, out, lang)


def _sweep(
    console: Console,
    subject: MeasuredText,
    by: str,
    target: str | None,
    against: str | None,
    most: int,
    figure: Path | None,
    out: Path | None,
    lang: str,
) -> None:
    from regard.ablation import ablate as swept
    from regard.app.model_input import progress
    from regard.heads import roles
    from regard.views.figures import effects, save
    from regard.views.page.display_tokens import text_of
    from regard.views.terminal_effects import show_effects

    with _stoppable() as stop, progress(TEXTS.say("ablate.sweeping", lang)) as report:
        found = swept(
            subject.model,
            subject.inputs,
            _metric(subject, target, against),
            by=by,
            progress=report,
            stop=stop,
        )
    looks = None
    if by == "head":
        with progress(TEXTS.say("reading.roles", lang)) as report:
            looks = roles(subject.recording, progress=report)
    tokens = subject.key_tokens
    show_effects(console, found, roles=looks, tokens=tokens, most=most, lang=lang)
    if out is not None:
        (found.table.to_csv if out.suffix == ".csv" else found.table.to_json)(out)
        console.print(str(out), style="bold", markup=False, highlight=False)
    if figure is not None:
        labels = {kind: text_of(own).tokens for kind, own in tokens.items()} if by == "key" else None
        save(effects(found, labels=labels, lang=lang), figure)
        console.print(str(figure), style="bold", markup=False, highlight=False)


def _metric(subject: MeasuredText, target: str | None, against: str | None) -> Any:
    from regard import metrics

    if target is None:
        return metrics.loss if subject.has_logits else metrics.cosine
    if against is None:
        return metrics.logit(target, tokenizer=subject.tokenizer)
    return metrics.difference(target, against, tokenizer=subject.tokenizer)


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Ctrl+C requests a stop; a second one stops at once."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        del number, frame
        if asked:
            raise KeyboardInterrupt
        asked = True

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:  # not in the main thread
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
