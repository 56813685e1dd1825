"""Which tokens separate: marks of tokenizers such as [SEP], and punctuation."""

from __future__ import annotations

import unicodedata

SPACES = "Ġ▁Ċ"
"""How tokenizers write the space before a word, and a line break."""


def is_separator(token: str) -> bool:
    """Whether a token is a mark in brackets, a line break or only punctuation.

    >>> [token for token in ["[SEP]", "the", "Ġ,", "</s>", "<|im_end|>", "##s", "。", "▁", "Ċ", "#", "1"]
    ...  if is_separator(token)]
    ['[SEP]', 'Ġ,', '</s>', '<|im_end|>', '。', 'Ċ', '#']
    """
    bare = token.strip()
    if len(bare) > 2 and (bare[0] + bare[-1]) in ("[]", "<>"):
        return True
    if "Ċ" in token or (token and not bare and "\n" in token):
        return not token.strip(SPACES + "\n ")
    marks = bare.strip(SPACES)
    return bool(marks) and all(unicodedata.category(sign)[0] in "PS" for sign in marks)
