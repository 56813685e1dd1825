"""Checks that a tokenizer knows a text: a model that reads [UNK] throughout has read nothing.

transformers silently creates an empty tokenizer if a folder has none. Every text is then a row of
unknown tokens, and whatever is measured on them looks plausible and means nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from regard.errors import ModelFileError, TextError

FILES = (
    "tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
    "source.spm", "vocab.bpe", "tekken.json", "tiktoken.model",
)  # fmt: skip
"""Common file names of vocabularies."""

BARE_SPACES = ("▁", "Ġ")
"""Tokens for a single space, known or not; they say nothing about the text around them."""


def check_tokenizer(tokenizer: Any, name: str, folder: Path | None) -> None:
    """Raise unless the tokenizer came with a vocabulary.

    Tokenizers that read bytes need none; their class names no files.
    """
    own = tuple(dict(getattr(tokenizer, "vocab_files_names", None) or {}).values())
    wanted = tuple(dict.fromkeys((*own, "tokenizer.json"))) if own else ()
    if folder is not None and wanted and not any((folder / file).exists() for file in (*wanted, *FILES)):
        raise ModelFileError(
            "A model folder must have the files of its tokenizer ({wanted}).",
            got="{name!r} with none of them",
            do="Save the tokenizer there too: tokenizer.save_pretrained(folder).",
            wanted=", ".join(wanted),
            name=name,
        )
    special = set(getattr(tokenizer, "all_special_ids", ()))
    # Some tokenizers make up thousands of special tokens; only ordinary ones can read a text.
    if own and len(tokenizer) <= len(special):
        raise ModelFileError(
            "A tokenizer must know more than its special tokens.",
            got="{tokens} tokens of {name!r}, all of them special",
            do="Save the tokenizer there too: tokenizer.save_pretrained(folder).",
            tokens=len(tokenizer),
            name=name,
        )


def check_known(tokenizer: Any, ids: Sequence[int], name: str) -> None:
    """Raise if most tokens of a text are unknown to the tokenizer."""
    unknown, ordinary = unknown_tokens(tokenizer, ids, frozenset(getattr(tokenizer, "all_special_ids", ())))
    if 2 * unknown > ordinary:
        raise TextError(
            "The tokenizer of {name} must know most tokens of a text.",
            got="{unknown:,} of {ordinary:,} tokens that it reads as {unk_token}",
            do="Write in a language of the model, or check that the folder has the model's own tokenizer.",
            name=name,
            unknown=unknown,
            ordinary=ordinary,
            unk_token=tokenizer.unk_token,
        )


def unknown_tokens(tokenizer: Any, ids: Sequence[int], special: Collection[int]) -> tuple[int, int]:
    """How many tokens are unknown, and how many there are besides special ones such as [CLS]."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    ends = (getattr(tokenizer, "eos_token_id", None), getattr(tokenizer, "bos_token_id", None))
    if unknown is None or unknown in ends:
        return 0, len(ids)  # GPT-2 reads bytes, and uses its end-of-text token as the unknown one
    spaces = {tokenizer.convert_tokens_to_ids(token) for token in BARE_SPACES}
    left_out = {*special, *spaces} - {unknown, None}
    known = list(ids)
    return known.count(unknown), len(known) - sum(known.count(one) for one in left_out)
