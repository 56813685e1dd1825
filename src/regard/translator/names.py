"""Names that the model does not know: each is replaced by a placeholder, and copied into the translation.

The placeholders are characters of Unicode's private use area, which texts do not contain. The model learns
them from sentence pairs in which a name was replaced on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

PLACEHOLDERS = ("\ue000", "\ue001", "\ue002", "\ue003")
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
POSSESSIVE = re.compile(r"['’]s$")


@dataclass(frozen=True)
class HiddenNames:
    """A text with placeholders, and the names that they stand for."""

    text: str
    names: tuple[str, ...] = ()

    def restore(self, translation: str) -> str:
        """The translation with the names in it; a placeholder that stands for none is left out."""
        return "".join(self.shown(character) for character in translation)

    def hide(self, translation: str) -> str:
        """The translation with the placeholders in it."""
        for placeholder, name in zip(PLACEHOLDERS, self.names, strict=False):
            translation = translation.replace(name, placeholder)
        return translation

    def shown(self, token: str) -> str:
        """A token as it is shown: the name instead of its placeholder."""
        if token not in PLACEHOLDERS:
            return token
        place = PLACEHOLDERS.index(token)
        return self.names[place] if place < len(self.names) else ""


def hide_names(text: str, words: Collection[str]) -> HiddenNames:
    """Replace capitalized words that are not among the known ``words``; the same name by the same placeholder.

    >>> hidden = hide_names("Does Xanthe know Xanthe's cat?", {"does", "know", "cat"})
    >>> hidden.names, hidden.restore("\ue000认识\ue000的猫吗？")
    (('Xanthe',), 'Xanthe认识Xanthe的猫吗？')
    """
    names: list[str] = []

    def hidden(found: re.Match[str]) -> str:
        word = found.group()
        name = POSSESSIVE.sub("", word)
        if not (name[0].isupper() and len(name) > 1 and is_unknown(name, words)):
            return word
        if name not in names:
            if len(names) == len(PLACEHOLDERS):
                return word
            names.append(name)
        return PLACEHOLDERS[names.index(name)] + word[len(name) :]

    plain = text.translate({ord(placeholder): None for placeholder in PLACEHOLDERS})
    return HiddenNames(WORD.sub(hidden, plain), tuple(names))


def is_unknown(word: str, words: Collection[str]) -> bool:
    """Whether a word, or a part of it, is not among the known words.

    >>> is_unknown("Cat's", {"cat"}), is_unknown("blorf", {"cat"}), is_unknown("x-ray", {"ray"})
    (False, True, False)
    """
    lower = POSSESSIVE.sub("", word.lower().replace("’", "'"))
    parts = re.split("['-]", lower)
    return lower not in words and not all(part in words or (len(part) == 1 and part.isascii()) for part in parts)
