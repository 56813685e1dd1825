"""Random mask expressions for hypothesis."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from regard import masks


def patterns(length: int) -> st.SearchStrategy[masks.Mask]:
    """Any pattern that can be asked about ``length`` queries and keys."""
    small = st.integers(0, length)
    bools = st.lists(st.booleans(), min_size=length, max_size=length)
    return st.one_of(
        st.just(masks.causal()),
        st.builds(masks.window, st.none() | small, st.none() | small),
        st.builds(masks.prefix, small),
        st.builds(lambda *ends: masks.span(*sorted(ends)), small, small),
        st.builds(masks.every, st.integers(1, length)),
        st.builds(masks.local_global, st.integers(1, length)),
        st.builds(
            lambda shape, radius, shifted: masks.neighbourhood(shape, radius, shifted=shifted),
            st.sampled_from([(length,), *((a, length // a) for a in range(1, length + 1) if not length % a)]),
            st.integers(0, 4),
            st.booleans(),
        ),
        st.builds(lambda keep: masks.padding(np.array(keep, bool)), bools),
        st.builds(lambda sizes: masks.documents(np.repeat(np.arange(length), sizes)), _sizes(length)),
        st.builds(masks.documents, st.lists(st.integers(0, 3), min_size=length, max_size=length)),
        st.builds(
            lambda bits: masks.dense(np.array(bits, bool).reshape(length, length)),
            st.lists(st.booleans(), min_size=length**2, max_size=length**2)
            if length <= 12
            else st.just([True] * length**2),
        ),
    )


def _sizes(length: int) -> st.SearchStrategy[list[int]]:
    """``length`` positions dealt out to ``length`` documents, many of them empty."""

    def deal(cuts: list[int]) -> list[int]:
        edges = [0, *sorted(cuts), length]
        sizes = [b - a for a, b in pairwise(edges)]
        return (
            (sizes + [0] * length)[:length]
            if sum(sizes[:length]) == length
            else [length] + [0] * (length - 1)
        )

    return st.lists(st.integers(0, length), max_size=4).map(deal)


def expressions(length: int) -> st.SearchStrategy[masks.Mask]:
    """Patterns joined by the operators, a few levels deep."""
    return st.recursive(
        patterns(length),
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            st.builds(lambda a: ~a, inner),
            st.builds(lambda a: a.T, inner),
        ),
        max_leaves=5,
    )
