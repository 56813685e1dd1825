"""All texts that people read: a folder for each language, with one JSON file per subject.

The files of a subject have the same keys in every language, and a text may have places, ``{variance:.1f}``.
Every language has its own whole sentences; none is assembled from pieces. The English of errors, of
help and of click is in the code, so their Chinese has that English as keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent

LANGUAGES = ("en", "zh")
"""English and Simplified Chinese."""

LANGUAGE_TAGS = {"en": "en", "zh": "zh-CN"}
"""How HTML calls them."""


@cache
def read_table(subject: str, lang: str) -> Mapping[str, str]:
    """The texts of a subject in a language by their keys; none if the language has no such file."""
    file = FOLDER / lang / f"{subject}.json"
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found
