"""Texts into sentences: the translator was trained on single ones."""

from __future__ import annotations

import re

END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9\ue000-\ue003])")
NOT_AN_END = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|mt|jr|sr|vs|etc|e\.g|i\.e|a\.m|p\.m|[a-z](?:\.[a-z])*)\.$",
    re.IGNORECASE,
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; abbreviations and initials end none.

    >>> split_sentences("Hello! Mr. Smith is here. He has 2.5 kg of tea.")
    ['Hello!', 'Mr. Smith is here.', 'He has 2.5 kg of tea.']
    """
    found: list[str] = []
    first = 0
    for gap in END.finditer(text):
        sentence = text[first : gap.end()].strip()
        if NOT_AN_END.search(sentence) and sentence.casefold() != "i.":
            continue
        found.append(sentence)
        first = gap.end()
    rest = text[first:].strip()
    return [*found, rest] if rest or not found else found
