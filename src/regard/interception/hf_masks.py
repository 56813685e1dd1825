"""The mask functions of Hugging Face as regard masks, so that no model builds its mask as n×n.

transformers describes a mask by a function of (batch, head, query, key) index, composed of a
few known ones, and a 2-D padding mask. The known ones become regard masks; any other function is
evaluated tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import MaskError
from regard.interception.steps import MaskView
from regard.masks import Mask, causal, documents, everything, padding, window
from regard.masks.extent import Array, Extent, Pairs, TiledAxis
from regard.masks.mask import SOME, Both, Constant, Either, Verdicts
from regard.masks.patterns import OneAxis

MaskFunction = Callable[..., Any]


class UnknownMaskFunction(Exception):  # noqa: N818 - it never leaves this file
    """Not one of the mask functions that regard knows."""


@dataclass(frozen=True, eq=False)
class TransformersMask:
    """A mask function of transformers, with the span of the text that it is for.

    Queries are at ``past … past + queries − 1`` and keys at ``first_key … first_key + keys − 1``.
    For a model that computes with its mask it behaves like the tensor it represents.
    """

    function: MaskFunction
    keep: Tensor | None  # (batch, position), False at padding
    batch: int
    queries: int
    keys: int
    past: int
    first_key: int
    one_by_one: bool  # whether the function takes single indices only
    make_tensor: Callable[[], Tensor | None] = field(repr=False)
    # The last answer of ``after``: the view before it (weakly, or each would hold all before it), the
    # length, and whether this view continues where that one ended.
    _goes_on: list[tuple[ReferenceType[MaskView], int, bool]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def causal(self) -> bool:
        """Whether the function never lets a query see a later key."""
        return _is_causal(self.function, strictly=True)

    @property
    def of_decoder(self) -> bool:
        """Whether it looks back, perhaps with exceptions such as a prefix or an image read at once."""
        return _is_causal(self.function, strictly=False)

    def over(self, first: int, stop: int) -> Mask:
        """The mask whose key 0 is at ``first`` and whose last query and key are at ``stop − 1``."""
        kept = self._padding(first, stop)
        try:
            return translated(self.function, first, stop) & kept
        except UnknownMaskFunction:
            return FunctionMask(self.function, self.batch, first, first, self.one_by_one) & kept

    @cached_property
    def whole(self) -> Mask:
        """The mask over these keys, if the last query is at the last of them."""
        return self.over(self.first_key, self.first_key + self.keys)

    @property
    def aligned(self) -> bool:
        """Whether the last query is at the last key, as regard assumes, or it does not matter."""
        same = self.past + self.queries == self.first_key + self.keys
        return same or all(_ignores_queries(part) for part in self.whole.patterns())

    def here(self) -> Mask:
        """The mask of exactly these queries and keys."""
        if self.aligned:
            return self.whole
        shift = self.past + self.queries - self.keys
        asked = FunctionMask(self.function, self.batch, shift, self.first_key, self.one_by_one)
        return asked & self._padding(self.first_key, self.first_key + self.keys)

    def _padding(self, first: int, stop: int) -> Mask:
        if self.keep is None:
            return everything()
        kept = _stretch(self.keep, first, stop, fill=False)
        return everything() if bool(kept.all()) else padding(kept)

    def after(self, before: MaskView, length: int) -> MaskView | None:
        """This view, if it agrees with the view before it on the first positions."""
        # All layers of a pass share their view, so the answer for the first serves the others.
        for view, known, goes_on in self._goes_on:
            if view() is before and known == length:
                return self if goes_on else None
        goes_on = self._repeats(before, length)
        self._goes_on[:] = [(ref(before), length, goes_on)]
        return self if goes_on else None

    def _repeats(self, before: MaskView, length: int) -> bool:
        if not isinstance(before, TransformersMask) or not self.causal or not before.causal:
            return False
        bare = [replace(view, keep=None).over(0, length) for view in (before, self)]
        return bare[0] == bare[1] and before._padding(0, length) == self._padding(0, length)

    # ---- as a tensor ---------------------------------------------------------------------------

    def dense(self) -> Tensor | None:
        """The tensor that the model would have got without regard."""
        return self.make_tensor()

    ndim = 4

    @property
    def shape(self) -> torch.Size:
        """The shape of the tensor that this represents."""
        return torch.Size((self.batch, 1, self.queries, self.keys))

    def contiguous(self) -> TransformersMask:
        """Itself: generation with a static cache prepares its masks before the model is called."""
        return self

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """A model that computes with its mask gets the tensor, and pays for it."""
        del types
        return func(*_as_tensors(args), **_as_tensors(kwargs or {}))

    def __getitem__(self, index: Any) -> Any:
        return self._tensor()[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._tensor(), name)

    def __add__(self, other: Any) -> Any:
        return self._tensor() + other

    __radd__ = __add__

    def _tensor(self) -> Tensor:
        found = self.dense()
        return (
            torch.ones(self.batch, 1, self.queries, self.keys, dtype=torch.bool) if found is None else found
        )


def _as_tensors(given: Any) -> Any:
    """Arguments of a function, with a tensor in place of every lazy mask."""
    if isinstance(given, TransformersMask):
        return given._tensor()
    if isinstance(given, list | tuple):
        return type(given)(_as_tensors(one) for one in given)
    return {key: _as_tensors(one) for key, one in given.items()} if isinstance(given, dict) else given


def _stretch(table: Tensor, first: int, stop: int, *, fill: Any) -> Tensor:
    """Columns ``first … stop − 1`` of a table; those it does not have are filled."""
    columns = table[:, first:stop]
    return F.pad(columns, (0, stop - first - columns.shape[1]), value=fill)


def _ignores_queries(part: Mask) -> bool:
    return isinstance(part, Constant) or (isinstance(part, OneAxis) and not part.transposed)


# ---- the known functions ---------------------------------------------------------------------


def _parts(function: MaskFunction) -> tuple[str, dict[str, Any]]:
    """Which function of transformers made this one, and with which values."""
    if getattr(function, "__module__", "") != "transformers.masking_utils":
        raise UnknownMaskFunction
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    return function.__qualname__.partition(".")[0], {name: cell.cell_contents for name, cell in cells}


def _is_causal(function: MaskFunction, *, strictly: bool) -> bool:
    try:
        maker, values = _parts(function)
    except UnknownMaskFunction:
        return False
    if maker == "and_masks" or (maker == "or_masks" and not strictly):
        return any(_is_causal(part, strictly=strictly) for part in values["mask_functions"])
    return maker == "causal_mask_function"


def translated(function: MaskFunction, first: int, stop: int) -> Mask:
    """A known mask function over the keys ``first … stop − 1``."""
    maker, values = _parts(function)
    if maker in ("and_masks", "or_masks"):
        parts = [translated(part, first, stop) for part in values["mask_functions"]]
        return Both.of(*parts) if maker == "and_masks" else Either.of(*parts)
    if maker not in KNOWN:
        raise UnknownMaskFunction
    return KNOWN[maker](values, first, stop)


def _chunks(values: dict[str, Any], first: int, stop: int) -> Mask:
    positions = torch.arange(first, stop, device=values["left_padding"].device)
    return documents((positions - values["left_padding"][:, None]) // values["chunk_size"])


def _blocks(values: dict[str, Any], first: int, stop: int) -> Mask:
    ids = _stretch(values["block_sequence_ids"], first, stop, fill=-1)
    return documents(ids) & padding(ids >= 0)


KNOWN: dict[str, Callable[[dict[str, Any], int, int], Mask]] = {
    "causal_mask_function": lambda values, first, stop: causal(),
    "bidirectional_mask_function": lambda values, first, stop: everything(),
    # transformers counts the query itself: a window of w sees w − 1 keys before it.
    "sliding_window_overlay": lambda values, first, stop: window(values["sliding_window"] - 1, None),
    "sliding_window_bidirectional_overlay": lambda values, first, stop: window(
        values["sliding_window"], values["sliding_window"]
    ),
    "chunked_overlay": _chunks,
    "blockwise_overlay": _blocks,
    "packed_sequence_mask_function": lambda values, first, stop: documents(
        _stretch(values["packed_sequence_mask"], first, stop, fill=-1)
    ),
    "padding_mask_function": lambda values, first, stop: padding(
        _stretch(values["padding_mask"].bool(), first, stop, fill=False)
    ),
}


# ---- any other function ----------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class FunctionMask(Mask):
    """A function of (batch, head, query, key) index, evaluated at the pairs of a tile when needed."""

    function: MaskFunction
    batch: int
    query_shift: int  # from positions here to those the function knows
    key_shift: int
    one_by_one: bool
    chosen: int | None = None  # one element of the batch

    def __repr__(self) -> str:
        return f"function({getattr(self.function, '__qualname__', self.function)})"

    @property
    def lead(self) -> tuple[int, ...]:
        return () if self.chosen is not None else (self.batch, 1)

    def select(self, index: tuple[int, ...]) -> Mask:
        return (
            self if self.chosen is not None else replace(self, chosen=int(index[-2]) if self.batch > 1 else 0)
        )

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        # Nothing is known without evaluating every pair, and "some" is always safe.
        del extent
        return np.full((len(rows), len(columns)), SOME, np.uint8)

    def allows(self, pairs: Pairs) -> Array:
        q, k = np.asarray(pairs.q), np.asarray(pairs.k)
        if q.ndim == k.ndim == 1 and self.chosen is not None:
            return self._pair_by_pair(q, k)
        if q.shape[-1] != 1 or k.ndim < 2 or k.shape[-2] != 1:
            raise MaskError(
                "A mask function must be called with rows and columns.",
                got="{shape} and {k_shape}",
                shape=q.shape,
                k_shape=k.shape,
            )
        batch = np.array([self.chosen]) if self.chosen is not None else np.arange(self.batch)
        index = [
            torch.from_numpy(np.ascontiguousarray(x).astype(np.int64))
            for x in (batch, np.zeros(1), q.ravel() + self.query_shift, k.ravel() + self.key_shift)
        ]
        found = _asked(self.function, index, self.one_by_one).numpy()
        return found[0, 0] if self.chosen is not None else found

    def _pair_by_pair(self, q: Array, k: Array) -> Array:
        """The function at single pairs of one element of the batch: each pair is a row with one key."""
        function = self.function
        index = [
            torch.from_numpy(np.broadcast_to(np.asarray(x), q.shape).astype(np.int64))
            for x in (self.chosen, 0, q + self.query_shift, k + self.key_shift)
        ]
        if self.one_by_one:
            return _vmapped(torch.vmap(function), index).cpu().numpy()
        return torch.as_tensor(function(*index)).expand(q.shape).cpu().numpy()


def _asked(function: MaskFunction, index: list[Tensor], one_by_one: bool) -> Tensor:
    """The function at every combination of the four indices."""
    shape = tuple(len(axis) for axis in index)
    if one_by_one:
        for axis in (3, 2, 1, 0):
            function = torch.vmap(function, in_dims=tuple(0 if i == axis else None for i in range(4)))
        found = _vmapped(function, index)
    else:
        found = function(
            *(x.reshape([-1 if i == axis else 1 for i in range(4)]) for axis, x in enumerate(index))
        )
    return torch.as_tensor(found).expand(shape).cpu()


def _vmapped(function: MaskFunction, index: list[Tensor]) -> Tensor:
    """The result of a function under vmap, which otherwise cannot look up a table at an index."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    with TransformGetItemToIndex():
        return torch.as_tensor(function(*index))
