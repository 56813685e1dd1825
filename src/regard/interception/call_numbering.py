"""Layers are numbered by kind, in the order in which a forward pass calls them."""

from __future__ import annotations

from collections import Counter

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
        """How many layers of each kind a pass had, at most."""
        self._kinds: dict[str, Kind] = {}
        self.begin()

    def begin(self) -> None:
        """A forward pass begins."""
        self._layers: Counter[Kind] = Counter()
        self._occurrences: Counter[str] = Counter()

    def place(self, name: str, kind: Kind) -> CallPlace:
        """The place of the next call."""
        layer, occurrence = self._layers[kind], self._occurrences[name]
        self._layers[kind] += 1
        self._occurrences[name] += 1
        self._kinds[name] = kind
        self.layers[kind] = max(self.layers[kind], layer + 1)
        return CallPlace(name, kind, layer, occurrence, recorded=True)

    def kind_before(self, name: str) -> Kind | None:
        """The kind of the last call of a module; None if it was not called yet."""
        return self._kinds.get(name)
