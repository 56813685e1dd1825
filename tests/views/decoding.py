"""A page read without a browser: its data out of the HTML, its weights by the formula in NumPy."""

from __future__ import annotations

import base64
import json
import re
import string
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from regard.views.page.base85 import DIGITS

ELEMENT = re.compile(r'<script type="[^"]+" data-regard="(header|array)">([^<]*)</script>')
TYPES = {"int8": "<i1", "uint8": "u1", "int16": "<i2", "uint32": "<u4", "float32": "<f4", "float64": "<f8"}
PYTHONS_DIGITS = f"{string.digits}{string.ascii_uppercase}{string.ascii_lowercase}!#$%&()*+-;<=>?@^_`{{|}}~"


class Decoded:
    """The header of a page and its arrays."""

    def __init__(self, path: Path) -> None:
        found = ELEMENT.findall(Path(path).read_text(encoding="utf-8"))
        (header,) = [text for kind, text in found if kind == "header"]
        self.header: dict[str, Any] = json.loads(header)
        texts = [text for kind, text in found if kind == "array"]
        assert len(texts) == len(self.header["arrays"])
        assert len(self.header["digits"]) == len(set(self.header["digits"])) == 85
        self.arrays = [
            array_of(described, text, self.header["digits"])
            for described, text in zip(self.header["arrays"], texts)
        ]

    def rows(self, where: dict[str, Any]) -> np.ndarray:
        """Rounded rows as float32, ``(plane, row, column)``."""
        codes = self.arrays[where["codes"]].reshape(where["shape"])
        if where["scales"] is None:
            return codes
        scales = self.arrays[where["scales"]].astype(np.float64).reshape(where["shape"][:2])
        return (codes * scales[..., None]).astype(np.float32)

    def weights(self, call: int) -> np.ndarray:
        """All weights of a call, ``(head, query, key)``."""
        described = self.header["calls"][call]
        if "weights" in described:
            return self.rows(described["weights"])
        q, k = (self.rows(described[name]).astype(np.float64) for name in "qk")
        k = np.repeat(k, len(q) // len(k), axis=0)
        scores = described["scale"] * (q @ k.swapaxes(1, 2))
        if described["softcap"] is not None:
            scores = described["softcap"] * np.tanh(scores / described["softcap"])
        queries, keys = scores.shape[1:]
        if described["bias"] is not None:
            scores = scores + self._bias(described["bias"], queries, keys)
        lse = self.arrays[described["lse"]].reshape(len(q), queries, 1).astype(np.float64)
        masks = described["masks"]
        allowed = np.stack([self._allowed(place, queries, keys) for place in masks])
        lse = np.where(np.isneginf(lse), np.inf, lse)
        return np.where(allowed, np.exp(scores - lse), 0.0)

    def _bias(self, described: dict[str, Any], queries: int, keys: int) -> np.ndarray:
        total = np.zeros((1, queries, keys))
        if described["line"] is not None:
            line = self.arrays[described["line"]].reshape(-1, queries + keys - 1)
            i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)
            total = total + line[:, j - i + keys - 1]
        if described["table"] is not None:
            total = total + self.rows(described["table"])
        return total

    def _allowed(self, place: int | None, queries: int, keys: int) -> np.ndarray:
        allowed = np.zeros((queries, keys), bool)
        if place is None:
            return ~allowed
        mask = self.header["masks"][place]
        first, bounds = self.arrays[mask["first"]], self.arrays[mask["bounds"]].reshape(-1, 2)
        for query in range(queries):
            for start, stop in bounds[first[query] : first[query + 1]]:
                allowed[query, start:stop] = True
        return allowed


def unpacked(text: str, name: str) -> str:
    """The program or the style of a page, given the page as text."""
    (data,) = re.findall(rf'<script type="[^"]+" data-regard="{name}">([^<]*)</script>', text)
    return zlib.decompress(base64.b64decode(data)).decode("utf-8")


def bytes_of(text: str, digits: str) -> bytes:
    """By Python's own base 85, which has other digits and begins with the highest byte of each four."""
    raw = base64.b85decode(text.translate(str.maketrans(digits, PYTHONS_DIGITS)))
    return np.frombuffer(raw, ">u4").astype("<u4").tobytes()


def array_of(described: dict[str, Any], text: str, digits: str = DIGITS) -> np.ndarray:
    raw, planes, at = bytes_of(text, digits), [], 0
    for length, deflated in described["planes"]:
        part = raw[at : at + length]
        planes.append(np.frombuffer(zlib.decompress(part) if deflated else part, np.uint8))
        at += length
    assert len(raw) - 4 < at <= len(raw)
    assert not any(raw[at:])
    if described["type"] == "int24":
        low, middle, high = (plane.astype(np.int32) for plane in planes)
        return ((high << 24) | (middle << 16) | (low << 8)) >> 8
    return np.stack(planes, 1).reshape(-1).view(TYPES[described["type"]])
