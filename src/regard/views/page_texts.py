"""Writes the texts of all languages into the JavaScript modules of the page, as one table.

``languages.js`` has an empty table, so that the modules can be checked and tested without a build.
"""

from __future__ import annotations

import json

from regard.texts import LANGUAGES, read_table

_EMPTY = "TEXTS = { en: {}, zh: {} };"


def with_texts(source: str, *subjects: str) -> str:
    """A module with the texts of these subjects, and the names of statistics, in place of its empty table.

    >>> with_texts("export const TEXTS = { en: {}, zh: {} };", "page")[:48]
    'export const TEXTS = {"en": {"view.text": "Text"'
    """
    if _EMPTY not in source:
        return source
    table = {lang: _texts(lang, subjects) for lang in LANGUAGES}
    return source.replace(_EMPTY, f"TEXTS = {json.dumps(table, ensure_ascii=False)};")


def _texts(lang: str, subjects: tuple[str, ...]) -> dict[str, str]:
    found = {key: text for subject in subjects for key, text in read_table(subject, lang).items()}
    for key, text in read_table("statistics", lang).items():
        about = key.startswith("about.")
        found[key if about else f"statistic.{key}"] = text[:1].upper() + text[1:]
    return found
