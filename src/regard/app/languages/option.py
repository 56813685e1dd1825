"""The option ``--lang`` that commands share, and the language of a command line.

``--lang`` sets it, before the command or after it; otherwise the environment variable ``REGARD_LANG``;
otherwise it is English. The system's language is ignored, so that scripts read the same output on
every machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from regard.texts import LANGUAGES

VARIABLE = "REGARD_LANG"
LANGUAGE = "regard.language"
"""Where the contexts of one command line keep its language."""


class LanguageContext(click.Context):
    """A context that writes help in the language of its command line."""

    def make_formatter(self) -> click.HelpFormatter:
        """What the help is written into. The Chinese texts are not read for English."""
        if self.meta.get(LANGUAGE) != "zh":
            return super().make_formatter()
        from regard.app.languages.help_formatter import ChineseFormatter

        return ChineseFormatter(width=self.terminal_width, max_width=self.max_content_width)


lang_option = click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    default="en",
    envvar=VARIABLE,
    show_default=True,
    show_envvar=True,
    callback=lambda ctx, _, value: ctx.meta.get(LANGUAGE, value),  # before the command, it counts too
    help="Language of the texts: English or Chinese.",
)


def language_of(arguments: Sequence[str]) -> str:
    """The language of a command line, known before it is parsed, for errors; the last ``--lang`` wins.

    >>> language_of(["demo", "words", "--lang", "zh"]), language_of(["demo", "--lang=zh"])
    ('zh', 'zh')
    """
    asked = os.environ.get(VARIABLE, "")
    for place, one in enumerate(arguments):
        if one == "--":
            break
        if one == "--lang":
            asked = "".join(arguments[place + 1 : place + 2])
        elif one.startswith("--lang="):
            asked = one.partition("=")[2]
    return asked if asked in LANGUAGES else "en"
