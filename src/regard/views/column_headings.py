"""Columns and cells of tables as readers see them, in English and Chinese."""

from __future__ import annotations

from collections.abc import Sequence

from regard.languages import Texts
from regard.texts import LANGUAGES

TEXTS, STATISTICS = Texts("views"), Texts("statistics")


def heading(column: str, lang: str = "en") -> str:
    """The heading of a column; an unknown column has its own name.

    >>> heading("received_peak"), heading("received_peak", "zh"), heading("my_column", "zh")
    ('top key', '最受关注', 'my column')
    """
    name, _, first = column.rpartition("_")
    if name == "distance" and first.isdecimal():
        return f"{heading(name, lang)} {first}"
    own = TEXTS.table(lang).get(f"column.{column}", column.replace("_", " "))
    return STATISTICS.table(lang).get(column, own)


def named(column: str, name: str, lang: str = "en") -> str:
    """The text of a cell: kinds and roles are translated, names and tokens are not.

    >>> named("kind", "cross", "zh"), named("best", "previous", "zh"), named("key_token", "cross", "zh")
    ('交叉', '前一个', 'cross')
    """
    if column == "best":
        return STATISTICS.table(lang).get(name, name)
    return TEXTS.table(lang).get(f"kind.{name}", name) if column == "kind" else name


def column_of(columns: Sequence[str], printed: str) -> str:
    """The column with this name or with this heading in either language; otherwise the name as given.

    >>> columns = ("layer", "previous_weight", "received_peak")
    >>> [column_of(columns, printed) for printed in ("previous", "前一个", "Top key", "other")]
    ['previous_weight', 'previous_weight', 'received_peak', 'other']
    """
    if printed in columns:
        return printed
    wanted = printed.strip().casefold()
    for column in columns:
        names = {column, column.removesuffix("_weight")}
        words = {heading(name, lang) for name in names for lang in LANGUAGES}
        words |= {named("best", column, lang) for lang in LANGUAGES}
        if wanted in {word.casefold() for word in words}:
            return column
    return printed
