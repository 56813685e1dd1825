"""Names that the model does not know: each is replaced by a stand-in, and the translation gets the name.

A model that was trained with a dictionary has learned placeholders: characters of Unicode's private use area,
which texts do not contain, put for names on both sides of sentence pairs. For any other model, names that
it has seen often are used: *Xanthe sat.* is translated as *Tom sat.*, and 汤姆 becomes Xanthe. A name that
the dictionary has becomes its Chinese form: *Maria* 玛丽亚.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import NamedTuple

from regard.translator.name_evidence import POSSESSIVE, WORD, NameEvidence

PLACEHOLDERS = ("\ue000", "\ue001", "\ue002", "\ue003")
ENDINGS = (
    ("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""),
    ("ing", "e"),
)  # fmt: skip
"""Endings of words, and what the word without them ends in."""


class StandIn(NamedTuple):
    """The stand-in for a name, in both languages."""

    english: str
    chinese: str


TAUGHT = tuple(StandIn(placeholder, placeholder) for placeholder in PLACEHOLDERS)
"""The stand-ins of a model that has learned placeholders."""


class HiddenName(NamedTuple):
    """A name, its form in a translation, its stand-in, and where that is in the text that the model reads."""

    name: str
    form: str
    stand_in: StandIn
    spans: tuple[tuple[int, int], ...]


class HiddenNames(NamedTuple):
    """A text as the model reads it, and the names that are hidden in it."""

    text: str
    names: tuple[HiddenName, ...] = ()

    def restore(self, translation: str) -> str:
        """The translation with the names in it."""
        return "".join(shown for shown, _ in self.parts(translation))

    def hide(self, translation: str) -> str:
        """The translation as the model would write it."""
        for one in self.names:
            translation = translation.replace(one.form, one.stand_in.chinese)
        return translation

    def parts(self, translation: str) -> list[tuple[str, int]]:
        """What the model writes, cut into what is shown and how many characters of the model that is.

        A placeholder that stands for nothing shows nothing.
        """
        shown = {one.stand_in.chinese: one.form for one in self.names}
        signs = [re.escape(sign) for sign in (*shown, *PLACEHOLDERS)]
        cut = re.findall(f"{'|'.join(signs)}|.", translation, re.DOTALL)
        return [(shown.get(sign, "" if sign in PLACEHOLDERS else sign), len(sign)) for sign in cut]

    def shown_at(self, first: int, stop: int) -> str | None:
        """What is shown for a piece of a name: all of it for the first piece; None outside of names."""
        for one in self.names:
            for begin, end in one.spans:
                if begin <= first < end:
                    return (one.name if first == begin else "") + self.text[end:stop]
        return None


def hide_names(
    text: str,
    words: Set[str],
    stand_ins: Sequence[StandIn] = TAUGHT,
    evidence: NameEvidence | None = None,
) -> HiddenNames:
    """Replace names by stand-ins, as long as there are free ones.

    Names are the capitalized words that are not among ``words``, and those that the evidence finds.

    >>> tom = StandIn("Tom", "汤姆")
    >>> hidden = hide_names("Does Xanthe know Xanthe's cat?", {"does", "know", "cat"}, [tom])
    >>> hidden.text, hidden.restore("汤姆认识汤姆的猫吗？")
    ("Does Tom know Tom's cat?", 'Xanthe认识Xanthe的猫吗？')
    """
    plain = text.translate({ord(placeholder): None for placeholder in PLACEHOLDERS})
    present = set(WORD.findall(plain)) | {POSSESSIVE.sub("", word) for word in WORD.findall(plain)}
    free = [one for one in stand_ins if one.english not in present]
    evident = set(evidence.names(plain)) if evidence is not None else set()
    chosen: dict[str, StandIn] = {}
    spans: dict[str, list[tuple[int, int]]] = {}
    pieces: list[str] = []
    length = last = 0
    for found in WORD.finditer(plain):
        name = POSSESSIVE.sub("", found.group())
        unknown = name[0].isupper() and len(name) > 1 and is_unknown(name, words)
        if not unknown and name not in evident:
            continue
        if name not in chosen:
            if not free:
                continue
            chosen[name] = free.pop(0)
        pieces += [plain[last : found.start()], chosen[name].english]
        length += len(pieces[-2])
        spans.setdefault(name, []).append((length, length + len(pieces[-1])))
        length += len(pieces[-1])
        last = found.start() + len(name)
    hidden = tuple(
        HiddenName(name, evidence.form(name) if evidence is not None else name, stand_in, tuple(spans[name]))
        for name, stand_in in chosen.items()
    )
    return HiddenNames("".join([*pieces, plain[last:]]), hidden)


def is_unknown(word: str, words: Set[str]) -> bool:
    """Whether a word, or a part of it, is not among the known words, also without its ending.

    >>> known = {"cat", "smile"}
    >>> [is_unknown(word, known) for word in ("Cat's", "smiling", "x-cats", "blorf")]
    [False, False, False, True]
    """
    lower = POSSESSIVE.sub("", word.lower().replace("’", "'"))
    if not words or lower in words:
        return False
    parts = re.split("['-]", lower)
    return not all(
        (len(part) == 1 and part.isascii()) or not words.isdisjoint(_stems(part)) for part in parts
    )


def _stems(word: str) -> list[str]:
    return [word[: len(word) - len(end)] + other for end, other in ENDINGS if word.endswith(end)]


def without_inflected(words: Set[str]) -> set[str]:
    """These words but for those that are others of them with *s*, *es*, *d* or *ed*: known all the same.

    >>> sorted(without_inflected({"cat", "cats", "smile", "smiled", "smiling", "glass"}))
    ['cat', 'glass', 'smile', 'smiling']
    """
    kept: set[str] = set()
    for word in sorted(words, key=len):
        plain = word.isalpha() and word.endswith(("s", "d"))
        shorter = [stem for stem in _stems(word) if stem != word] if plain else []
        if kept.isdisjoint(shorter):
            kept.add(word)
    return kept
