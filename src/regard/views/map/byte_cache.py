"""A cache of results, bounded by bytes; the least recently used one is removed first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Cached = TypeVar("Cached")


class ByteCache(Generic[Cached]):
    """A cache bounded by bytes, for any number of threads.

    The newest is kept even if it alone exceeds the bound, because a request is waiting for it.

    >>> kept = ByteCache(10, len)
    >>> for text in ("aaaa", "bbbb", "cccc"):
    ...     kept.put(text[0], text)
    >>> kept.get("a") is None, kept.get("b"), kept.nbytes
    (True, 'bbbb', 8)
    """

    def __init__(self, limit: int, size: Callable[[Cached], int]) -> None:
        self.limit = limit
        self._size = size
        self._held: OrderedDict[Hashable, tuple[Cached, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def get(self, key: Hashable) -> Cached | None:
        """The value of this key, which becomes the most recently used."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Cached) -> None:
        """Keep a value, and remove others until all fit."""
        with self._lock:
            self._drop(key)
            self._held[key] = value, self._size(value)
            self.nbytes += self._held[key][1]
            while self.nbytes > self.limit and len(self._held) > 1:
                self._drop(next(iter(self._held)))

    def drop(self, fits: Callable[[Any], bool]) -> None:
        """Remove everything whose key satisfies a condition."""
        with self._lock:
            for key in [key for key in self._held if fits(key)]:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self.nbytes -= found[1]
