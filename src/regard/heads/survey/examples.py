"""The texts that excite each head most, as arrays of fixed size that merge and are saved like numbers.

A text excites a head as far as its tokens look at each other: the score is the mean, over the tokens of the
text, of the greatest weight on another token, special tokens and the first key left out, because heads
rest on those. Texts of fewer than five such tokens do not compete: weight is easily great where there is
little to choose from. Of equal scores the earlier document counts, and of equal texts only the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.processes import Processes

EXAMPLES_PER_HEAD = 3
"""Texts kept for every head."""

SHOWN = 64
"""Tokens of a text that are kept around the strongest pair."""

LEAST = 5
"""Tokens that a text must have to compete."""


@dataclass(eq=False)
class Examples:
    """The best texts of every head, ``(head, example)``, best first; −inf and −1 where there is none yet."""

    score: Tensor  # float64
    place: Tensor  # (..., 5) int64: document, part, query, key, first token shown
    weight: Tensor  # float64, of query on key
    pair: Tensor  # (..., 2) int64: the ids of both
    tokens: Tensor  # (..., SHOWN) int64, −1 after the end
    row: Tensor  # (..., SHOWN) float64: the weights of the query on these tokens

    @classmethod
    def blank(cls, heads: int, kept: int = EXAMPLES_PER_HEAD) -> Examples:
        """Nothing yet."""
        none = torch.full((heads, kept), -torch.inf, dtype=torch.float64)

        def whole(size: int) -> Tensor:
            return torch.full((heads, kept, size), -1, dtype=torch.int64)

        row = torch.zeros((heads, kept, SHOWN), dtype=torch.float64)
        return cls(none, whole(5), torch.zeros_like(none), whole(2), whole(SHOWN), row)

    @property
    def bar(self) -> Tensor:
        """The score that a text must reach to be kept, ``(head,)``."""
        return self.score[:, -1]

    def put(
        self,
        head: int,
        rank: int,
        score: float,
        place: tuple[int, int, int, int],
        weights: Tensor,
        ids: Tensor,
    ) -> None:
        """Write down one text: document, part, query and key, the query's weights on all tokens, and ids."""
        _, _, query, key = place
        first = _first_shown(query, key, len(ids))
        shown = slice(first, first + SHOWN)
        count = len(ids[shown])
        self.score[head, rank] = score
        self.place[head, rank] = torch.tensor([*place, first])
        self.weight[head, rank] = float(weights[key])
        self.pair[head, rank] = ids[[query, key]]
        self.tokens[head, rank, :count] = ids[shown]
        self.row[head, rank, :count] = weights[shown].double()

    def merge(self, other: Examples) -> None:
        """Keep the best of both."""
        best = _best([self, other])
        for name, value in best.tensors().items():
            setattr(self, name, value)

    def shared(self, processes: Processes) -> Examples:
        """The best of all processes."""
        gathered = {name: processes.all(tensor) for name, tensor in self.tensors().items()}
        return _best(
            [
                Examples(**{name: all_of[i] for name, all_of in gathered.items()})
                for i in range(processes.count)
            ]
        )

    def tensors(self) -> dict[str, Tensor]:
        """Everything by name."""
        return dict(vars(self))


def _first_shown(query: int, key: int, length: int) -> int:
    """Where to begin so that both are shown, if they are close enough; otherwise the query."""
    low, high = sorted((query, key))
    middle = (low + high) // 2 if high - low < SHOWN else query
    return max(0, min(middle - SHOWN // 2, length - SHOWN))


def _best(sides: list[Examples]) -> Examples:
    """The best of several; each side has them best first, and ends in the same order whoever comes first."""
    together = {name: torch.cat([side.tensors()[name] for side in sides], 1) for name in sides[0].tensors()}
    together = _sorted(together)
    # Equal texts have equal scores, so they are adjacent; the later one is dropped.
    score, tokens = together["score"], together["tokens"]
    again = (score[:, 1:] == score[:, :-1]) & (tokens[:, 1:] == tokens[:, :-1]).all(-1)
    score[:, 1:].masked_fill_(again, -torch.inf)
    kept = sides[0].score.shape[1]
    return Examples(**{name: tensor[:, :kept] for name, tensor in _sorted(together).items()})


def _sorted(together: dict[str, Tensor]) -> dict[str, Tensor]:
    """Best first; of equals the earlier document, and of its parts the earlier."""
    document, part = (together["place"][..., index].numpy() for index in (0, 1))
    order = torch.from_numpy(np.lexsort((part, document, -together["score"].numpy()), axis=-1))
    return {name: _picked(tensor, order) for name, tensor in together.items()}


def _picked(tensor: Tensor, chosen: Tensor) -> Tensor:
    index = chosen if tensor.ndim == 2 else chosen[..., None].expand(*chosen.shape, tensor.shape[-1])
    return tensor.gather(1, index)
