"""The operations that each step of attention takes, and the bytes that it keeps.

The conventions are in :mod:`regard.kernels.cost_model`. For matrix products, the operations are those that
``torch.utils.flop_counter.FlopCounterMode`` counts when the step runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from regard.kernels.linear_kernel import CHUNK
from regard.masks.extent import Extent

SOFTMAX = 5
"""Operations of softmax per pair: maximum, difference, exp, sum, quotient."""

FEATURE = 2
"""Operations of ``elu(x) + 1`` per number."""


@dataclass(frozen=True)
class ModelSizes:
    """The sizes of the model, apart from the lengths."""

    width: int
    heads: int
    key_heads: int
    layers: int
    batch: int
    dtype: str
    size: int  # bytes per number
    projections: bool

    @property
    def channels(self) -> int:
        """Channels per head."""
        return self.width // self.heads

    @property
    def key_width(self) -> int:
        """Channels of all key heads."""
        return self.channels * self.key_heads

    @property
    def times(self) -> int:
        """How many times everything is computed."""
        return self.layers * self.batch

    @property
    def wide(self) -> int:
        """Bytes per number that is accumulated in at least float32."""
        return max(self.size, 4)


@dataclass(frozen=True)
class CostStep:
    """One step: its formula, its number of operations, and the bytes that it keeps."""

    name: str
    formula: str
    operations: int
    bytes: int


def softmax_steps(
    setting: ModelSizes, extent: Extent, pairs: int, *, masked: bool, matrix: bool, new: bool
) -> Iterator[CostStep]:
    """The steps of softmax attention over ``pairs``, counted over all heads together.

    ``matrix`` says that the matrix is kept (once, because softmax overwrites the scores); otherwise the
    lse is. ``new`` says that all keys but the last are already projected.
    """
    one = setting
    yield from _inputs(one, extent, new_keys=1 if new else extent.keys)
    yield CostStep("scores", "q kᵀ", 2 * pairs * one.channels, pairs * one.size if matrix else 0)
    yield CostStep("scale", "· 1/√c", pairs, 0)
    if masked:
        yield CostStep("mask", "s_ij = −∞", pairs, 0)
    rows = one.times * one.heads * extent.queries
    yield CostStep("softmax", "exp(s − lse)", SOFTMAX * pairs, 0 if matrix else rows * one.wide)
    yield CostStep("sum", "w v", 2 * pairs * one.channels, rows * one.channels * one.size)
    yield from _output(one, extent)


def linear_steps(setting: ModelSizes, extent: Extent, *, causal: bool) -> Iterator[CostStep]:
    """The steps of linear attention, as ``regard.linear_attention`` computes it.

    In causal form, pairs within a chunk of positions are computed one by one; the sums before each
    chunk carry the rest.
    """
    one, (queries, keys) = setting, extent
    each = one.times * one.heads
    # Every value has a 1 appended, whose weighted sum is the denominator.
    state = one.channels * (one.channels + 1)
    yield from _inputs(one, extent, new_keys=keys)
    numbers = one.times * (queries * one.width + keys * one.key_width)
    yield CostStep("features", "φ(q), φ(k)", FEATURE * numbers, 0)
    if causal:
        chunks = -(-queries // CHUNK)
        before = keys - queries
        inside = CHUNK * CHUNK * (one.channels + one.channels + 1)
        yield CostStep("inside", f"φ(q) φ(k)ᵀ v, {CHUNK} × {CHUNK}", 2 * each * chunks * inside, 0)
        keys, queries = before + chunks * CHUNK, chunks * CHUNK
    yield CostStep("sums", "S = Σ φ(k) [v, 1]ᵀ", 2 * each * keys * state, each * state * one.wide)
    yield CostStep("products", "φ(q) S", 2 * each * queries * state, 0)
    rows = each * extent.queries * one.channels
    yield CostStep("divide", "/ φ(q) Σ φ(k)", rows, rows * one.size)
    yield from _output(one, extent)


def _inputs(one: ModelSizes, extent: Extent, *, new_keys: int) -> Iterator[CostStep]:
    for name, formula, count, kept, width in (
        ("queries", "x W_q", extent.queries, extent.queries, one.width),
        ("keys", "x W_k", new_keys, extent.keys, one.key_width),
        ("values", "x W_v", new_keys, extent.keys, one.key_width),
    ):
        operations = 2 * one.times * count * one.width * width if one.projections else 0
        yield CostStep(name, formula, operations, one.times * kept * width * one.size)


def _output(one: ModelSizes, extent: Extent) -> Iterator[CostStep]:
    if one.projections:
        numbers = one.times * extent.queries * one.width
        yield CostStep("output", "y W_o", 2 * numbers * one.width, numbers * one.size)
