"""Fonts: which ones a figure needs for its labels, and what to do if one is missing.

matplotlib goes through a list of fonts character by character, so Latin characters keep their font and
Chinese ones come from the next. A character that no font has would be drawn as a box; here it is
written as its number instead (U+1F47B). Only if a whole script of everyday use is missing,
Chinese, Japanese or Korean, would nothing be readable: that is an error that names the package.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.font_manager import FontEntry, FontProperties, fontManager

from regard.errors import FontError
from regard.views.figures.style import LATIN

PREFERRED = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti SC",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Noto Sans CJK JP",
    "Noto Sans CJK TC",
    "Noto Sans CJK KR",
    "Noto Serif CJK SC",
)
"""Fonts with Chinese characters, in the order of how well they match DejaVu Sans."""

# The Last Resort font has a box for everything; the others number their characters in their own way.
_UNREADABLE = ("Last Resort", "LastResort", "cm", "STIXSize", "STIXNonUnicode")

_REGULAR = (400, 500, "normal", "regular", "book", "medium")

_EVERYDAY_CJK = ((0x3001, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF01, 0xFF60))

_VISIBLE = {"\n": "↵", "\r": "↵", "\t": "⇥", " ": "␣", "\u3000": "␣", "": "∅"}
"""Tokens that are nothing but space would be invisible labels."""


def families_for(texts: Iterable[str]) -> list[str]:
    """The fonts that the texts need, by name: the user's own, then the Latin one.

    >>> families_for(["I", "love", "AI"])
    ['DejaVu Sans']
    """
    chosen = [*_own_families(), LATIN]
    wanted = {sign for text in texts for sign in text if not sign.isspace()}
    missing = wanted - _drawn_by(chosen, wanted)
    # Fonts that were installed after matplotlib last looked are read only when they are needed.
    for known in (_known_fonts, _new_fonts):
        for name in known():
            if not missing:
                return chosen
            found = missing & _signs_of(name)
            if found:
                chosen.append(name)
                missing -= found
    unreadable = sorted(sign for sign in missing if _is_everyday_cjk(sign))
    if unreadable:
        raise FontError(
            "Labels in Chinese, Japanese or Korean need a font with their characters.",
            got="{unreadable!r} and no installed font that has them",
            do="Install fonts-noto-cjk (Debian, Ubuntu), google-noto-sans-cjk-fonts (Fedora) or "
            "noto-fonts-cjk (Arch), or put such a font file into ~/.local/share/fonts.",
            unreadable="".join(unreadable[:8]),
        )
    return chosen


def _own_families() -> list[str]:
    """The first installed font that the user has set for each family."""
    own = []
    settings: Any = mpl.rcParams  # its stubs know only names written out
    for family in settings["font.family"]:
        names = settings[f"font.{family}"] if family in font_manager.font_family_aliases else [family]
        own.append(next((name for name in names if _signs_of(name)), LATIN))
    return [name for name in dict.fromkeys(own) if name != LATIN]


def readable(texts: Sequence[str], families: Sequence[str]) -> list[str]:
    """The texts as they can be drawn: blanks become visible, characters without a glyph numbers.

    >>> readable(["a b", "", "x\\n", "\U000f1234"], [LATIN])
    ['a b', '∅', 'x↵', 'U+F1234']
    """
    known = _drawn_by(families, {*"".join(texts), *_VISIBLE.values()})
    return [_readable(text, known) for text in texts]


def _drawn_by(families: Sequence[str], signs: set[str]) -> set[str]:
    """Which of these characters one of the fonts has; a Chinese font has 50,000, too many to unite."""
    return {sign for sign in signs if any(sign in _signs_of(name) for name in families)}


def _readable(text: str, known: set[str]) -> str:
    if not text.strip(" "):
        return "".join(_VISIBLE[" "] for _ in text) or _VISIBLE[""]
    parts: list[str] = []
    numbered = False  # whether the character before was written as its number
    for sign in text:
        shown = _VISIBLE.get(sign, sign) if sign != " " else sign
        # Marks that join characters or change direction have no glyph, so a token of them would be empty.
        if shown == " " or (shown in known and unicodedata.category(shown) != "Cf"):
            parts.append(shown)
            numbered = False
        else:
            parts.append(f"{'+' if numbered else 'U+'}{ord(sign):04X}")
            numbered = True
    return "".join(parts)


def _is_everyday_cjk(sign: str) -> bool:
    return any(first <= ord(sign) <= last for first, last in _EVERYDAY_CJK)


@cache
def _signs_of(name: str) -> frozenset[str]:
    """The characters that a font has, or none where it is missing or cannot be read."""
    try:
        path = font_manager.findfont(FontProperties(family=[name]), fallback_to_default=False)
        return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
    except (ValueError, RuntimeError, OSError):
        return frozenset()


def _known_fonts() -> Iterator[str]:
    return _in_order(fontManager.ttflist)


def _new_fonts() -> Iterator[str]:
    """Fonts that are on the machine but not yet in matplotlib's list, which it keeps in a file."""
    return _in_order(_taken_in())


@cache
def _taken_in() -> tuple[FontEntry, ...]:
    known = {Path(entry.fname) for entry in fontManager.ttflist}
    before = len(fontManager.ttflist)
    for path in sorted(set(map(Path, font_manager.findSystemFonts())) - known):
        # A file that matplotlib cannot use counts as a missing font.
        with suppress(RuntimeError, OSError, ValueError):
            fontManager.addfont(path)
    _signs_of.cache_clear()
    return tuple(fontManager.ttflist[before:])


def _in_order(entries: Iterable[FontEntry]) -> Iterator[str]:
    """Each name once: fonts that are known to look good, then the rest in alphabetical order."""
    usable = {
        entry.name
        for entry in entries
        if (entry.style, entry.stretch) == ("normal", "normal")
        and entry.weight in _REGULAR
        and not entry.name.startswith(_UNREADABLE)
        and "Emoji" not in entry.name  # pictures in colour, which matplotlib cannot draw
    } - {LATIN}
    yield from (name for name in PREFERRED if name in usable)
    yield from sorted(usable.difference(PREFERRED))
