"""The mask: an immutable value that says who may look at whom.

A mask is a predicate over absolute positions, and a small algebra over such predicates.
It answers two questions:

* ``allows(pairs)``: may these queries see these keys?
* ``tiles(rows, columns)``: is that so for *all*, *none* or *some* pairs of each rectangle?

The second is answered without looking at the pairs, and the operators combine the answers by
Kleene's three-valued logic: with none < some < all, "and" is the minimum, "or" the maximum and
"not" turns the order around. *Some* is always a safe answer; *all* and *none* are promises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import ArgumentError, MaskError
from regard.masks.extent import MAX_LENGTH, Array, Bools, Extent, Integers, Pairs, Strip
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
    """Who may look at whom. ``True`` means: may attend.

    >>> from regard import masks
    >>> m = masks.causal() & masks.window(2, 0) | masks.prefix(1)
    >>> m
    causal() & window(2, 0) | prefix(1)
    >>> m.dense(4).int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    >>> masks.parse(repr(m)) == m
    True
    """

    # Lets `array & mask` reach `__rand__` instead of being spread over the array's elements.
    __array_ufunc__ = None

    def __getstate__(self) -> dict[str, Any]:
        # Hashes are of one process; a copy in another must find its own.
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    # ---- what each kind of mask answers -------------------------------------------------------

    @property
    def lead(self) -> tuple[int, ...]:
        """Shape of the leading axes ``(..., batch, head)`` that the mask differs over."""
        return ()

    @abstractmethod
    def allows(self, pairs: Pairs) -> Array:
        """Whether each pair may attend; broadcasts to the shape of the pairs."""

    @abstractmethod
    def tiles(self, rows: Strip, columns: Strip, extent: Extent) -> Verdicts:
        """ALL, NONE or SOME for every tile (rows × columns). The mask must have no ``lead``."""

    def select(self, index: tuple[int, ...]) -> Mask:
        """The mask of one element of the leading axes; it has no ``lead`` any more."""
        del index
        return self

    def check(self, extent: Extent) -> None:  # noqa: B027 - most masks fit any length
        """Raise if the mask cannot be asked about so many queries and keys."""

    def table_lengths(self) -> tuple[int, ...]:
        """How many positions the tables of this pattern cover, if it has any."""
        return ()

    def substitute(self, known: Mapping[Mask, bool]) -> Mask:
        """The mask with some of its parts replaced by what they are known to be, simplified."""
        return Constant(known[self]) if self in known else self

    def patterns(self) -> Iterator[Mask]:
        """The patterns this mask is built from, left to right."""
        yield self

    @property
    def shifts(self) -> bool:
        """Whether only the distance between query and key matters."""
        return False

    @property
    def T(self) -> Mask:  # noqa: N802 - the name arrays use
        """The mask with the roles of queries and keys exchanged."""
        raise MaskError(
            "Masks that are built from patterns can be transposed.",
            got=f"{self!r}",
            do="Transpose its table: masks.dense(m.dense(queries, keys).mT).",
        )

    # ---- the algebra ---------------------------------------------------------------------------

    def __and__(self, other: object) -> Mask:
        return Both.of(self, as_mask(other))

    def __rand__(self, other: object) -> Mask:
        return Both.of(as_mask(other), self)

    def __or__(self, other: object) -> Mask:
        return Either.of(self, as_mask(other))

    def __ror__(self, other: object) -> Mask:
        return Either.of(as_mask(other), self)

    def __invert__(self) -> Mask:
        return Not(self)

    def __bool__(self) -> bool:
        raise MaskError(
            "A mask is not true or false as a whole.",
            got=f"{self!r} in a condition",
            do="Use & | ~ instead of and, or, not.",
        )

    # ---- out -----------------------------------------------------------------------------------

    def evaluate(self, extent: Extent, q: Integers | None = None, k: Integers | None = None) -> Bools:
        """The predicate at every pair of the given positions (all of them unless told), in NumPy.

        Axes over which the mask does not differ keep size 1, so that the result broadcasts.
        """
        self.check(extent)
        q = extent.query_positions() if q is None else q
        k = extent.key_positions() if k is None else k
        # 32 bits hold any position and are compared twice as fast as 64.
        pairs = Pairs.grid(extent, q.astype(np.int32), k.astype(np.int32), self.lead)
        return np.asarray(self.allows(pairs))

    def dense(self, queries: int, keys: int | None = None, *, device: Any = None) -> torch.Tensor:
        """The mask as a bool tensor ``(..., queries, keys)``: n×n, for looking and comparing.

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

        Give the lengths where they differ or where a table must be aligned; without them as many
        queries as keys are meant.
        """
        from regard.masks.block_mask import mask_mod

        return mask_mod(self, queries, keys, device=device)

    def block_mask(
        self, queries: int, keys: int | None = None, *, device: Any = None, block_size: int = 128
    ) -> BlockMask:
        """The mask for FlexAttention, planned from tiles: nothing of n×n is built."""
        from regard.masks.block_mask import block_mask

        return block_mask(self, extent_of(queries, keys), device=device, block_size=block_size)


def extent_of(queries: int, keys: int | None, *, longest: int | None = MAX_LENGTH) -> Extent:
    """The lengths, checked; by default as many keys as queries, and no more than a mask has positions."""
    keys = queries if keys is None else keys
    for name, length in (("queries", queries), ("keys", keys)):
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 0:
            raise ArgumentError(
                f"The number of {name} is a whole number, 0 or more.",
                got=f"{name} = {length!r}",
                do="Pass a length.",
            )
        if longest is not None and length > longest:
            raise ArgumentError(
                f"The number of {name} is at most {longest:,}.", got=f"{name} = {length}", do="Pass fewer."
            )
    return Extent(int(queries), int(keys))


@dataclass(frozen=True, repr=False)
class Constant(Mask):
    """Everybody may look at everybody, or nobody at anybody."""

    value: bool

    def __repr__(self) -> str:
        return "everything()" if self.value else "nothing()"

    def allows(self, pairs: Pairs) -> Array:
        # Built from the positions, so that it is an array of their library and shape.
        here = (pairs.q == pairs.q) & (pairs.k == pairs.k)
        return here if self.value else ~here

    def tiles(self, rows: Strip, columns: Strip, extent: Extent) -> Verdicts:
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
    """Several masks joined by one operator. ``parts`` are at least two, none of the same kind."""

    parts: tuple[Mask, ...]
    sign: str
    neutral: bool
    """The constant that changes nothing."""

    @cached_property
    def _hash(self) -> int:
        return hash((self.sign, self.parts))

    def __repr__(self) -> str:
        return f" {self.sign} ".join(_in_brackets(part, self) for part in self.parts)

    @property
    def lead(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(part.lead for part in self.parts))

    def check(self, extent: Extent) -> None:
        for part in self.parts:
            part.check(extent)

    def patterns(self) -> Iterator[Mask]:
        for part in self.parts:
            yield from part.patterns()

    @property
    def shifts(self) -> bool:
        return all(part.shifts for part in self.parts)


def _in_brackets(part: Mask, around: Mask) -> str:
    """``part`` as text, in brackets where the operators would otherwise read differently."""
    loose = isinstance(part, Either) and isinstance(around, Both)
    return f"({part!r})" if loose else repr(part)


class MaskCombiner:
    """Masks joined by one operator, one after the other: nested ones flattened, constants resolved,
    repeats dropped. Takes a time in proportion to the number of parts.

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
        self._decided = False  # one part already says what the whole is

    def add(self, mask: Mask) -> None:
        """Join one more mask."""
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
                "Masks that are joined differ over the same batch and heads.",
                got=f"{self._lead} and {lead}",
                do="Give the tables one leading shape, or 1 where it does not matter.",
            ) from None

    def mask(self) -> Mask:
        """The masks so far as one."""
        if self._decided:
            return Constant(not self._kind.neutral)
        if len(self._parts) < 2:
            return next(iter(self._parts), Constant(self._kind.neutral))
        return self._kind(tuple(self._parts))  # type: ignore[call-arg]


def _joined(kind: type[Combined], parts: tuple[Mask, ...]) -> Mask:
    combiner = MaskCombiner(kind)
    for part in parts:
        combiner.add(part)
    return combiner.mask()


@dataclass(frozen=True, repr=False)
class Both(Combined):
    """All parts must allow a pair."""

    parts: tuple[Mask, ...]
    sign = "&"
    neutral = True

    @staticmethod
    def of(*parts: Mask) -> Mask:
        """The parts joined and simplified."""
        return _joined(Both, parts)

    def __hash__(self) -> int:
        return self._hash

    def allows(self, pairs: Pairs) -> Array:
        return reduce(lambda a, b: a & b, (part.allows(pairs) for part in self.parts))

    def tiles(self, rows: Strip, columns: Strip, extent: Extent) -> Verdicts:
        return reduce(np.minimum, (part.tiles(rows, columns, extent) for part in self.parts))

    def select(self, index: tuple[int, ...]) -> Mask:
        return Both.of(*(part.select(index) for part in self.parts))

    def substitute(self, known: Mapping[Mask, bool]) -> Mask:
        return Both.of(*(part.substitute(known) for part in self.parts))

    @property
    def T(self) -> Mask:  # noqa: N802
        return Both.of(*(part.T for part in self.parts))


@dataclass(frozen=True, repr=False)
class Either(Combined):
    """At least one part must allow a pair."""

    parts: tuple[Mask, ...]
    sign = "|"
    neutral = False

    @staticmethod
    def of(*parts: Mask) -> Mask:
        """The parts joined and simplified."""
        return _joined(Either, parts)

    def __hash__(self) -> int:
        return self._hash

    def allows(self, pairs: Pairs) -> Array:
        return reduce(lambda a, b: a | b, (part.allows(pairs) for part in self.parts))

    def tiles(self, rows: Strip, columns: Strip, extent: Extent) -> Verdicts:
        return reduce(np.maximum, (part.tiles(rows, columns, extent) for part in self.parts))

    def select(self, index: tuple[int, ...]) -> Mask:
        return Either.of(*(part.select(index) for part in self.parts))

    def substitute(self, known: Mapping[Mask, bool]) -> Mask:
        return Either.of(*(part.substitute(known) for part in self.parts))

    @property
    def T(self) -> Mask:  # noqa: N802
        return Either.of(*(part.T for part in self.parts))


@dataclass(frozen=True, repr=False)
class Not(Mask):
    """Exactly the pairs that the part does not allow."""

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

    def tiles(self, rows: Strip, columns: Strip, extent: Extent) -> Verdicts:
        turned: Verdicts = np.uint8(ALL) - self.part.tiles(rows, columns, extent)
        return turned

    def select(self, index: tuple[int, ...]) -> Mask:
        return ~self.part.select(index)

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


def as_mask(given: object, extent: Extent | None = None) -> Mask:
    """``given`` as a mask: a mask, a bool tensor, an additive tensor of 0 and −inf, a causal bias of torch.

    ``extent``, where it is known, is what the mask is for; a causal bias is for its own sizes alone.
    """
    from regard.masks.pair_patterns import Dense
    from regard.masks.patterns import causal, upper_left_causal

    if isinstance(given, Mask):
        return given
    if is_causal_bias(given):
        lower_right, own = causal_bias(given)
        if extent is not None and own != extent:
            raise MaskError(
                "A causal bias of torch is used for its own sizes "
                f"(queries = {own.queries}, keys = {own.keys}).",
                got=f"queries = {extent.queries}, keys = {extent.keys}",
                do="Pass masks.causal(), which fits any sizes.",
            )
        return causal() if lower_right else upper_left_causal(*own)
    if is_tensor(given):
        return Dense(as_table(given))
    raise MaskError(
        "A mask is a regard mask, a bool tensor (True = may attend) or an additive float tensor.",
        got=type(given).__name__,
        do="Build one with regard.masks, or read a text with masks.parse(...).",
    )
