"""A growing tensor, so that appending the rows of generation step by step stays cheap."""

from __future__ import annotations

import torch
from torch import Tensor


class Buffer:
    """Rows appended along one axis; the capacity doubles, so that n steps copy O(n) and not O(n²).

    >>> buffer = Buffer(torch.zeros(1, 2, 3), axis=1)
    >>> buffer.append(torch.ones(1, 1, 3))
    >>> buffer.rows[0, :, 0]
    tensor([0., 0., 1.])
    """

    def __init__(self, rows: Tensor, *, axis: int) -> None:
        self._axis = axis
        # A copy, because models may reuse their memory and a view would keep more alive.
        self._storage = rows.detach().clone(memory_format=torch.contiguous_format)
        self._length = rows.shape[axis]

    @property
    def rows(self) -> Tensor:
        """All rows so far, as a view."""
        return self._storage.narrow(self._axis, 0, self._length)

    def append(self, rows: Tensor) -> None:
        """Append rows."""
        needed = self._length + rows.shape[self._axis]
        if needed > self._storage.shape[self._axis]:
            shape = list(self._storage.shape)
            shape[self._axis] = max(needed, 2 * self._length)
            larger = self._storage.new_empty(shape)
            larger.narrow(self._axis, 0, self._length).copy_(self.rows)
            self._storage = larger
        self._storage.narrow(self._axis, self._length, rows.shape[self._axis]).copy_(rows.detach())
        self._length = needed

    def finish(self) -> Tensor:
        """All rows, without spare capacity."""
        if self._length < self._storage.shape[self._axis]:
            self._storage = self.rows.clone(memory_format=torch.contiguous_format)
        return self._storage
