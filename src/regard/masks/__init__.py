"""Who may look at whom: lazy masks that combine with ``&``, ``|`` and ``~``.

>>> from regard import masks
>>> masks.causal() & masks.window(4, 0)
causal() & window(4, 0)

A mask is a value. It is asked about tiles and pairs; it becomes n×n only through ``dense()``.
"""

from regard.masks.mask import Mask, as_mask
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
    window,
)

__all__ = [
    "Mask",
    "as_mask",
    "causal",
    "dense",
    "documents",
    "every",
    "everything",
    "local_global",
    "nothing",
    "padding",
    "parse",
    "prefix",
    "window",
]
