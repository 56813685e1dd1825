"""The option ``--lang`` that commands share."""

from __future__ import annotations

import click

lang_option = click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of the texts: English or Chinese.",
)
