"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from regard.errors import ArgumentError

Function = TypeVar("Function", bound=Callable[..., Any])

model_option = click.option(
    "--model", metavar="NAME-OR-PATH", help="A transformers model; by default the built-in translator."
)

pair_option = click.option(
    "--pair", metavar="TEXT", help="A second sentence; for an encoder-decoder, the translation to show."
)

PAGE_ENDINGS = (".html", ".htm")
FIGURE_ENDINGS = (".png", ".svg", ".pdf")


def check_page_file(context: click.Context, option: click.Parameter, page: Path | None) -> Path | None:
    """Refuse a name that another program would open, before anything is computed."""
    del context, option
    if page is not None and page.suffix and page.suffix.lower() not in PAGE_ENDINGS:
        raise ArgumentError(
            "The file of a page must end in {known}.",
            got="{page}",
            do="Name it {better}.",
            known=", ".join(PAGE_ENDINGS),
            page=page,
            better=page.with_suffix(".html"),
        )
    return page


def check_figure_file(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a format that figures do not have, before anything is computed."""
    del context, option
    if path is not None and path.suffix.lower() not in FIGURE_ENDINGS:
        raise ArgumentError(
            "A figure must be saved as .png, .svg or .pdf.", got="{name}", do="Choose one.", name=path.name
        )
    return path


figure_option = click.option(
    "--figure",
    "path",
    type=click.Path(path_type=Path),
    callback=check_figure_file,
    help="Write a figure as .png, .svg or .pdf.",
)

force_option = click.option("--force", is_flag=True, help="Write the page even if it is larger than 200 MB.")


def lengths_option(default: Sequence[int]) -> Callable[[Function], Function]:
    """``--length 512 2048 8192``: click gives an option one value; the rest is the argument ``more``."""
    shown = " ".join(map(str, default))

    def add(command: Function) -> Function:
        command = click.argument("more", type=click.IntRange(1), nargs=-1, metavar="")(command)
        return click.option(
            "-n",
            "--length",
            "lengths",
            type=click.IntRange(1),
            multiple=True,
            metavar="N ...",
            help=f"Numbers of tokens, one or more.  [default: {shown}]",
        )(command)

    return add
