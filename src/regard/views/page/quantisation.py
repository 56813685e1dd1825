"""Numbers as small integers: each row has its own scale, ``x ≈ code · scale``.

A score is a dot product of a query and a key, and an error δ in it is a relative error δ of the
weight. Rows of queries and keys differ in size by a factor of a hundred and more, so one scale
for all of them would spend its bits on the largest; a scale per row rounds every row to
``max|row| / 2^(bits − 1)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32Array = NDArray[np.float32]

BITS = (8, 16, 24, 32)
"""Bits per number. 32 is an unchanged float32, without a scale."""

_HOLDS: dict[int, type[np.signedinteger[Any]]] = {8: np.int8, 16: np.int16, 24: np.int32}


@dataclass(frozen=True, eq=False)
class Quantised:
    """Rounded numbers ``(..., row, column)`` with a scale for each row.

    >>> rounded = quantise(np.array([[1.0, -0.5], [100.0, 3.0]]), bits=8)
    >>> rounded.codes
    array([[127, -64],
           [127,   4]], dtype=int8)
    >>> rounded.decoded().round(2)
    array([[  1.  ,  -0.5 ],
           [100.  ,   3.15]], dtype=float32)
    """

    bits: int
    codes: NDArray[Any]  # integers, or float32 where there are no scales
    scales: Float32Array | None  # (..., row)

    def decoded(self) -> Float32Array:
        """The numbers as the browser has them: a product in float64, rounded to float32."""
        if self.scales is None:
            return self.codes
        return (self.codes * self.scales.astype(np.float64)[..., None]).astype(np.float32)


def quantise(values: NDArray[Any], bits: int, *, short_scales: bool = False) -> Quantised:
    """``values (..., row, column)`` rounded to ``bits`` each; rows of zeros stay zeros.

    The greatest number of a row is exact. Vectors of a few dozen channels do not need that, and their
    scales take space: ``short_scales`` have eight binary digits, which takes two of their four bytes away
    and makes steps at most 1/128 wider.
    """
    if bits == 32:
        return Quantised(bits, values.astype(np.float32), None)
    greatest = np.abs(values).max(axis=-1, initial=0.0)
    steps = greatest / (2 ** (bits - 1) - 1)
    scales = (_short(steps) if short_scales else steps).astype(np.float32)
    # A row so small that its scale is 0 in float32 counts as zeros; if it is nearly so small, the
    # inverse is beyond float32.
    inverse = np.divide(1.0, scales, out=np.zeros(scales.shape), where=scales > 0, dtype=np.float64)
    codes = np.rint(values * inverse[..., None])
    limit = 2 ** (bits - 1) - 1
    return Quantised(bits, np.clip(codes, -limit, limit).astype(_HOLDS[bits]), scales)


def _short(numbers: NDArray[Any]) -> NDArray[Any]:
    """The least numbers of eight binary digits that are not below ``numbers``."""
    digits, exponent = np.frexp(numbers)
    found: NDArray[Any] = np.ldexp(np.ceil(digits * 256) / 256, exponent)
    return found
