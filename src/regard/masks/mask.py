"""The mask: an immutable value that says which keys each query may see.

A mask is a predicate over absolute positions, and masks form a small algebra.
A mask answers two questions:

* ``allows(pairs)``: may these queries see these keys?
* ``tiles(rows, columns)``: does this hold for *all*, *none* or *some* pairs of each rectangle?

The second is answered without evaluating the pairs, and the operators combine the answers by
Kleene's three-valued logic: with none < some < all, "and" is the minimum, "or" the maximum, and
"not" reverses the order. *Some* is always a safe answer; *all* and *none* are guarantees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from regard.checks import check_integer
from regard.errors import MaskError
from regard.masks.extent import MAX_LENGTH, Array, Bools, Extent, Integers, Pairs, TiledAxis
from regard.masks.id_table import as_table, causal_bias, is_causal_bias, is_tensor

if TYPE_CHECKING:
    import torch
    from torch.nn.attention.flex_attention import BlockMask

NONE, SOME, ALL = 0, 1, 2
Verdicts = NDArray[np.uint8]
"""One of NONE, SOME, ALL for each tile."""


def verdicts(everywhere: Array, nowhere: Array) -> Verdicts:
    """ALL where ``everywhere`` holds, NONE where ``nowhere`` holds, SOME elsewhere."""
    return np.where(everywhere, ALL, np.where(nowhere, NONE, SOME)).astype(np.uint8)


class Mask(ABC):
    """Which keys each query may see; True means *may attend*.

    >>> from regard import masks
    >>> m = masks.causal() & masks.window(2, 0) | masks.prefix(1)
    >>> m
    causal() & window(2, 0) | prefix(1)
    >>> m.dense(4).int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    >>> masks.parse(repr(m)) == m
    True
    """

    # So that `array & mask` calls `__rand__` instead of broadcasting over the array's elements.
    __array_ufunc__ = None

    def __getstate__(self) -> dict[str, Any]:
        # Hashes differ between processes, so they are not pickled.
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    # ---- what each kind of mask defines -------------------------------------------------------

    @property
    def lead(self) -> tuple[int, ...]:
        """The shape of the leading axes ``(..., batch, head)`` along which the mask differs."""
        return ()

    @abstractmethod
    def allows(self, pairs: Pairs) -> Array:
        """Whether each pair may attend; broadcasts to the shape of the pairs."""

    @abstractmethod
    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        """ALL, NONE or SOME for every tile (rows × columns). The mask must have no ``lead``."""

    def select(self, index: tuple[int, ...]) -> Mask:
        """The mask of one element of the leading axes; the result has no ``lead``."""
        del index
        return self

    def check(self, extent: Extent) -> None:  # noqa: B027 - most masks fit any length
        """Raise if the mask does not fit this number of queries and keys."""

    def table_lengths(self) -> tuple[int, ...]:
        """The number of positions that the tables of this pattern cover, if it has any."""
        return ()

    @cached_property
    def entries(self) -> int:
        """The number of entries in all tables of this mask."""
        lengths = self.table_lengths()
        return prod(self.lead) * prod(lengths) if lengths else 0

    def substitute(self, known: Mapping[Mask, bool]) -> Mask:
        """The mask with some of its parts replaced by their known values, simplified."""
        return Constant(known[self]) if self in known else self

    def patterns(self) -> Iterator[Mask]:
        """The patterns from which this mask is built, left to right."""
        yield self

    @property
    def shifts(self) -> bool:
        """Whether only the distance between query and key matters."""
        return False

    def tile_key(self, q: Integers, k: Integers) -> Hashable | None:
        """Equal for two tiles only if the mask is equal in them; None if that is not known."""
        del q, k
        return None

    @property
    def T(self) -> Mask:  # noqa: N802 - the name arrays use
        """The mask with queries and keys exchanged."""
        raise MaskError(
            "Only masks built from patterns can be transposed.",
            got="{this!r}",
            do="Transpose its table: masks.dense(m.dense(queries, keys).mT).",
            this=self,
        )

    # ---- the algebra ---------------------------------------------------------------------------

    def __and__(self, other: MaskLike) -> Mask:
        return Both.of(self, as_mask(other))

    def __rand__(self, other: MaskLike) -> Mask:
        return Both.of(as_mask(other), self)

    def __or__(self, other: MaskLike) -> Mask:
        return Either.of(self, as_mask(other))

    def __ror__(self, other: MaskLike) -> Mask:
        return Either.of(as_mask(other), self)

    def __invert__(self) -> Mask:
        return Not(self)

    def __bool__(self) -> bool:
        raise MaskError(
            "A mask must not be used as a single truth value.",
            got="{this!r} in a condition",
            do="Use & | ~ instead of and, or, not.",
            this=self,
        )

    # ---- conversions ---------------------------------------------------------------------------

    def evaluate(self, extent: Extent, q: Integers | None = None, k: Integers | None = None) -> Bools:
        """The predicate at every pair of the given positions (by default all of them), in NumPy.

        Axes along which the mask does not differ keep size 1, so that the result broadcasts.
        """
        self.check(extent)
        q = extent.query_positions() if q is None else q
        k = extent.key_positions() if k is None else k
        # 32 bits hold any position, and comparing them is twice as fast as 64.
        pairs = Pairs.grid(extent, q.astype(np.int32), k.astype(np.int32), self.lead)
        return np.asarray(self.allows(pairs))

    def dense(self, queries: int, keys: int | None = None, *, device: Any = None) -> torch.Tensor:
        """The mask as a bool tensor ``(..., queries, keys)``: n×n, for inspection and tests.

        >>> from regard import masks
        >>> masks.window(1, 0).dense(3).int().tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
        """
        import torch

        extent = extent_of(queries, keys)
        full = np.broadcast_to(self.evaluate(extent), (*self.lead, *extent))
        return torch.from_numpy(full.copy()).to(device)

    def mask_mod(
        self, queries: int | None = None, keys: int | None = None, *, device: Any = None
    ) -> Callable[[Any, Any, Any, Any], torch.Tensor]:
        """The predicate ``(batch, head, query, key)`` for FlexAttention.

        Pass the lengths if they differ or if a table must be aligned. Without them, there are as many
        queries as keys.
        """
        from regard.masks.block_mask import mask_mod

        return mask_mod(self, queries, keys, device=device)

    def block_mask(
        self, queries: int, keys: int | None = None, *, device: Any = None, block_size: int = 128
    ) -> BlockMask:
        """The mask for FlexAttention, planned from tiles; nothing n×n is built."""
        from regard.masks.block_mask import block_mask

        return block_mask(self, extent_of(queries, keys), device=device, block_size=block_size)


def extent_of(queries: int, keys: int | None, *, limit: int | None = MAX_LENGTH) -> Extent:
    """The checked lengths, at most ``limit`` each; as many keys as queries by default."""
    keys = queries if keys is None else keys
    for name, length in (("queries", queries), ("keys", keys)):
        check_integer(name, length, least=0, most=limit)
    return Extent(int(queries), int(keys))


@dataclass(frozen=True, repr=False)
class Constant(Mask):
    """Every query sees every key, or no query sees any key."""

    value: bool

    def __repr__(self) -> str:
        return "everything()" if self.value else "nothing()"

    def allows(self, pairs: Pairs) -> Array:
        # Computed from the positions, so that it has their array type and shape.
        here = (pairs.q == pairs.q) & (pairs.k == pairs.k)
        return here if self.value else ~here

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        del extent
        return np.full((len(rows), len(columns)), ALL if self.value else NONE, np.uint8)

    def __invert__(self) -> Mask:
        return Constant(not self.value)

    @property
    def shifts(self) -> bool:
        return True

    @property
    def T(self) -> Mask:  # noqa: N802
        return self


class Combined(Mask):
    """Several masks combined by one operator. There are at least two ``parts``, none of this same class."""

    parts: tuple[Mask, ...]
    sign: str
    neutral: bool
    """The identity of the operator."""

    @cached_property
    def _hash(self) -> int:
        return hash((self.sign, self.parts))

    def __repr__(self) -> str:
        return f" {self.sign} ".join(_in_brackets(part, self) for part in self.parts)

    @property
    def lead(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(part.lead for part in self.parts))

    @cached_property
    def entries(self) -> int:
        return sum(part.entries for part in self.parts)

    def check(self, extent: Extent) -> None:
        for part in self.parts:
            part.check(extent)

    def patterns(self) -> Iterator[Mask]:
        for part in self.parts:
            yield from part.patterns()

    @property
    def shifts(self) -> bool:
        return all(part.shifts for part in self.parts)

    @classmethod
    def of(cls, *parts: Mask) -> Mask:
        """The parts combined and simplified."""
        combiner = MaskCombiner(cls)
        for part in parts:
            combiner.add(part)
        return combiner.mask()

    def select(self, index: tuple[int, ...]) -> Mask:
        return self.of(*(part.select(index) for part in self.parts))

    def substitute(self, known: Mapping[Mask, bool]) -> Mask:
        return self.of(*(part.substitute(known) for part in self.parts))

    @property
    def T(self) -> Mask:  # noqa: N802
        return self.of(*(part.T for part in self.parts))


def _in_brackets(part: Mask, around: Mask) -> str:
    """``part`` as text, in brackets if precedence requires them."""
    loose = isinstance(part, Either) and isinstance(around, Both)
    return f"({part!r})" if loose else repr(part)


class MaskCombiner:
    """Combines masks by one operator, one at a time, in linear time.

    Nested masks are flattened, constants are resolved and repeated masks are dropped.

    >>> from regard import masks
    >>> combiner = MaskCombiner(Both)
    >>> for part in (masks.causal(), masks.everything(), masks.prefix(2), masks.causal()):
    ...     combiner.add(part)
    >>> combiner.mask()
    causal() & prefix(2)
    """

    def __init__(self, kind: type[Combined]) -> None:
        self._kind = kind
        self._parts: dict[Mask, None] = {}
        self._lead: tuple[int, ...] = ()
        self._decided = False  # one part already determines the result

    def add(self, mask: Mask) -> None:
        """Combine with one more mask."""
        for part in mask.parts if isinstance(mask, self._kind) else (mask,):
            if isinstance(part, Constant):
                self._decided |= part.value is not self._kind.neutral
            elif not self._decided:
                self._check_lead(part)
                self._parts[part] = None

    def _check_lead(self, part: Mask) -> None:
        lead = part.lead
        if lead == self._lead:
            return
        try:
            self._lead = np.broadcast_shapes(self._lead, lead)
        except ValueError:
            raise MaskError(
                "Masks that are combined must have leading axes that broadcast.",
                got="{lead} and {other}",
                do="Give the tables the same leading shape, or size 1 where they do not vary.",
                lead=self._lead,
                other=lead,
            ) from None

    def mask(self) -> Mask:
        """The combination of the masks so far."""
        if self._decided:
            return Constant(not self._kind.neutral)
        if len(self._parts) < 2:
            return next(iter(self._parts), Constant(self._kind.neutral))
        return self._kind(tuple(self._parts))  # type: ignore[call-arg]


@dataclass(frozen=True, repr=False)
class Both(Combined):
    """All parts must allow a pair."""

    parts: tuple[Mask, ...]
    sign = "&"
    neutral = True

    def __hash__(self) -> int:
        return self._hash

    def allows(self, pairs: Pairs) -> Array:
        return reduce(lambda a, b: a & b, (part.allows(pairs) for part in self.parts))

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        return reduce(np.minimum, (part.tiles(rows, columns, extent) for part in self.parts))


@dataclass(frozen=True, repr=False)
class Either(Combined):
    """At least one part must allow a pair."""

    parts: tuple[Mask, ...]
    sign = "|"
    neutral = False

    def __hash__(self) -> int:
        return self._hash

    def allows(self, pairs: Pairs) -> Array:
        return reduce(lambda a, b: a | b, (part.allows(pairs) for part in self.parts))

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        return reduce(np.maximum, (part.tiles(rows, columns, extent) for part in self.parts))


@dataclass(frozen=True, repr=False)
class Not(Mask):
    """Allows exactly the pairs that ``part`` does not."""

    part: Mask

    @cached_property
    def _hash(self) -> int:
        return hash(("~", self.part))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"~({self.part!r})" if isinstance(self.part, Combined) else f"~{self.part!r}"

    @property
    def lead(self) -> tuple[int, ...]:
        return self.part.lead

    def allows(self, pairs: Pairs) -> Array:
        return ~self.part.allows(pairs)

    def tiles(self, rows: TiledAxis, columns: TiledAxis, extent: Extent) -> Verdicts:
        turned: Verdicts = np.uint8(ALL) - self.part.tiles(rows, columns, extent)
        return turned

    def select(self, index: tuple[int, ...]) -> Mask:
        return ~self.part.select(index)

    @cached_property
    def entries(self) -> int:
        return self.part.entries

    def check(self, extent: Extent) -> None:
        self.part.check(extent)

    def substitute(self, known: Mapping[Mask, bool]) -> Mask:
        return ~self.part.substitute(known)

    def patterns(self) -> Iterator[Mask]:
        yield from self.part.patterns()

    @property
    def shifts(self) -> bool:
        return self.part.shifts

    def __invert__(self) -> Mask:
        return self.part

    @property
    def T(self) -> Mask:  # noqa: N802
        return ~self.part.T


MaskLike: TypeAlias = Union[Mask, "torch.Tensor", NDArray[Any]]
"""What is accepted as a mask: a mask, a bool tensor (True = may attend), or an additive one of 0 and −inf."""


def as_mask(given: MaskLike, extent: Extent | None = None) -> Mask:
    """A mask from a mask, a bool tensor, an additive tensor of 0 and −inf, or a causal bias of torch.

    ``extent`` is the size that the mask is for, if known; a causal bias only fits its own sizes.

    >>> import torch
    >>> as_mask(torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])).dense(2).tolist()
    [[True, False], [True, True]]
    """
    from regard.masks.pair_patterns import Dense
    from regard.masks.patterns import causal, upper_left_causal

    if isinstance(given, Mask):
        return given
    if is_causal_bias(given):
        lower_right, own = causal_bias(given)
        if extent is not None and own != extent:
            raise MaskError(
                "A causal bias of torch only fits its own sizes (queries = {queries}, keys = {keys}).",
                got="queries = {extent_queries}, keys = {extent_keys}",
                do="Pass masks.causal(), which fits any sizes.",
                queries=own.queries,
                keys=own.keys,
                extent_queries=extent.queries,
                extent_keys=extent.keys,
            )
        return causal() if lower_right else upper_left_causal(*own)
    if is_tensor(given):
        return Dense(as_table(given))
    raise MaskError(
        "A mask must be a regard mask, a bool tensor (True = may attend) or an additive float tensor.",
        got="{type}",
        do="Build one with regard.masks, or parse a text with masks.parse(...).",
        type=type(given).__name__,
    )
