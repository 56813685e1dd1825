"""Counts, means and variances that add up: the results of two halves make that of the whole.

With n values of mean m and ``M = Σ (x − m)²`` on one side and n', m', M' on the other (Chan et al. 1983):

    mean = m + (m' − m) n' / (n + n')        M'' = M + M' + (m' − m)² n n' / (n + n')

Nothing large is subtracted from something large, so in float64 the order changes only the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.processes import Processes


@dataclass(eq=False)
class Moments:
    """Count, mean, squared deviations, least and greatest of several quantities, all of one shape.

    >>> left, right = (Moments.of(torch.tensor(x), dims=(0,)) for x in ([1.0, 2.0], [3.0, 4.0, 5.0]))
    >>> left.merge(right)
    >>> float(left.mean), float(left.variance), float(left.greatest)
    (3.0, 2.0, 5.0)
    """

    count: Tensor  # int64
    mean: Tensor  # float64, as the rest
    squares: Tensor  # Σ (x − mean)²
    least: Tensor
    greatest: Tensor

    @classmethod
    def blank(cls, *shape: int) -> Moments:
        """The moments of no values."""
        zeros = torch.zeros(shape, dtype=torch.float64)
        return cls(
            torch.zeros(shape, dtype=torch.int64),
            zeros,
            zeros.clone(),
            torch.full_like(zeros, torch.inf),
            torch.full_like(zeros, -torch.inf),
        )

    @classmethod
    def of(cls, values: Tensor, where: Tensor | None = None, *, dims: tuple[int, ...]) -> Moments:
        """Of the values where ``where`` holds, taken together over ``dims``."""
        # Reduced axes last and in one piece, and then in place: most of the time went into new arrays.
        last = range(-len(dims), 0)
        own = values.movedim(dims, tuple(last)).flatten(-len(dims)).clone()
        if where is None:
            hidden = torch.zeros_like(own, dtype=torch.bool)
        else:
            hidden = ~where.expand(values.shape).movedim(dims, tuple(last)).flatten(-len(dims))
        count = (~hidden).sum(-1)
        least = own.masked_fill_(hidden, torch.inf).amin(-1).double()
        greatest = own.masked_fill_(hidden, -torch.inf).amax(-1).double()
        exact = own.masked_fill_(hidden, 0).double()
        mean = exact.sum(-1) / count.clamp(min=1)
        squares = exact.sub_(mean[..., None]).masked_fill_(hidden, 0.0).square_().sum(-1)
        return cls(count, mean, squares, least, greatest)

    @property
    def variance(self) -> Tensor:
        """``Σ (x − mean)² / count``; NaN without values."""
        return torch.where(self.count > 0, self.squares / self.count.clamp(min=1), torch.nan)

    def merge(self, other: Moments) -> None:
        """Add the values of another."""
        count = self.count + other.count
        share = other.count.double() / count.clamp(min=1)
        gap = other.mean - self.mean
        self.squares += other.squares + gap.square() * self.count * share
        self.mean += gap * share
        self.count = count
        self.least = torch.minimum(self.least, other.least)
        self.greatest = torch.maximum(self.greatest, other.greatest)

    def shared(self, processes: Processes) -> Moments:
        """Of the values of all processes, by all-reduce; the formula above for any number of sides."""
        count = processes.total(self.count)
        mean = processes.total(self.mean * self.count) / count.clamp(min=1)
        squares = processes.total(self.squares + self.count * (self.mean - mean).square())
        return Moments(count, mean, squares, processes.least(self.least), -processes.least(-self.greatest))

    def tensors(self) -> dict[str, Tensor]:
        """Everything by name."""
        return dict(vars(self))
