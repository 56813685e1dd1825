"""The translator that comes with regard: loaded from the package on first use, nothing fetched."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, overload

from regard.translator.alignment import Alignment, AlignmentHead, read_alignment_head
from regard.translator.alignment import align as align_text
from regard.translator.translate_text import Translator, load_translator

FOLDER = Path(__file__).parent / "weights"


@cache
def embedded() -> Translator:
    """The embedded translator; loaded once."""
    return load_translator(FOLDER)


@cache
def embedded_alignment_head() -> AlignmentHead:
    """The head of the embedded translator whose cross-attention aligns best."""
    return read_alignment_head(FOLDER)


@overload
def translate(text: str, *, align: Literal[False] = False, beams: int = 4) -> str: ...
@overload
def translate(text: str, *, align: Literal[True], beams: int = 4) -> Alignment: ...
def translate(text: str, *, align: bool = False, beams: int = 4) -> str | Alignment:
    """The Chinese of an English sentence, by the embedded translator.

    With ``align`` also which English words each character looked at.

    >>> import regard
    >>> "猫" in regard.translate("The cat sat on the mat.")
    True
    >>> regard.translate("The cat sat on the mat.", align=True).strongest(0)
    'cat'
    """
    if align:
        return align_text(embedded(), text, embedded_alignment_head(), beams=beams)
    return embedded().translate(text, beams=beams)
