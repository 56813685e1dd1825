"""``cost()``: the exact operations and bytes of every step of attention, without running it.

A multiplication and an addition are two operations, as in ``torch.utils.flop_counter``. With P pairs
of a query and a key, c channels per head, n queries, m keys and a width of h · c::

    queries  x W_q       2 · n · width · width          keys, values: m in place of n, key heads in place of h
    scores   q kᵀ        2 · P · c
    scale    · 1/√c      P
    mask     −∞          P                              if there is a mask
    softmax  exp(s−lse)  5 · P                          maximum, difference, exp, sum, quotient
    sum      w v         2 · P · c
    output   y W_o       2 · n · width · width

The ways of computing it differ in P and in what is kept:

| way       | pairs                                              | kept                                 |
|-----------|----------------------------------------------------|--------------------------------------|
| `dense`   | all n · m of them, mask or not: the textbook       | Q, K, V, the matrix once, the output |
| `allowed` | those that the mask allows: the minimum            | Q, K, V, lse, the output             |
| `regard`  | those that `regard.attention` computes             | the same                             |
| `linear`  | none: ``φ(q) Σ φ(k) vᵀ``                           | Q, K, V, the sums, the output        |
| `cache`   | one new query on m keys                            | its Q, the cache of K and V, lse     |

All numbers are totals over heads, sequences and layers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod

import numpy as np

from regard.checks import check_integer
from regard.errors import ArgumentError, DtypeError, Phrase, ShapeError
from regard.kernels.cost_steps import CostStep, ModelSizes, linear_steps, softmax_steps
from regard.kernels.planner import plan
from regard.languages import Texts
from regard.masks import Mask, MaskLike, as_mask, causal, parse
from regard.masks.extent import Extent
from regard.masks.mask import extent_of
from regard.notebook_table import html_table

TEXTS = Texts("kernels")

WAYS = ("dense", "allowed", "regard", "linear", "cache")
"""The ways of computing attention that ``cost()`` compares."""

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes per number of each dtype."""

COLUMNS = {"way": -8, "queries": 9, "keys": 9, "pairs": 20, "operations": 22, "bytes": 20}
"""The columns of the printed table and their widths; a negative width aligns to the left."""


@dataclass(frozen=True)
class CostRow:
    """One way of computing attention at one length, step by step."""

    name: str
    length: int  # as requested; ``cache`` computes one query at its end
    queries: int
    keys: int
    pairs: int
    steps: tuple[CostStep, ...]

    @property
    def operations(self) -> int:
        """The operations of all steps."""
        return sum(step.operations for step in self.steps)

    @property
    def bytes(self) -> int:
        """The bytes that all steps keep."""
        return sum(step.bytes for step in self.steps)

    def __getitem__(self, step: str) -> CostStep:
        for one in self.steps:
            if one.name == step:
                return one
        raise KeyError(f"no step {step!r}; there are {', '.join(one.name for one in self.steps)}")


@dataclass(frozen=True)
class Cost:
    """Operations and bytes for each length and way; ``str()`` is a table.

    >>> found = cost([512, 2048], width=512, heads=8, projections=False)
    >>> found.lengths, found.names
    ((512, 2048), ('dense', 'regard', 'linear', 'cache'))
    >>> found[2048, "dense"]["scores"].operations == 2 * 2048 * 2048 * 512
    True
    >>> found[2048, "dense"].operations // found[512, "dense"].operations
    16
    """

    setting: ModelSizes
    mask: str | None
    ways: tuple[CostRow, ...]

    def __getitem__(self, which: tuple[int, str]) -> CostRow:
        for way in self.ways:
            if which == (way.length, way.name):
                return way
        raise KeyError(f"no length and way {which!r}; there are {self.lengths} and {self.names}")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths in the order they were requested."""
        return tuple(dict.fromkeys(way.length for way in self.ways))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the ways, in order."""
        return tuple(dict.fromkeys(way.name for way in self.ways))

    def records(self) -> list[dict[str, str | int]]:
        """A dict per step: way, length, queries, keys, pairs, step, formula, operations, bytes."""
        return [
            {
                "way": way.name,
                "length": way.length,
                "queries": way.queries,
                "keys": way.keys,
                "pairs": way.pairs,
                **{("step" if name == "name" else name): value for name, value in asdict(step).items()},
            }
            for way in self.ways
            for step in way.steps
        ]

    def to_csv(self) -> str:
        """The records as comma-separated text with a header line."""
        text = io.StringIO()
        records = self.records()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def __str__(self) -> str:
        return self.in_words()

    def _repr_html_(self) -> str:
        rows = (
            (way.length, *(getattr(way, "name" if name == "way" else name) for name in COLUMNS))
            for way in self.ways
        )
        return html_table(("length", *COLUMNS), rows, self.setting_in_words())

    def in_words(self, lang: str = "en") -> str:
        """The sizes of the model, and a line per length and way, in English or Chinese.

        >>> print(cost(512, projections=False, ways=["dense"]).in_words("zh"))
        宽度 512，头 8，层 1，批 1，float32，掩码 无
        方式          查询        键            查询—键对                 运算量                 字节
        dense          512       512            2,097,152            549,453,824           12,582,912
        """
        head = [TEXTS.say(f"cost.{name}", lang) for name in COLUMNS]
        numbers = (
            [way.name, *(f"{getattr(way, name):,}" for name in COLUMNS if name != "way")] for way in self.ways
        )
        lines = (" ".join(map(_aligned, row, COLUMNS.values())) for row in (head, *numbers))
        return "\n".join((self.setting_in_words(lang), *lines))

    def setting_in_words(self, lang: str = "en") -> str:
        """The sizes of the model, and the mask, in English or Chinese."""
        one = self.setting
        key = "cost" if one.key_heads == one.heads else "cost.grouped"
        return TEXTS.say(key, lang, **asdict(one), mask=self.mask or TEXTS.say("cost.unmasked", lang))


def step_in_words(step: str, lang: str = "en") -> str:
    """The name of a step in a language.

    >>> step_in_words("sum"), step_in_words("sum", "zh")
    ('sum', '加权和')
    """
    return TEXTS.say(f"step.{step}", lang)


def cost(
    lengths: int | Sequence[int],
    keys: int | None = None,
    *,
    width: int = 512,
    heads: int = 8,
    key_heads: int | None = None,
    layers: int = 1,
    batch: int = 1,
    dtype: object = "float32",
    mask: MaskLike | str | None = None,
    projections: bool = True,
    ways: Sequence[str] | None = None,
) -> Cost:
    """The operations and bytes of every step of attention at each length, without running it.

    Args:
        lengths: the number of queries; one or several.
        keys: the number of keys, for cross-attention; as many as queries by default.
        width: channels per token.
        heads: query heads; each has ``width / heads`` channels.
        key_heads: key and value heads; ``heads`` by default.
        layers, batch: everything is multiplied by them.
        dtype: ``"float32"``, ``torch.bfloat16``, …; lse and sums are kept in at least float32.
        mask: a regard mask, its text such as ``"causal & window(4, 0)"``, or a tensor.
        projections: whether to count W_q, W_k, W_v and W_o.
        ways: some of ``dense``, ``allowed``, ``regard``, ``linear`` and ``cache``. By default all that
            apply: ``allowed`` if there is a mask, ``linear`` without a mask or with ``causal``,
            ``cache`` if ``keys`` is omitted.

    Pairs are counted from tiles and distances, never from n×n, so a million positions take only a moment.

    >>> found = cost(8192, width=512, heads=8, mask="causal & window(127, 0)")
    >>> found[8192, "allowed"].pairs == 8 * (8192 * 128 - 127 * 128 // 2)
    True
    >>> dense, ours = found[8192, "dense"], found[8192, "regard"]
    >>> dense["scores"].operations // ours["scores"].operations, dense.bytes // ours.bytes
    (43, 26)
    """
    setting = _setting(width, heads, key_heads, layers, batch, dtype, projections)
    asked = [lengths] if isinstance(lengths, (int, np.integer)) else list(lengths)
    if not asked:
        raise ArgumentError(
            "cost() needs at least one length.", got="none", do="Call cost(512), for example."
        )
    one = None if mask is None else parse(mask) if isinstance(mask, str) else as_mask(mask)
    extents = [_extent(length, keys) for length in dict.fromkeys(asked)]
    chosen = _ways(ways, one, keys, max(extent.queries for extent in extents))
    found = (_way(name, setting, one, extent) for extent in extents for name in chosen)
    return Cost(setting, None if one is None else repr(one), tuple(found))


def _way(name: str, setting: ModelSizes, mask: Mask | None, extent: Extent) -> CostRow:
    length = extent.queries
    if name == "cache":
        extent = Extent(1, extent.keys)
    if name == "linear":
        return CostRow(
            name, length, *extent, 0, tuple(linear_steps(setting, extent, causal=mask is not None))
        )
    pairs = _pairs(name, setting, mask, extent)
    steps = softmax_steps(
        setting, extent, pairs, masked=mask is not None, matrix=name == "dense", new=name == "cache"
    )
    return CostRow(name, length, *extent, pairs, tuple(steps))


def _pairs(name: str, setting: ModelSizes, mask: Mask | None, extent: Extent) -> int:
    """The pairs of all layers, sequences and heads."""
    each = setting.layers * setting.batch * setting.heads
    if name == "dense" or mask is None:
        return each * prod(extent)
    full = (setting.batch, setting.heads)
    try:
        fits = np.broadcast_shapes(mask.lead, full) == full
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            "A mask must broadcast to (batch, head) = {full}.",
            got="{lead}",
            do="Pass the batch= and heads= of the mask.",
            full=full,
            lead=mask.lead,
        )
    planned = plan(mask, *extent)
    return (planned.pairs if name == "allowed" else planned.computed) * (each // prod(mask.lead))


# ---- checking the arguments ------------------------------------------------------------------


def _ways(given: Sequence[str] | None, mask: Mask | None, keys: int | None, longest: int) -> tuple[str, ...]:
    why_not = {}
    if mask is None:
        why_not["allowed"] = Phrase("allowed, which counts the pairs of a mask, without a mask")
    elif mask != causal():
        why_not["linear"] = Phrase(
            "linear, which has no mask but causal(), with {mask}", mask=repr(mask)[:60]
        )
    elif keys is not None and keys < longest:
        why_not["linear"] = Phrase(
            "linear with causal(), which needs a key per query, and keys = {keys}", keys=keys
        )
    if keys is not None:
        why_not["cache"] = Phrase("cache, which holds the sequence itself, together with keys=")
    if given is None:
        return tuple(way for way in WAYS if way not in why_not)
    for way in given:
        if way not in WAYS or way in why_not:
            raise ArgumentError(
                "Each of ways= must be one of {known}.",
                got="{why_not}",
                do="Omit ways= to compare all that apply.",
                known=", ".join(WAYS),
                why_not=why_not.get(way, repr(way)),
            )
    if not given:
        raise ArgumentError(
            "ways= must name at least one way.", got="none", do="Omit ways= to compare all of them."
        )
    return tuple(way for way in WAYS if way in given)


def _setting(
    width: int, heads: int, key_heads: int | None, layers: int, batch: int, dtype: object, projections: bool
) -> ModelSizes:
    key_heads = heads if key_heads is None else key_heads
    numbers = {"width": width, "heads": heads, "key_heads": key_heads, "layers": layers, "batch": batch}
    for name, number in numbers.items():
        check_integer(name, number)
    if width % heads or heads % key_heads:
        raise ArgumentError(
            "heads must divide width, and key_heads must divide heads.",
            got="width = {width}, heads = {heads}, key_heads = {key_heads}",
            do="Try width=512, heads=8, key_heads=2.",
            width=width,
            heads=heads,
            key_heads=key_heads,
        )
    name = str(dtype).removeprefix("torch.")
    if name not in BYTES:
        raise DtypeError(
            "{name} must be one of {known}.",
            got="dtype = {dtype}",
            do="Choose one of them.",
            name="dtype",
            known=", ".join(BYTES),
            dtype=dtype,
        )
    return ModelSizes(width, heads, key_heads, layers, batch, name, BYTES[name], projections)


def _extent(length: int, keys: int | None) -> Extent:
    extent = extent_of(length, keys, limit=None)  # without a mask, no position is ever visited
    if 0 in extent:
        raise ArgumentError(
            "cost() needs at least one query and one key.",
            got="{extent}",
            do="Pass a length of 1 or more.",
            extent=extent,
        )
    return extent


def _aligned(text: str, columns: int) -> str:
    """A cell of a row of the table; a Chinese character takes two columns."""
    from rich.cells import cell_len

    width = abs(columns) - cell_len(text) + len(text)
    return text.ljust(width) if columns < 0 else text.rjust(width)
