"""Texts by subject and key."""

from __future__ import annotations

import os
from collections.abc import Mapping

from regard.errors import check_language as check_language
from regard.texts import LANGUAGES as LANGUAGES
from regard.texts import read_table

VARIABLE = "REGARD_LANG"
"""The environment variable that names the language of people who did not name one otherwise."""


def preferred_language() -> str:
    """The language that the environment names, if there is one; otherwise English."""
    wanted = os.environ.get(VARIABLE, "")
    return wanted if wanted in LANGUAGES else "en"


class Texts:
    """The texts of one subject by their keys, loaded on first use.

    >>> Texts("heads").say("role.previous"), Texts("heads").say("role.previous", "zh")
    ('attends to the previous token', '关注前一个词元')
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject

    def table(self, lang: str) -> Mapping[str, str]:
        """All texts of a language by their keys."""
        check_language(lang)
        return read_table(self.subject, lang)

    def say(self, key: str, lang: str = "en", /, **values: object) -> str:
        """One text, with its placeholders filled in."""
        found = self.table(lang)[key]
        return found.format(**values) if values else found
