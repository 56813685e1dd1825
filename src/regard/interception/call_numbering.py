"""Layers are numbered by kind, in the order in which a forward pass calls them."""

from __future__ import annotations

from collections import Counter

import torch

from regard.interception.steps import CallPlace, Kind


class CallNumbering:
    """The places of the calls of a model, pass by pass.

    >>> numbering = CallNumbering()
    >>> numbering.place("layers.0.attention", "encoder").layer, numbering.place("layers.1", "encoder").layer
    (0, 1)
    >>> numbering.begin()
    >>> numbering.place("layers.0.attention", "encoder").layer
    0
    """

    def __init__(self) -> None:
        self.layers: Counter[Kind] = Counter()
        """The greatest number of layers of each kind in a pass."""
        self._kinds: dict[str, Kind] = {}
        self._places: dict[tuple[str, int], CallPlace] = {}
        self.begin()

    def begin(self) -> None:
        """A forward pass begins."""
        self._layers: Counter[Kind] = Counter()
        self._occurrences: Counter[str] = Counter()

    def place(self, name: str, kind: Kind) -> CallPlace:
        """The place of the next call."""
        occurrence = self._occurrences[name]
        self._occurrences[name] += 1
        known = self._places.get((name, occurrence))
        if known is not None and recomputing():
            return known  # a part of a pass runs again, so it cannot be numbered by counting
        layer = self._layers[kind]
        self._layers[kind] += 1
        self._kinds[name] = kind
        self.layers[kind] = max(self.layers[kind], layer + 1)
        place = self._places[name, occurrence] = CallPlace(name, kind, layer, occurrence, recorded=True)
        return place

    def kind_before(self, name: str) -> Kind | None:
        """The kind of the last call of a module; None if it was not called yet."""
        return self._kinds.get(name)


def recomputing() -> bool:
    """Whether a backward pass is running: a forward pass inside it is one that checkpointing repeats."""
    return bool(torch._C._current_graph_task_id() != -1)
