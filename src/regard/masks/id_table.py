"""Tables: the arrays that some masks carry, frozen so that a mask stays a value."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import DtypeError, MaskError
from regard.masks.extent import Array, Extent


class IdTable:
    """An array that cannot change, with equality and hash by content."""

    def __init__(self, values: NDArray[Any]) -> None:
        frozen = np.array(values, copy=True, order="C")
        frozen.flags.writeable = False
        self.values = frozen

    @cached_property
    def _hash(self) -> int:
        return hash((self.values.shape, self.values.dtype.str, self.values.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        # Hashes are of one process; a copy in another must find its own.
        return {"values": self.values}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdTable) and (
            self is other
            or (self.values.dtype == other.values.dtype and np.array_equal(self.values, other.values))
        )

    def at(self, index: tuple[int, ...], own_axes: int) -> IdTable:
        """The table of one element of its leading axes; ``own_axes`` axes are left."""
        lead_axes = self.values.ndim - own_axes
        which = index[len(index) - lead_axes :]
        chosen = tuple(0 if size == 1 else i for i, size in zip(which, self.values.shape))
        return IdTable(self.values[chosen])


def is_tensor(given: object) -> bool:
    """Whether this is a torch tensor or a NumPy array, asked without importing torch."""
    return isinstance(given, np.ndarray) or _is_torch_tensor(given)


def _is_torch_tensor(given: object) -> bool:
    return any(kind.__module__ == "torch" and kind.__name__ == "Tensor" for kind in type(given).__mro__)


def is_causal_bias(given: object) -> bool:
    """Whether this comes from torch.nn.attention.bias: a tensor that holds nothing, and sizes beside it."""
    kinds = type(given).__mro__
    return any(kind.__name__ == "CausalBias" and kind.__module__.startswith("torch.") for kind in kinds)


def causal_bias(given: Any) -> tuple[bool, Extent]:
    """Whether such a bias ends at the lower right (otherwise it begins at the upper left), and its sizes."""
    return given.variant.name == "LOWER_RIGHT", Extent(given.seq_len_q, given.seq_len_kv)


def as_array(given: object) -> NDArray[Any]:
    """A tensor, array or nested list as a NumPy array."""
    if is_causal_bias(given):
        lower_right, (queries, keys) = causal_bias(given)
        return np.tri(queries, keys, keys - queries if lower_right else 0, dtype=np.bool_)
    if _is_torch_tensor(given):
        tensor: Any = given
        tensor = tensor.detach().cpu()
        # NumPy has no bfloat16; float32 holds each of its values exactly.
        return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
    try:
        return np.asarray(given)
    except ValueError:
        raise MaskError(
            "A table has rows of one length.",
            got="rows of different lengths",
            do="Pad the rows, or pass lengths=.",
        ) from None


def lowest(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where an additive mask forbids: −inf, or as good as the lowest number of its type.

    Hugging Face writes the lowest finite number in place of −inf; it means the same. The factor
    lets the lowest bfloat16 count after it was widened to float32.
    """
    return np.asarray(values <= 0.99 * np.finfo(values.dtype).min)


def as_table(given: object) -> IdTable:
    """A table of truth values from bools, 0/1 integers, or an additive mask of 0 and −inf."""
    values = as_array(given)
    if values.dtype == np.bool_:
        return IdTable(values)
    if values.dtype.kind in "iu" and np.isin(values, (0, 1)).all():
        return IdTable(values.astype(np.bool_))
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise MaskError("A mask has no NaN.", got="NaN in an additive mask", do="Write 0 or −inf.")
        forbidden = lowest(values)
        if (forbidden | (values == 0)).all():
            return IdTable(~forbidden)
        raise MaskError(
            "An additive mask used as a mask holds only 0 (may attend) and −inf (may not).",
            got="other finite values",
            do="Pass it as bias= instead.",
        )
    raise DtypeError(
        "A mask table holds bools, 0 and 1, or 0 and −inf.",
        got=str(values.dtype),
        do="Convert it with .bool().",
    )


def aligned(positions: Array, table: IdTable, extent: Extent) -> Array:
    """Where in the table a position stands: the last entry belongs to the last position.

    So one table serves a whole sequence, and the queries at the end of a cache find their own.
    """
    return positions + (table.values.shape[-1] - extent.keys)


def with_head(table: IdTable, *, own_axes: int) -> IdTable:
    """A table with leading axes (..., batch) gets a head axis of size 1 behind them."""
    values = table.values
    axis = values.ndim - own_axes
    return IdTable(np.expand_dims(values, axis)) if axis else table


def without_head(values: NDArray[Any]) -> NDArray[Any]:
    """The inverse of ``with_head`` for tables with one axis of their own: what the user wrote."""
    return values[..., 0, :] if values.ndim > 1 else values
