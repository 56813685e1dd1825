"""``plan()``: how attention under a mask will be computed, and exactly how many pairs that takes.

    Mask, Extent → Plan: an ElementPlan with its MaskParts for each element of the mask's leading axes

| path           | when                                               | how                             |
|----------------|----------------------------------------------------|---------------------------------|
| `empty`        | no query sees any key                              | zeros                           |
| `full`         | every query sees every key                         | one call of torch SDPA          |
| `causal`       | causal, as many queries as keys                    | one call of torch SDPA          |
| `masked`       | short, or a dense tensor that is mostly True       | one call, keys narrowed         |
| `banded`       | windows: only the distance matters                 | row tiles, keys sliced          |
| `block-sparse` | documents, prefixes, any other combination         | row tiles, keys sliced          |
| `gathered`     | scattered positions: `every`, `local_global`       | gathered parts, merged by lse   |

All of them are exact. Planning asks the mask about tiles, never about n×n pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod

import numpy as np

from regard.errors import ArgumentError
from regard.kernels.layout import lay_out
from regard.kernels.mask_parts import TILE, MaskPart, Region, Run, cost_of, one_tile
from regard.kernels.sorted_layouts import by_block, by_document
from regard.languages import Texts
from regard.masks import Mask, MaskLike, as_mask, causal, everything
from regard.masks.extent import Extent, TiledAxis
from regard.masks.mask import ALL, NONE, extent_of
from regard.masks.pair_patterns import Dense
from regard.masks.tiles import count_by_distance
from regard.notebook_table import html_text

TEXTS = Texts("kernels")
"""What describes plans and costs, in English and Chinese."""

MAX_MASKED_PAIRS = 256 * 256
"""Up to this many pairs, one masked call costs less than planning does."""

DENSE_FRACTION = 0.6
"""A dense mask tensor is used unchanged if tiling would still compute more than this share of the pairs."""

MAX_TABLE_ENTRIES = 1 << 20
"""Plans of masks with larger tables are not cached."""

MAX_PLAN_LENGTH = 1 << 27
"""Planning visits each position once. Beyond this length it would take minutes and gigabytes."""


@dataclass(frozen=True, eq=False)
class ElementPlan:
    """The plan of one element of the mask's leading axes; of all of them if ``index`` is empty."""

    index: tuple[int, ...]
    path: str
    mask: Mask
    parts: tuple[MaskPart, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """How attention under a mask is computed for a given number of queries and keys.

    >>> from regard import masks
    >>> p = plan(masks.window(128, 128), 8192, 8192)
    >>> p.path, p.pairs
    ('banded', 2088832)
    >>> print(p)
    window(128, 128) over 8,192 queries × 8,192 keys: banded
      allowed   2,088,832 of 67,108,864 pairs (3.11 %)
      computed  2,605,056 pairs, as many as 636 tiles of 64 × 64, in 126 calls
      cost      as much as 3,393,571 pairs without a mask, by the measured costs of calls, masks and copies
    """

    mask: Mask
    extent: Extent
    region: Region
    elements: tuple[ElementPlan, ...]

    @cached_property
    def path(self) -> str:
        """The path; if batch elements take different paths, all of them joined by ``+``."""
        return " + ".join(dict.fromkeys(element.path for element in self.elements)) or "empty"

    @cached_property
    def single(self) -> Run | None:
        """The keys of the only kernel call, if one call computes everything for all heads."""
        if len(self.elements) != 1 or self.elements[0].index or len(self.elements[0].parts) != 1:
            return None
        if self.path not in ("full", "causal", "masked") and len(self.region.queries) > 1:
            return None
        (part,) = self.elements[0].parts
        rows = part.rows
        whole = len(rows) == 1 and (rows[0].start, rows[0].stop) == (0, len(self.region.queries))
        together = whole and len(rows[0].runs) == 1 and part.queries is None and part.keys is None
        return rows[0].runs[0] if together else None

    @cached_property
    def needs_mask(self) -> bool:
        """Whether the mask must be evaluated for a single call. SDPA has its own causal mask."""
        return self.path != "causal" and any(
            row.mixed for element in self.elements for part in element.parts for row in part.rows
        )

    @cached_property
    def pairs(self) -> int:
        """The exact number of pairs that the mask allows, summed over its leading axes."""
        return sum(_allowed(element, self.extent, self.region) for element in self.elements)

    @cached_property
    def computed(self) -> int:
        """The exact number of pairs that the kernels compute. Causal SDPA skips its empty half."""
        return sum(
            _allowed(element, self.extent, self.region)
            if element.path == "causal"
            else prod(element.mask.lead) * sum(row.computed for part in element.parts for row in part.rows)
            for element in self.elements
        )

    @property
    def tiles(self) -> int:
        """The number of 64 × 64 tiles that the computed pairs would fill."""
        return -(-self.computed // (TILE * TILE))

    @property
    def calls(self) -> int:
        """The number of kernel calls."""
        return sum(len(part.rows) for element in self.elements for part in element.parts)

    @cached_property
    def cost(self) -> int:
        """What the kernel calls cost, in pairs without a mask; the layout that costs least is chosen.

        It counts what a call, a masked pair and a copied position cost besides the pairs, as measured by
        ``benchmarks/cost_constants.py``.
        """
        return sum(prod(element.mask.lead) * cost_of(element.parts) for element in self.elements)

    @property
    def total(self) -> int:
        """The number of pairs without a mask."""
        return prod(self.mask.lead) * self.region.pairs

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, lang: str = "en") -> str:
        """The plan explained, in English or Chinese.

        >>> print(plan(causal(), 4).in_words("zh"))
        causal()，4 个查询 × 4 个键：causal
          允许  16 对中的 10 对（62.5 %）
          计算  10 对，相当于 1 个 64 × 64 的块，只用一次调用
        """
        text = repr(self.mask)
        queries, keys = map(len, self.region)
        said = {
            "mask": text if len(text) <= 60 else text[:57] + "…",
            "queries": queries,
            "keys": keys,
            "lead": self.mask.lead,
            "path": self.path,
            "pairs": self.pairs,
            "total": self.total,
            "share": 100 * self.pairs / self.total if self.total else 0.0,
            "computed": self.computed,
            "tiles": self.tiles,
            "side": TILE,
            "calls": self.calls,
            "cost": self.cost,
        }
        lines = [
            "plan.each" if self.mask.lead else "plan",
            "plan.allowed" if self.total else "plan.allowed.none",
            "plan.computed.once" if self.calls == 1 else "plan.computed",
        ]
        if self.calls > 1:  # only tiles can be laid out in several ways
            lines.append("plan.cost")
        return "\n".join(TEXTS.say(line, lang, **said) for line in lines)


def _allowed(element: ElementPlan, extent: Extent, region: Region) -> int:
    if element.mask.shifts and all(extent) and region == Region.whole(extent):
        return count_by_distance(element.mask, extent)
    if element.mask.lead or element.path == "masked":
        allowed = element.mask.evaluate(extent, region.query_positions(extent), region.key_positions())
        return int(np.broadcast_to(allowed, (*element.mask.lead, *map(len, region))).sum())
    return sum(part.allowed(extent) for part in element.parts)


def plan(mask: MaskLike | None, queries: int, keys: int | None = None) -> Plan:
    """How attention under ``mask`` will be computed; ``str()`` of the result explains it.

    ``mask`` is a regard mask, a bool tensor, or None for no mask at all.

    >>> from regard import masks
    >>> plan(masks.local_global(64), 4096).path
    'gathered'
    >>> plan(None, 10, 20).path
    'full'
    """
    extent = extent_of(queries, keys)
    if max(extent) > MAX_PLAN_LENGTH:
        raise ArgumentError(
            "plan() can take at most {most:,} queries and keys.",
            got="{extent}",
            do="Plan a shorter sequence; costs follow the same formula at any length.",
            most=MAX_PLAN_LENGTH,
            extent=extent,
        )
    return plan_extent(everything() if mask is None else as_mask(mask, extent), extent)


def plan_extent(mask: Mask, extent: Extent, region: Region | None = None) -> Plan:
    """The plan for a checked mask; cached, because every layer of a model needs the same one.

    ``region`` is the share of the queries and keys that the tensors hold; all of them by default.
    """
    make = _cached_plan if mask.entries <= MAX_TABLE_ENTRIES else _new_plan
    return make(mask, extent, region)


def _new_plan(mask: Mask, extent: Extent, region: Region | None) -> Plan:
    mask.check(extent)
    region = Region.whole(extent) if region is None else region
    if mask.lead and (region.pairs <= MAX_MASKED_PAIRS or _holds_matrix(mask, extent)):
        return Plan(mask, extent, region, (_in_one_call(mask, extent, region),))
    laid: dict[Mask, ElementPlan] = {}
    elements = []
    for index in product(*map(range, mask.lead)):
        chosen = mask.select(index)
        if chosen not in laid:
            laid[chosen] = _element_plan(chosen, extent, region)
        elements.append(replace(laid[chosen], index=index))
    return Plan(mask, extent, region, tuple(elements))


_cached_plan = lru_cache(maxsize=256)(_new_plan)


def _element_plan(mask: Mask, extent: Extent, region: Region) -> ElementPlan:
    """The plan for a mask without leading axes."""
    verdict = _verdict(mask, extent, region)
    if verdict == NONE:
        return ElementPlan((), "empty", mask, ())
    if verdict == ALL:
        return ElementPlan((), "full", everything(), one_tile(everything(), region))
    if mask == causal() and extent.queries == extent.keys and region == Region.whole(extent):
        return ElementPlan((), "causal", mask, one_tile(mask, region))
    if region.pairs <= MAX_MASKED_PAIRS:
        return _in_one_call(mask, extent, region)
    parts = _cheapest_layout(mask, extent, region)
    rows = [row for part in parts for row in part.rows]
    if _holds_matrix(mask, extent) and sum(row.pairs for row in rows) > DENSE_FRACTION * region.pairs:
        return ElementPlan((), "masked", mask, one_tile(mask, region))
    if any(part.queries is not None or part.keys is not None for part in parts):
        path = "gathered"
    elif not parts:
        path = "empty"
    else:
        path = "banded" if mask.shifts and all(len(row.runs) == 1 for row in rows) else "block-sparse"
    return ElementPlan((), path, mask, parts)


def _cheapest_layout(mask: Mask, extent: Extent, region: Region) -> tuple[MaskPart, ...]:
    """The layout that costs least: with positions in order, or sorted by document or block of an image."""
    sorted_parts = (by_document(mask, extent, region), by_block(mask, extent, region))
    layouts = [lay_out(mask, extent, region), *((part,) for part in sorted_parts if part is not None)]
    return min(layouts, key=cost_of)  # the first of equals


def _in_one_call(mask: Mask, extent: Extent, region: Region) -> ElementPlan:
    """One masked call over the keys from the first to the last that any query sees."""
    tiles = one_tile(mask, region)
    if prod(mask.lead) * region.pairs <= MAX_MASKED_PAIRS:
        allowed = mask.evaluate(extent, region.query_positions(extent), region.key_positions())
        allowed = np.broadcast_to(allowed, (*allowed.shape[:-1], len(region.keys)))
        seen = np.flatnonzero(allowed.any(axis=tuple(range(allowed.ndim - 1))))
        if len(seen):
            run = (int(seen[0]), int(seen[-1]) + 1)
            tiles = one_tile(mask, region, run, masked=not allowed[..., slice(*run)].all())
    return ElementPlan((), "masked", mask, tiles)


def _verdict(mask: Mask, extent: Extent, region: Region) -> int:
    """ALL, NONE or SOME for the whole rectangle."""
    if not region.pairs:
        return NONE
    whole = np.zeros(1, np.int64)
    rows, columns = TiledAxis(region.query_positions(extent), whole), TiledAxis(region.key_positions(), whole)
    return int(mask.tiles(rows, columns, extent)[0, 0])


def _holds_matrix(mask: Mask, extent: Extent) -> bool:
    """Whether the user passed an n×n tensor, so that using it takes no further memory."""
    return any(isinstance(part, Dense) and part.table.values.shape[-2:] == extent for part in mask.patterns())
