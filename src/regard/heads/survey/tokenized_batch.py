"""One batch of texts as tensors: which tokens are real, special or separators, which pairs mean something.

For every pair of query and key the *pair features* say which roles the pair belongs to. They depend on the
texts alone, so that they are computed once and serve every layer and head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.heads.separators import is_separator
from regard.heads.survey.corpus_batches import DocumentPart

PAIRS = ("self", "previous", "next", "first", "separator", "same", "duplicate", "induction")
"""The roles that name, for each query, the keys that belong to it; the definitions of ``heads.roles``."""

FEATURES = (*PAIRS, "mass", "gap")
"""And what gives the sum of a row and its mean distance."""

MAX_KEPT_FEATURES = 1 << 23
"""Features of a batch that are kept for the next layer: 32 MB."""


@dataclass(eq=False)
class TokenFlags:
    """Which tokens of a vocabulary are special, and which separate; asked once per token."""

    tokenizer: Any
    special: frozenset[int]
    _known: dict[int, bool] = field(default_factory=dict)

    def separators(self, ids: Tensor) -> Tensor:
        """Whether each id is a separator."""
        different, places = ids.unique(return_inverse=True)
        return torch.tensor([self._separates(one) for one in different.tolist()])[places]

    def specials(self, ids: Tensor) -> Tensor:
        """Whether each id is special, such as [CLS]."""
        found = torch.zeros_like(ids, dtype=torch.bool)
        for one in self.special:
            found |= ids == one
        return found

    def _separates(self, one: int) -> bool:
        if one not in self._known:
            self._known[one] = is_separator(str(self.tokenizer.convert_ids_to_tokens(one)))
        return self._known[one]


@dataclass(eq=False)
class TokenizedBatch:
    """The parts of a batch, padded on the right to one length."""

    ids: Tensor  # (batch, position)
    real: Tensor  # bool; False where there is padding
    special: Tensor
    separator: Tensor
    content: Tensor  # real, not special and not the first
    _kept: tuple[slice, Tensor] | None = None

    @classmethod
    def of(
        cls, parts: Sequence[DocumentPart], words: TokenFlags, padding: int, device: Any = None
    ) -> TokenizedBatch:
        """The batch as tensors."""
        length = max(len(part.ids) for part in parts)
        ids = torch.full((len(parts), length), padding)
        real = torch.zeros((len(parts), length), dtype=torch.bool)
        for row, part in enumerate(parts):
            ids[row, : len(part.ids)] = torch.tensor(part.ids)
            real[row, : len(part.ids)] = True
        special, separator = words.specials(ids), words.separators(ids) & real
        content = real & ~special
        content[:, 0] = False
        ids, real, special, separator, content = (
            x.to(device) for x in (ids, real, special, separator, content)
        )
        return cls(ids, real, special, separator, content)

    def features(self, rows: slice) -> Tensor:
        """``(batch, query, key, feature)``: 1 where a pair belongs to a role; then 1, and the distance."""
        if self._kept is not None and self._kept[0] == rows:
            return self._kept[1]
        length = self.ids.shape[1]
        query, key = (
            torch.arange(length, device=self.ids.device)[rows, None],
            torch.arange(length, device=self.ids.device),
        )
        gap = key - query  # (query, key)
        equal = self.ids[:, rows, None] == self.ids[:, None, :]  # (batch, query, key)
        followed = torch.zeros_like(equal)
        followed[..., 1:] = equal[..., :-1]
        marks = self.separator[:, None, :] & (key > 0) & ~self.separator[:, rows, None]
        found = {
            "self": gap == 0,
            "previous": gap == -1,
            "next": gap == 1,
            "first": (key == 0) & (query > 0),
            "separator": marks,
            "same": equal,
            "duplicate": equal & (gap < 0),
            # What followed an earlier occurrence; it must itself lie before the query.
            "induction": followed & (gap < 0),
            "mass": torch.ones_like(gap),
            "gap": gap.abs(),
        }
        features = self.real.new_zeros((*equal.shape, len(FEATURES)), dtype=torch.float32)
        for index, name in enumerate(FEATURES):
            features[..., index] = found[name]
        if features.numel() <= MAX_KEPT_FEATURES:
            self._kept = (rows, features)
        return features
