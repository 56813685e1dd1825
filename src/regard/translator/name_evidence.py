"""What tells a given name from an ordinary word: *Lily dances.* from *Lily pads are green.*

English is lowercased before the model reads it, so *Lily* would be the flower. Three things decide whether a
capitalized word is a name: how likely the word is a name at all, the words beside it (both are learned when a
model is exported), and whether it is capitalized inside a sentence, where ordinary words are not.

    evidence = word + before + after + the one after that + INSIDE or START

A word in capitals is treated like a name if Chinese keeps it unchanged: *AI*, but not *TV*, which is 电视.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from regard.errors import ModelFileError
from regard.translator.sentence_splitting import NOT_AN_END

FORMAT = "regard names 1"
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
POSSESSIVE = re.compile(r"['’]s$")
START_MARKS = (".", "!", "?", ":", "…")
INSIDE = 6.0
"""The evidence of a capital letter inside a sentence."""

START = -0.5
"""That at the start of a sentence, where every word has one: a name must be clearly likelier than a word."""

ALWAYS = 9.0
"""The evidence of a word that is nothing but a name."""

ENDINGS = ("ing", "ed", "s")
"""A word too rare to have been counted beside a name counts by its ending."""

OTHER = ""


def contexts(words: Sequence[str], place: int, *, inside: bool) -> list[str]:
    """The words beside the one in this place, as features.

    >>> contexts(["ask", "lily", "to", "dance"], 1, inside=True)
    ['ask _', '_ to', '_ . dance']
    """
    beside = [f"_ {_at(words, place + 1)}", f"_ . {_at(words, place + 2)}"]
    return [f"{_at(words, place - 1)} _", *beside] if inside else beside


def _at(words: Sequence[str], place: int) -> str:
    return words[place] if place < len(words) else "$"


def by_ending(feature: str) -> str:
    """The feature of all rare words with the same ending.

    >>> by_ending("_ dances"), by_ending("blorf _")
    ('_ -s', '- _')
    """
    if feature.endswith(" _"):
        return f"-{_ending(feature.removesuffix(' _'))} _"
    head, _, word = feature.rpartition(" ")
    return f"{head} -{_ending(word)}"


def _ending(word: str) -> str:
    return next((end for end in ENDINGS if word.endswith(end)), OTHER)


@dataclass(frozen=True)
class NameEvidence:
    """How likely words are names (log odds), by themselves and by the words beside them.

    >>> evidence = NameEvidence({"lily": 1.0}, {"_ -s": 1.0, "_ pads": -3.0})
    >>> [evidence.names(text) for text in ("Lily dances.", "Lily pads", "I saw Lily.", "lily")]
    [['Lily'], [], ['Lily'], []]
    """

    words: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[str, float] = field(default_factory=dict)
    chinese: Mapping[str, str] = field(default_factory=dict)  # the forms that a dictionary has of names
    copied: Set[str] = frozenset()  # words in capitals that translations keep

    def form(self, name: str) -> str:
        """The Chinese form of a name; the name itself without one."""
        return self.chinese.get(name.lower(), name)

    def to_json(self) -> str:
        """The evidence as text; compact, because it is shipped."""
        known: dict[str, Any] = {"words": self.words, "beside": self.beside, "chinese": self.chinese}
        known["copied"] = sorted(self.copied)
        return json.dumps({"format": FORMAT, **known}, ensure_ascii=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str) -> NameEvidence:
        """The evidence in a text."""
        try:
            named = json.loads(text)
            if named["format"] != FORMAT:
                raise ValueError(named["format"])
            words, beside = (
                {str(one): float(own) for one, own in named[part].items()} for part in ("words", "beside")
            )
            chinese = {str(name): str(form) for name, form in named["chinese"].items()}
            return cls(words, beside, chinese, frozenset(map(str, named["copied"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelFileError(
                "The evidence of names must be a JSON object with its format ({FORMAT!r}) and its numbers.",
                got="{type}: {error}",
                do="Export the model again.",
                FORMAT=FORMAT,
                type=type(error).__name__,
                error=error,
            ) from error

    def names(self, text: str) -> list[str]:
        """The words of a text that are names by this evidence, or are copied like one, in their order."""
        found = list(WORD.finditer(text))
        words = [POSSESSIVE.sub("", one.group()) for one in found]
        lower = [word.lower() for word in words]
        title = _is_title([word for word in words if self.words.get(word.lower()) != ALWAYS])
        names = []
        for place, word in enumerate(words):
            if word in self.copied and not text.isupper():
                names.append(word)
                continue
            own = self.words.get(lower[place])
            if own is None or not word.istitle() or (title and own != ALWAYS):
                continue
            inside = not starts_sentence(text[: found[place].start()])
            if own + (INSIDE if inside else START) + self._beside(lower, place, inside) > 0:
                names.append(word)
        return names

    def _beside(self, words: Sequence[str], place: int, inside: bool) -> float:
        features = contexts(words, place, inside=inside)
        return sum(self.beside.get(one, self.beside.get(by_ending(one), 0.0)) for one in features)


def starts_sentence(before: str) -> bool:
    """Whether what comes after this text begins a sentence.

    >>> [starts_sentence(text) for text in ("", "I am here. ", "I saw Mr. ", "I saw ")]
    [True, True, False, False]
    """
    text = before.rstrip(" \t\"'“‘(")
    return not text or (text.endswith(START_MARKS) and not NOT_AN_END.search(text))


def _is_title(words: Sequence[str]) -> bool:
    """Whether all words but short ones are capitalized, as in a heading: that says nothing about names."""
    long = [word for word in words[1:] if len(word) > 3]
    return len(long) > 1 and all(word[0].isupper() for word in long)
