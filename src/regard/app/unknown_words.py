"""A line on standard error about words that a translator was never taught."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from regard.app.languages import TEXTS
from regard.printing import safe

if TYPE_CHECKING:
    from regard.translator import Translator

SHOWN = 12
"""How many words are named."""


def warn_of_unknown(translator: Translator, texts: Iterable[str], lang: str) -> None:
    """Name the words and signs in the texts that the translator was never taught, if there are any."""
    import click

    found = list(dict.fromkeys(word for text in texts for word in translator.vocabularies.unknown(text)))
    if found:
        words = ", ".join(found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        click.echo(safe(TEXTS.say("translate.unknown", lang, words=words)), err=True)
