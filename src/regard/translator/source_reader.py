"""The encoder of a translator with its tokenizer, in the form in which a survey reads other models.

A corpus has one side, so that of an encoder-decoder the encoder is surveyed; that of a translator reads
English. Names that it does not know are hidden, as in a translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from regard.nn import Seq2Seq
from regard.recording import Reader
from regard.translator.built_in import embedded
from regard.translator.translate_text import Translator
from regard.translator.vocabulary import END, PADDING, SPECIALS, START, UNKNOWN, Vocabularies


class SourceEncoder(nn.Module):
    """The encoder of a translator, called as encoders of transformers are."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.embedding, self.encoder = model.source, model.encoder
        self._encode = model.encode

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """What the decoder would read, ``(batch, token, width)``."""
        return self._encode(input_ids.masked_fill(attention_mask == 0, PADDING)).context


@dataclass(frozen=True)
class SourceTokenizer:
    """The English vocabulary of a translator, called as tokenizers of transformers are.

    >>> tokenizer = SourceTokenizer(embedded().vocabularies)
    >>> tokenizer.convert_ids_to_tokens(tokenizer("I see.")["input_ids"])
    ['i', 'see', '.', '[END]']
    """

    vocabularies: Vocabularies

    is_fast = False  # long texts are divided by their reader
    pad_token_id, bos_token_id, eos_token_id, unk_token_id = PADDING, None, END, UNKNOWN
    unk_token = SPECIALS[UNKNOWN]
    all_special_ids = (PADDING, START, END)

    def __len__(self) -> int:
        return len(self.vocabularies.english)

    def __call__(
        self, text: str, *, add_special_tokens: bool = True, verbose: bool = True
    ) -> dict[str, list[int]]:
        del verbose  # it warns of nothing
        ids = self.vocabularies.english.encode(self.vocabularies.hide_names(text).text)
        return {"input_ids": self.build_inputs_with_special_tokens(ids) if add_special_tokens else ids}

    def num_special_tokens_to_add(self) -> int:
        """The end of a text is one."""
        return 1

    def build_inputs_with_special_tokens(self, ids: Sequence[int]) -> list[int]:
        """The ids with the end of a text."""
        return [*ids, END]

    def convert_ids_to_tokens(self, ids: int | Sequence[int]) -> str | list[str]:
        """One piece, or those of several ids."""
        if isinstance(ids, int):
            return str(self.vocabularies.english.tokenizer.id_to_token(ids))
        return [str(self.convert_ids_to_tokens(one)) for one in ids]

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """The id of a piece; None if there is none."""
        found: int | None = self.vocabularies.english.tokenizer.token_to_id(token)
        return found


@dataclass(frozen=True, eq=False)
class SourceReader(Reader):
    """The encoder of a translator with its tokenizer; it can be surveyed, but does not write."""

    positions: int

    @property
    def two_sided(self) -> bool:
        """Only the side that reads is here."""
        return False

    @property
    def writes(self) -> bool:
        """An encoder alone does not write."""
        return False

    @property
    def longest(self) -> float:
        """How many tokens it has positions for."""
        return self.positions


def source_reader(translator: Translator | None = None) -> SourceReader:
    """A reader of English for :func:`regard.heads.survey.survey`: the encoder of the built-in translator.

    >>> source_reader().name
    'translator'
    """
    chosen = embedded() if translator is None else translator
    encoder = SourceEncoder(chosen.model).eval()
    return SourceReader(encoder, SourceTokenizer(chosen.vocabularies), "translator", chosen.model.length)
