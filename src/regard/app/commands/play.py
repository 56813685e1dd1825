"""``regard play``: pages on which vectors, words and masks can be moved, and everything follows."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from regard import atomic
from regard.app.desktop import has_desktop
from regard.app.languages import TEXTS, lang_option
from regard.app.text_argument import HELP, read_argument
from regard.errors import ArgumentError

NAMES = ("query", "sentence", "masks", "transformer")


class _PageName(click.Choice[str]):
    """One of the names; ``one-query``, as its file is called, is accepted too."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("query" if value == "one-query" else value, param, ctx)


@click.command(epilog=HELP)
@click.argument("name", required=False, type=_PageName(NAMES))
@click.argument("text", required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=".",
    show_default=True,
    help="The folder to write to; for a single page also its file, ending in .html.",
)
@click.option("--no-open", "closed", is_flag=True, help="Do not open the page in the browser.")
@lang_option
def play(name: str | None, text: str | None, out: Path, closed: bool, lang: str) -> None:
    """Write pages to play with, which compute attention in the browser; without NAME, all four.

    On a desktop, the first page is opened. TEXT is what the page begins with: the words of the
    sentence, a mask, or the English sentence that goes through the transformer.

    \b
    regard play
    regard play query
    regard play sentence "I love AI"
    regard play masks "causal & (window(4, 0) | prefix(2))"
    regard play transformer "The cat sat on the mat." --out cat.html
    """
    if name == "transformer" or name is None:
        from regard import machine

        machine.prepare()  # before torch is imported
    from regard.app.commands.look import name_file
    from regard.app.model_input import busy
    from regard.lessons.playable_pages import write_playable, write_playables
    from regard.views.play import PLAYABLES
    from regard.views.terminal_weights import SafeConsole

    if text is not None and name in (None, "query"):
        raise ArgumentError(
            "One query has no text to begin with.",
            got="{text!r}",
            do="Omit it, or play sentence, masks or transformer.",
            text=text[:60],
        )
    console = SafeConsole()
    with busy(console, TEXTS.say("play.writing", lang)):
        if name is None:
            _check_folder(out)
            paths = write_playables(out, lang=lang)
        else:
            page = PLAYABLES[name]
            path = out if out.suffix.lower() in (".html", ".htm") else out / page.file
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.check_writable(path)
            begun = None if text is None else read_argument(text)
            there = [one for one in PLAYABLES.values() if one is page or (path.parent / one.file).exists()]
            beside = there if len(there) > 1 else ()
            paths = [write_playable(page, path, text=begun, lang=lang, beside=beside)]
    titles = [PLAYABLES[name].title(lang)] if name else [page.title(lang) for page in PLAYABLES.values()]
    for path, title in zip(paths, titles, strict=True):
        name_file(console, path, title)
    if not closed and has_desktop():
        webbrowser.open(paths[0].resolve().as_uri())


def _check_folder(out: Path) -> None:
    if out.suffix.lower() in (".html", ".htm") or out.is_file():
        raise ArgumentError(
            "All pages together need a folder.",
            got="--out {out}",
            do="Name a folder, or one page: regard play masks --out masks.html.",
            out=out,
        )
