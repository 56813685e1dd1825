"""A tensor that grows along its rows: what generation appends, step by step, is copied once."""

from __future__ import annotations

import torch
from torch import Tensor


class Buffer:
    """Rows appended along one axis, with room that doubles, so that n steps copy O(n) and not O(n²).

    >>> buffer = Buffer(torch.zeros(1, 2, 3), axis=1)
    >>> buffer.append(torch.ones(1, 1, 3))
    >>> buffer.rows[0, :, 0]
    tensor([0., 0., 1.])
    """

    def __init__(self, rows: Tensor, *, axis: int) -> None:
        self._axis = axis
        # A copy of its own: models are free to reuse their memory, and a view would keep more alive.
        self._room = rows.detach().clone(memory_format=torch.contiguous_format)
        self._length = rows.shape[axis]

    @property
    def rows(self) -> Tensor:
        """All rows so far, as a view."""
        return self._room.narrow(self._axis, 0, self._length)

    def append(self, rows: Tensor) -> None:
        """Put rows behind the others."""
        needed = self._length + rows.shape[self._axis]
        if needed > self._room.shape[self._axis]:
            shape = list(self._room.shape)
            shape[self._axis] = max(needed, 2 * self._length)
            larger = self._room.new_empty(shape)
            larger.narrow(self._axis, 0, self._length).copy_(self.rows)
            self._room = larger
        self._room.narrow(self._axis, self._length, rows.shape[self._axis]).copy_(rows.detach())
        self._length = needed

    def finish(self) -> Tensor:
        """All rows, without the room for more."""
        if self._length < self._room.shape[self._axis]:
            self._room = self.rows.clone(memory_format=torch.contiguous_format)
        return self._room
