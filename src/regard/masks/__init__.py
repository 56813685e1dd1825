"""Which keys a query may see: lazy masks that combine with ``&``, ``|`` and ``~``.

>>> from regard import masks
>>> masks.causal() & masks.window(4, 0)
causal() & window(4, 0)

A mask is an immutable value. It can be evaluated for tiles and pairs; only ``dense()`` makes it n×n.
"""

from regard.masks.grid_patterns import neighbourhood
from regard.masks.mask import Mask, MaskLike, as_mask
from regard.masks.pair_patterns import dense, documents
from regard.masks.parser import parse
from regard.masks.patterns import (
    causal,
    every,
    everything,
    local_global,
    nothing,
    padding,
    prefix,
    span,
    window,
)

__all__ = [
    "Mask",
    "MaskLike",
    "as_mask",
    "causal",
    "dense",
    "documents",
    "every",
    "everything",
    "local_global",
    "neighbourhood",
    "nothing",
    "padding",
    "parse",
    "prefix",
    "span",
    "window",
]
