"""``regard translate``: English to Chinese with the built-in translator, or with one you trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.app.languages import lang_option
from regard.app.output_errors import show
from regard.app.text_argument import HELP, read_argument
from regard.app.unknown_words import warn_of_unknown

if TYPE_CHECKING:
    from regard.translator import Translator


@click.command(epilog=HELP)
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@click.option("--align", is_flag=True, help="Show which English words each Chinese character attended to.")
@click.option(
    "--model",
    "folder",
    type=click.Path(path_type=Path),
    help="A folder written by regard train (run/model), instead of the built-in translator.",
)
@click.option(
    "--num-beams",
    "--beams",
    "num_beams",
    type=click.IntRange(1, 64),
    default=16,
    show_default=True,
    help="Beams of the beam search.",
)
@lang_option
def translate(texts: tuple[str, ...], align: bool, folder: Path | None, num_beams: int, lang: str) -> None:
    """Translate each English TEXT to Chinese, line by line, and sentence by sentence.

    Names that the translator does not know are copied. Other words that it was never taught are named
    on standard error.

    \b
    regard translate "The cat sat on the mat."
    regard translate "I am tired." "Where is the station?"
    regard translate "The cat sat on the mat." --align
    regard translate @letter.txt
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.app.model_input import BUILT_IN
    from regard.errors import TextError
    from regard.translator.built_in import FOLDER, embedded
    from regard.translator.sentence_splitting import split_sentences
    from regard.translator.translate_text import load_translator

    lines = [line.strip() for text in texts for line in read_argument(text).splitlines() if line.strip()]
    if not lines:
        raise TextError(
            "A text must have at least one word.",
            got="{text!r}",
            do='Pass, for example, "I love AI".',
            text=texts[0],
        )
    if folder == Path(BUILT_IN):
        folder = None
    translator = load_translator(folder) if folder else embedded()
    warn_of_unknown(translator, lines, lang)
    unread = [part for line in lines for part in split_sentences(line) if not translator.reads(part)]
    # A line that cannot be read does not cost the others: it is printed unchanged, with an error at the end.
    whole = [line for line in lines if not any(part in unread for part in split_sentences(line))]
    if not align:
        made = dict(zip(whole, translator.translate_all(whole, num_beams=num_beams), strict=True))
        for line in lines if whole else ():
            show(f"{made.get(line, line)}\n")
    else:
        _show_alignments(translator, whole, folder or FOLDER, num_beams, lang)
    if unread:
        translator.encode(unread[0])  # raises the error


def _show_alignments(
    translator: Translator, lines: Sequence[str], folder: Path, num_beams: int, lang: str
) -> None:
    from regard.translator.alignment import align as align_text
    from regard.translator.alignment import read_alignment_head
    from regard.views.terminal_alignment import show_alignment
    from regard.views.terminal_weights import SafeConsole

    by = read_alignment_head(folder)
    console = SafeConsole()
    for line in lines:
        show_alignment(console, align_text(translator, line, by, num_beams=num_beams), lang=lang)
