"""Sets of keys as channels of a value: the weight on each set comes out of one pass of attention.

``Σ_{j ∈ S} w_ij`` is attention with the value 1 at the keys of S and 0 at the others. So separators cost one
channel, and every frequent word two, instead of one computed weight for each pair. Words that are rare
have few pairs, which are cheaper one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.kernels import Statistics, attention_statistics
from regard.masks import Mask, causal, padding, window
from regard.masks.extent import Bools, Integers
from regard.masks.mask import Both, Constant, Either
from regard.masks.patterns import Window
from regard.recording import Call
from regard.recording.step_masks import StackedMask

FREQUENT, SHARE = 64, 64
"""A token that occurs more often than this, and at more than one in this many keys, gets its own channels."""


@dataclass(frozen=True, eq=False)
class KeySetChannels:
    """The values: a channel for separators, then one for each frequent word, then one for what follows it."""

    values: Tensor  # (batch, key, channel)
    separators: Bools | None  # (batch, key)
    marks: Bools | None  # those of them that are neither padding nor the first key
    words: tuple[dict[int, int], ...]  # of each sequence: the number of a frequent word → its place
    count: int  # places for words

    @property
    def first_word(self) -> int:
        """The channel of the first word."""
        return 0 if self.marks is None else 1

    def of_rows(self, numbers: Sequence[Integers]) -> Tensor:
        """The place of each query's word, ``(batch, query)``; −1 for a rare one."""
        found = [[known.get(int(one), -1) for one in row] for known, row in zip(self.words, numbers)]
        return torch.tensor(found, dtype=torch.int64)


def channels(separators: Bools | None, numbers: Sequence[Integers] | None, shown: Tensor) -> KeySetChannels:
    """Channels for separators and for the frequent among these words; None for what was not requested.

    ``shown`` are the keys that are not padding, ``(batch, key)``.
    """
    batch, keys = shown.shape
    marks = None
    if separators is not None:
        marks = separators & shown.numpy()
        marks[np.arange(batch), shown.int().argmax(1).numpy()] = False
    words: list[dict[int, int]] = [{} for _ in range(batch)]
    if numbers is not None:
        for known, row in zip(words, numbers):
            often = np.flatnonzero(np.bincount(row) > max(FREQUENT, len(row) / SHARE))
            known.update({int(word): place for place, word in enumerate(often)})
    count = max((len(known) for known in words), default=0)
    first = 0 if marks is None else 1
    values = torch.zeros(batch, keys, first + 2 * count)
    if marks is not None:
        values[..., 0] = torch.from_numpy(marks)
    for one, known in enumerate(words):
        for word, place in known.items():
            assert numbers is not None
            there = torch.from_numpy(numbers[one] == word)
            values[one, :, first + place] = there
            values[one, 1:, first + count + place] = there[:-1].to(values.dtype)
    return KeySetChannels(values, separators, marks, tuple(words), count)


def measured(call: Call, found: KeySetChannels) -> Statistics:
    """The statistics of a call, whose output is the weight on each set, ``(batch, head, query, channel)``."""
    if not call.has_weights or not found.values.shape[-1]:
        return call.statistics()
    return call.statistics(values=found.values[:, None])


def by_chance(mask: Mask, call: Call, found: KeySetChannels) -> Statistics:
    """The same for even weights: how many keys of each set a row sees, and what each key then receives.

    Axes of the batch and of heads are 1 where the mask does not differ over them.
    """
    heads = call.heads if mask.lead and mask.lead[-1] > 1 else 1
    q, k = (torch.zeros(call.batch, heads, length, 1) for length in call.extent)
    v = found.values[:, None].expand(-1, heads, -1, -1)
    return attention_statistics(q, k, v if v.shape[-1] else None, mask=mask, scale=1.0)


def before_queries(call: Call, found: KeySetChannels) -> Tensor:
    """The weight on keys of each set before the query, where later ones are visible too."""
    return call.weighted(found.values[:, None], BEFORE)


BEFORE = causal() & ~window(0, 0)
"""The keys before the query."""


def looks_back(mask: Mask) -> bool:
    """Whether the mask certainly hides every key after the query."""
    if isinstance(mask, Window):
        return mask.after == 0
    if isinstance(mask, Both):
        return any(looks_back(part) for part in mask.parts)
    if isinstance(mask, Either):
        return all(looks_back(part) for part in mask.parts)
    if isinstance(mask, StackedMask):
        return all(looks_back(rows.mask) for rows in mask.steps)
    return isinstance(mask, Constant) and not mask.value


def effective_mask(call: Call, shown: Tensor, real: Tensor) -> Mask:
    """The mask of a call, under which queries that are padding see nothing.

    A call that kept no mask answers by its kind: a decoder looks back, and no query sees padding.
    """
    mask = call.mask
    if not call.mask_known:
        mask = (causal() if call.kind == "decoder" else mask) & padding(shown)
    return mask if bool(real.all()) else mask & padding(real).T
