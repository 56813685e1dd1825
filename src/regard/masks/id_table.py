"""Tables: the arrays in some masks, frozen so that a mask stays an immutable value."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import DtypeError, MaskError
from regard.masks.extent import Array, Extent


class IdTable:
    """A read-only array of ids, lengths or bools, compared and hashed by content."""

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
        # Hashes differ between processes, so they are not pickled.
        return {"values": self.values}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdTable) and (
            self is other
            or (self.values.dtype == other.values.dtype and np.array_equal(self.values, other.values))
        )

    def at(self, index: tuple[int, ...], own_axes: int) -> IdTable:
        """The table of one element of its leading axes; the last ``own_axes`` axes remain."""
        lead_axes = self.values.ndim - own_axes
        which = index[len(index) - lead_axes :]
        chosen = tuple(0 if size == 1 else i for i, size in zip(which, self.values.shape))
        return IdTable(self.values[chosen])


def is_tensor(given: object) -> bool:
    """Whether this is a torch tensor or a NumPy array; does not import torch."""
    return isinstance(given, np.ndarray) or _is_torch_tensor(given)


def _is_torch_tensor(given: object) -> bool:
    return any(kind.__module__ == "torch" and kind.__name__ == "Tensor" for kind in type(given).__mro__)


def is_causal_bias(given: object) -> bool:
    """Whether this is a ``CausalBias`` of torch.nn.attention.bias: an empty tensor with two sizes."""
    kinds = type(given).__mro__
    return any(kind.__name__ == "CausalBias" and kind.__module__.startswith("torch.") for kind in kinds)


def causal_bias(given: Any) -> tuple[bool, Extent]:
    """Whether such a bias is aligned to the lower right (otherwise to the upper left), and its sizes."""
    return given.variant.name == "LOWER_RIGHT", Extent(given.seq_len_q, given.seq_len_kv)


def as_array(given: object) -> NDArray[Any]:
    """A tensor, array or nested list as a NumPy array."""
    if is_causal_bias(given):
        lower_right, (queries, keys) = causal_bias(given)
        return np.tri(queries, keys, keys - queries if lower_right else 0, dtype=np.bool_)
    if _is_torch_tensor(given):
        tensor: Any = given
        tensor = tensor.detach().cpu()
        # NumPy has no bfloat16; float32 represents its values exactly.
        return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
    try:
        return np.asarray(given)
    except ValueError:
        raise MaskError(
            "The rows of a table must have the same length.",
            got="rows of different lengths",
            do="Pad the rows, or pass lengths=.",
        ) from None


def lowest(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where an additive mask forbids: −inf, or nearly the lowest number of its dtype.

    Hugging Face uses the lowest finite number instead of −inf; it means the same. The factor
    includes the lowest bfloat16 after conversion to float32.
    """
    return np.asarray(values <= 0.99 * np.finfo(values.dtype).min)


def as_table(given: object) -> IdTable:
    """A table of bools from bools, 0/1 integers, or an additive mask of 0 and −inf."""
    values = as_array(given)
    if values.dtype == np.bool_:
        return IdTable(values)
    if values.dtype.kind in "iu" and np.isin(values, (0, 1)).all():
        return IdTable(values.astype(np.bool_))
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise MaskError(
                "A mask must not contain NaN.", got="NaN in an additive mask", do="Write 0 or −inf."
            )
        forbidden = lowest(values)
        if (forbidden | (values == 0)).all():
            return IdTable(~forbidden)
        raise MaskError(
            "An additive mask used as a mask must hold only 0 (may attend) and −inf (may not).",
            got="other finite values",
            do="Pass it as bias= instead.",
        )
    raise DtypeError(
        "A mask table must hold bools, 0 and 1, or 0 and −inf.",
        got="{dtype}",
        do="Convert it with .bool().",
        dtype=values.dtype,
    )


def aligned(positions: Array, table: IdTable, extent: Extent) -> Array:
    """The index of a position in the table: the last entry belongs to the last position.

    So one table works for a whole sequence and for the queries at the end of a cache.
    """
    return positions + (table.values.shape[-1] - extent.keys)


def with_head(table: IdTable, *, own_axes: int) -> IdTable:
    """Add a head axis of size 1 after the leading axes (..., batch) of a table."""
    values = table.values
    axis = values.ndim - own_axes
    return IdTable(np.expand_dims(values, axis)) if axis else table


def without_head(values: NDArray[Any]) -> NDArray[Any]:
    """The inverse of ``with_head`` for tables with one axis of their own: what the user wrote."""
    return values[..., 0, :] if values.ndim > 1 else values
