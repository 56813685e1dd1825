"""The translator that comes with regard: loaded from the package on first use; nothing is downloaded."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

from regard.deprecation import renamed_arguments
from regard.translator.alignment import AlignmentHead, TranslationAlignment, read_alignment_head
from regard.translator.alignment import align as align_text
from regard.translator.translate_text import NUM_BEAMS, Translator, load_translator
from regard.translator.vocabulary import END

FOLDER = Path(__file__).parent / "weights"
BUILT_IN = "built-in"
"""The name of its recipe for ``regard train``."""


class UnknownWordsWarning(UserWarning):
    """A text has words that the translator was never taught.

    >>> import regard, warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     _ = regard.translate("The blorf is red.")
    >>> found[0].category.__name__
    'UnknownWordsWarning'
    """


@cache
def embedded() -> Translator:
    """The built-in translator; loaded once.

    >>> embedded().translate("I love you.")
    '我爱你。'
    """
    return load_translator(FOLDER)


@cache
def embedded_alignment_head() -> AlignmentHead:
    """The cross-attention head of the built-in translator that aligns best.

    >>> head = embedded_alignment_head()
    >>> 0 < head.right <= head.pairs
    True
    """
    return read_alignment_head(FOLDER)


@overload
def translate(
    text: str,
    *,
    align: Literal[False] = False,
    num_beams: int = NUM_BEAMS,
    max_new_tokens: int | None = None,
    eos_token_id: int = END,
) -> str: ...
@overload
def translate(
    text: str,
    *,
    align: Literal[True],
    num_beams: int = NUM_BEAMS,
    max_new_tokens: int | None = None,
    eos_token_id: int = END,
) -> TranslationAlignment: ...
@renamed_arguments(beams="num_beams")
def translate(
    text: str,
    *,
    align: bool = False,
    num_beams: int = NUM_BEAMS,
    max_new_tokens: int | None = None,
    eos_token_id: int = END,
) -> str | TranslationAlignment:
    """Translate an English text to Chinese with the built-in translator, sentence by sentence.

    Names that it does not know are copied; an :class:`UnknownWordsWarning` names other words that it was
    never taught.

    ``num_beams`` is the width of the beam search, ``max_new_tokens`` the most characters to write, and
    ``eos_token_id`` the token that ends a sentence. With ``align=True`` the result also says which English
    words each character attended to.

    >>> import regard
    >>> "猫" in regard.translate("The cat sat on the mat.")
    True
    >>> regard.translate("The cat sat on the mat.", align=True).strongest(0)
    'cat'
    """
    unknown = embedded().vocabularies.unknown(text)
    if unknown and embedded().reads(text):
        said = f"The translator was never taught: {', '.join(unknown)}. The translation is a guess there."
        warnings.warn(said, UnknownWordsWarning, stacklevel=3)  # renamed_arguments is in between
    options: dict[str, Any] = {
        "num_beams": num_beams, "max_new_tokens": max_new_tokens, "eos_token_id": eos_token_id,
    }  # fmt: skip
    if align:
        return align_text(embedded(), text, embedded_alignment_head(), **options)
    return embedded().translate(text, **options)
