"""The words of a report, in English and Chinese.

A text may have HTML tags; the values put into it are escaped.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from regard.languages import Texts, check_language

TEXTS = Texts("report")

_PLACE = re.compile(r"<!-- text ([\w.]+) -->")


@dataclass(frozen=True)
class ReportTexts:
    """The texts of one language, ready for HTML.

    >>> ReportTexts("en")("example.pair", query="<b>", key="cat", weight=0.5)
    '<b>&lt;b&gt;</b> attends to <b>cat</b> with 0.50'
    """

    lang: str

    def __post_init__(self) -> None:
        check_language(self.lang)

    def __call__(self, key: str, /, **values: object) -> str:
        """One text; what the user wrote is escaped."""
        safe = {
            name: html.escape(value) if isinstance(value, str) else value for name, value in values.items()
        }
        return TEXTS.say(key, self.lang, **safe)

    def count(self, key: str, count: int, /, **values: object) -> str:
        """A text about one thing or about several.

        >>> ReportTexts("en").count("summary.failed", 1)
        '1 text could not be read. failed.jsonl says which, and why.'
        """
        return self(f"{key}.one" if count == 1 else f"{key}.many", count=count, **values)

    def fill(self, skeleton: str) -> str:
        """A document with a text in every place ``<!-- text key -->``.

        >>> ReportTexts("zh").fill("<h2><!-- text roles --></h2>")
        '<h2>角色</h2>'
        """
        return _PLACE.sub(lambda place: self(place[1]), skeleton)
