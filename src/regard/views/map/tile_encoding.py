"""Cells as bytes: numbers of three widths, or a grey picture.

``float32`` and ``float16`` are the weights themselves, little-endian, row by row. ``uint8`` and ``png``
are tones from 0 to 255: the weight, or with ``scale="log"`` four decades of it, ``1 + log₁₀(w) / 4``.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from regard.checks import check_choice

TYPES = ("float32", "float16", "uint8", "png")
SCALES = ("linear", "log")


def encoded(cells: NDArray[np.float32], type: str = "float32", scale: str = "linear") -> bytes:
    """The cells of a tile as bytes.

    >>> encoded(np.array([[0.0, 1.0]], np.float32), "uint8")
    b'\\x00\\xff'
    >>> encoded(np.array([[0.1, 1.0]], np.float32), "uint8", "log")
    b'\\xbf\\xff'
    """
    check_choice("type", type, TYPES)
    check_choice("scale", scale, SCALES)
    if type in ("float32", "float16"):
        return cells.astype(np.dtype(type).newbyteorder("<")).tobytes()
    tones = toned(cells, scale)
    return tones.tobytes() if type == "uint8" else png(tones)


def toned(cells: NDArray[np.float32], scale: str) -> NDArray[np.uint8]:
    """Weights as tones."""
    tones = 1 + np.log10(np.maximum(cells, 1e-9)) / 4 if scale == "log" else cells
    found: NDArray[np.uint8] = np.rint(255 * np.clip(tones, 0, 1)).astype(np.uint8)
    return found


def png(tones: NDArray[np.uint8]) -> bytes:
    """A grey picture, 8 bits a pixel."""
    rows, columns = tones.shape
    # Every line begins with the number of its filter; 2 is "less the line above", which packs best here.
    lines = np.zeros((rows, columns + 1), np.uint8)
    lines[:, 0] = 2
    lines[:, 1:] = tones
    lines[1:, 1:] -= tones[:-1]
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0),
        b"IDAT": zlib.compress(lines.tobytes(), 1),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts.items())


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
