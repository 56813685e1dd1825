"""Arrays packed for the page: as planes of bytes, compressed if that saves space, as text.

All first bytes of the numbers come first, then all second bytes, and so on. The high bytes of
similar numbers compress; the low ones are noise, and stay uncompressed. An array of
noise alone, such as the rounded numbers of most models, is left whole.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.views.page.base85 import in_digits
from regard.views.page.quantisation import Quantised

SAMPLE = 1 << 15
"""Bytes of a plane that are compressed to see whether the rest is worth it."""

MAX_COMPRESSED_SHARE = 0.95
"""A plane is compressed if that leaves less than this share of it: decompression takes the reader's time."""

_TYPES = ("int8", "uint8", "int16", "int24", "uint32", "float32", "float64")


class ArrayStore:
    """Arrays by number; equal ones are kept once.

    >>> arrays = ArrayStore()
    >>> numbers = np.arange(5, dtype=np.int16)
    >>> arrays.put(numbers), arrays.put(np.ones(3, np.uint8)), arrays.put(numbers.copy())
    (0, 1, 0)
    >>> arrays.described[0]
    {'type': 'int16', 'planes': [[10, 0]]}
    """

    def __init__(self) -> None:
        self.described: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self._known: dict[bytes, int] = {}

    def put(self, array: NDArray[Any], *, bits: int | None = None) -> int:
        """Keep an array and return its number. ``bits=24`` keeps the three low bytes of each int32."""
        raw = np.ascontiguousarray(array).view(np.uint8).reshape(array.size, array.itemsize)
        name = array.dtype.name
        if bits == 24:
            raw, name = raw[:, :3], "int24"
        assert name in _TYPES, name
        planes = np.ascontiguousarray(raw.T)  # numbers are little-endian wherever Python runs today
        key = hashlib.blake2b(planes.tobytes(), digest_size=16, person=name.encode()).digest()
        if key not in self._known:
            self._known[key] = len(self.texts)
            packed = [_packed(plane) for plane in planes]
            if name != "int24" and not any(deflated for _, deflated in packed):
                packed = [(raw.tobytes(), 0)]  # the reader need not put it together again
            self.described.append(
                {"type": name, "planes": [[len(data), deflated] for data, deflated in packed]}
            )
            self.texts.append(in_digits(b"".join(data for data, _ in packed)))
        return self._known[key]

    def put_rows(self, rounded: Quantised) -> dict[str, Any]:
        """Keep rounded rows ``(plane, row, column)`` and say where they are."""
        return {
            "codes": self.put(rounded.codes, bits=24 if rounded.bits == 24 else None),
            "scales": None if rounded.scales is None else self.put(rounded.scales),
            "shape": list(rounded.codes.shape),
        }


def _packed(plane: NDArray[np.uint8]) -> tuple[bytes, int]:
    """The bytes of a plane, and 1 if they are compressed."""
    raw = plane.tobytes()
    middle = max(0, (len(raw) - SAMPLE) // 2)
    sample = raw[middle : middle + SAMPLE]
    if len(zlib.compress(sample, 1)) < MAX_COMPRESSED_SHARE * len(sample):
        small = zlib.compress(raw, 6)
        if len(small) < MAX_COMPRESSED_SHARE * len(raw):
            return small, 1
    return raw, 0
