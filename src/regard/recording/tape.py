"""The tape: attention calls come in one by one, and those of one text are joined into one record.

When a model generates, it reads the prompt and then token after token, each time with the keys of
all that came before in a cache. A call *continues* the earlier one of the same module if

* its first query stands exactly where the earlier one ended (there is a cache, and it is that long),
* the batch is the same, and
* the keys of the positions that both know are equal, bit by bit.

Cross-attention has the same keys at every step; it continues if they are equal and the decoder that
it belongs to stands where its rows end. Every other call begins a record of its own, in the next
*run*. So nothing is ever overwritten, and two forward passes stay two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.errors import ArgumentError, RecordingError
from regard.masks import Mask
from regard.masks.positions import Extent
from regard.recording.call import Call, Kind
from regard.recording.choosing import longer_bias, mask_of_heads, of_heads
from regard.recording.growing import Growing
from regard.recording.stacking import Rows, Stacked
from regard.recording.steps import Slot, Step, View, Wanted
from regard.recording.summaries import joined, placed


class Grows(Protocol):
    """A call while it may still grow."""

    run: int

    def call(self) -> Call:
        """The call as it is now."""


class Tape:
    """Takes steps in, gives calls out."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.tracks: list[Grows] = []
        self.latest: dict[tuple[str, int], Grows] = {}
        self.steps = 0
        self._seen_layers: Counter[Kind] = Counter()
        self._kinds: dict[str, Kind] = {}
        self.begin()

    def begin(self) -> None:
        """A module was called from outside: a pass through the model begins."""
        self._layers: Counter[Kind] = Counter()
        self._occurrences: Counter[str] = Counter()
        self._past = 0

    def slot(self, name: str, kind: Kind) -> Slot:
        """The place of the next call. Layers of a kind are numbered in the order they are called."""
        self.steps += 1
        layer, occurrence = self._layers[kind], self._occurrences[name]
        self._layers[kind] += 1
        self._occurrences[name] += 1
        self._kinds[name] = kind
        self._seen_layers[kind] = max(self._seen_layers[kind], layer + 1)
        layers = self.wanted.layers
        return Slot(name, kind, layer, occurrence, layers is None or layer in layers)

    def add(self, slot: Slot, step: Step) -> None:
        """Record a step: as the next rows of a call, or as a new one."""
        if slot.kind != "cross":
            self._past = step.past
        if not slot.wanted:
            return
        step = of_heads(replace(step, past=self._past), self.wanted.heads)
        track = self.latest.get((slot.name, slot.occurrence))
        if isinstance(track, Track) and track.continued_by(step, self._past):
            track.append(step)
            return
        self.put(slot, Track(slot, step, self.wanted, 0 if track is None else track.run + 1))

    def kind_before(self, name: str) -> Kind | None:
        """What the module was when it was last called, if it was."""
        return self._kinds.get(name)

    def put(self, slot: Slot, track: Grows) -> None:
        """Begin a record."""
        self.latest[slot.name, slot.occurrence] = track
        self.tracks.append(track)

    def calls(self) -> tuple[Call, ...]:
        """What was recorded so far."""
        return tuple(track.call() for track in self.tracks)

    def check_layers(self) -> None:
        """Raise if a layer was asked for that no pass had."""
        known = max(self._seen_layers.values(), default=0)
        missing = [layer for layer in self.wanted.layers or () if layer >= known]
        if missing and known:
            raise_unknown_layers(missing, known)


class Passing(Tape):
    """Hands each call on as soon as it is made and keeps none, so that memory is that of one call."""

    def __init__(self, wanted: Wanted, hear: Callable[[Call], None]) -> None:
        super().__init__(wanted)
        self.hear = hear

    def put(self, slot: Slot, track: Grows) -> None:
        """Give the call away."""
        del slot
        self.hear(track.call())


def raise_unknown_layers(missing: Sequence[int], known: int) -> None:
    """Say which layers there are."""
    raise ArgumentError(
        f"layers= names layers of the model (0 … {known - 1}).",
        got=f"layers = {list(missing)}",
        do="Leave it out to record all of them.",
    )


class Track:
    """One call while it may still grow."""

    def __init__(self, slot: Slot, step: Step, wanted: Wanted, run: int) -> None:
        self.slot = slot
        self.run = run
        self.wanted = wanted
        self.last_key = step.k[:, :, -1:].detach().clone()
        self.keys = step.k.shape[2]
        self.start, self.stop, self.first_key = step.past, step.stop, step.first_key
        self.views: list[tuple[int, int, View]] = [(step.past, step.stop, step.view)]
        self.kept = step.statistics
        self.bias = step.bias if self.kept is None else None
        self.grown: dict[str, Growing] = {}
        if self.kept is None:
            parts = {"q": step.q, "k": step.k, "v": step.v} if wanted.values else {"q": step.q, "k": step.k}
            for name, tensor in parts.items():
                self.grown[name] = Growing(tensor.to(wanted.dtype or tensor.dtype), axis=2)
            assert step.lse is not None
            self.grown["lse"] = Growing(step.lse, axis=2)
        # What was copied need not be held twice, and a view of nothing would still hold all of it.
        empty = step.q.new_empty(0)
        self.first = replace(step, q=empty, k=empty, v=empty, lse=None, statistics=None, bias=None)

    @property
    def cross(self) -> bool:
        """Whether the keys belong to another text."""
        return self.slot.kind == "cross"

    def continued_by(self, step: Step, past: int) -> bool:
        """Whether the step goes on where this ended; see the rule at the top."""
        if not past or past != self.stop or step.first_key > past:
            return False
        if step.k.shape[1] != self.last_key.shape[1]:
            return False
        own, other = self._shared_keys(step)
        if own.shape[1:] != other.shape[1:]:
            return False
        if own.shape == other.shape and torch.equal(own, other):
            return True
        if _reordered(own, other):
            raise RecordingError(
                "Steps that are joined keep the order of the batch.",
                got=f"a batch that was reordered at position {past} of {self.slot.name}, as beam search does",
                do="Generate with num_beams=1, then watch one forward pass over the best text.",
            )
        return False

    def _shared_keys(self, step: Step) -> tuple[Tensor, Tensor]:
        """The keys at the positions that both know: all of them, or the last one where none are kept."""
        theirs = step.k.detach()
        if self.cross:
            return self.grown["k"].rows, theirs.to(self.grown["k"].rows.dtype)
        if "k" not in self.grown:
            position = self.stop - 1 - step.first_key
            return self.last_key, theirs[:, :, position : position + 1]
        ours = self.grown["k"].rows
        first = max(step.first_key, self.first_key)
        theirs = theirs[:, :, first - step.first_key : self.stop - step.first_key]
        return ours[:, :, first - self.first_key :], theirs.to(ours.dtype)

    def append(self, step: Step) -> None:
        """The rows of the step behind ours, and the keys that are new."""
        new_keys = slice(self.stop - step.first_key, None)
        if self.kept is not None:
            assert step.statistics is not None
            self.kept = joined(self.kept, placed(step.statistics, step.first_key - self.first_key))
        else:
            assert step.lse is not None
            self.grown["q"].append(step.q.to(self.grown["q"].rows.dtype))
            self.grown["lse"].append(step.lse)
            for name, tensor in (("k", step.k), ("v", step.v)):
                if name in self.grown and not self.cross:
                    self.grown[name].append(tensor[:, :, new_keys].to(self.grown[name].rows.dtype))
        if not self.cross:
            self._see(step)
        if not self.cross and self.kept is None:
            self.bias = longer_bias(self.bias, step.bias, self.stop - self.start, self.slot.name)
        self.last_key = step.k[:, :, -1:].detach().clone()
        self.keys = step.k.shape[2] if self.cross else step.stop - self.first_key
        self.stop = step.stop

    def _see(self, step: Step) -> None:
        start, stop, before = self.views[-1]
        merged = step.view.after(before, stop)
        if merged is not None:
            self.views[-1] = (start, step.stop, merged)
        else:
            self.views.append((step.past, step.stop, step.view))

    def _mask(self) -> Mask:
        first = self.first_key
        if len(self.views) == 1:
            return self.views[0][2].over(first, first + self.keys)
        return Stacked(
            tuple(
                Rows(start - first, stop - first, view.over(first, stop)) for start, stop, view in self.views
            )
        )

    def call(self) -> Call:
        """The call as it is now."""
        kind: Kind = self.slot.kind
        if kind == "encoder" and len(self.views) > 1:
            kind = "decoder"  # it grew from step to step, whatever its first rows looked like
        tensors: dict[str, Any] = {name: grown.finish() for name, grown in self.grown.items()}
        call = Call(
            name=self.slot.name,
            kind=kind,
            layer=self.slot.layer,
            mask=mask_of_heads(self._mask(), self.wanted.heads, Extent(self.stop - self.start, self.keys)),
            bias=self.bias,
            scale=self.first.scale,
            softcap=self.first.softcap,
            sinks=self.first.sinks,
            run=self.run,
            numbers=self.wanted.heads,
            kept=self.kept,
            **tensors,
        )
        return call.summary(self.wanted.top) if self.wanted.statistics else call


def _reordered(own: Tensor, other: Tensor) -> bool:
    """Whether each sequence of the one batch is one of the other batch."""
    if own.shape[0] < 2 and other.shape[0] < 2:
        return False
    return all(any(torch.equal(row, old) for old in own) for row in other)
