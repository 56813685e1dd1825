"""The tape: attention calls come in one by one, and those of one text are joined into one record.

When a model generates, it reads the prompt and then token after token, each time with the keys of
all that came before in a cache. A call *continues* the earlier one of the same module if

* its first query stands exactly where the earlier one ended (there is a cache, and it is that long),
* the batch is the same, and
* the keys of the positions that both know are equal, bit by bit.

The keys of all positions are compared in the first layer of a pass, where they say which tokens were
read. Where those are equal, the other layers compare the last key, which depends on all before it.

Cross-attention has the same keys at every step; it continues if they are equal and the decoder that
it belongs to stands where its rows end. Every other call begins a record of its own, in the next
*run*. So nothing is ever overwritten, and two forward passes stay two.

During a beam search each row of a pass goes on from any row of the pass before; see ``beams.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.errors import ArgumentError, RecordingError
from regard.interception.steps import Slot, Step, View, Wanted
from regard.kernels import attention_with_lse
from regard.masks import Mask
from regard.masks.extent import Extent
from regard.recording.beam_rows import (
    ChosenView,
    Lineage,
    Search,
    along,
    bias_of_rows,
    parents,
    without_ended,
)
from regard.recording.buffer import Growing
from regard.recording.call import Call, Kind
from regard.recording.kept_statistics import joined, placed
from regard.recording.selection import bias_of_rows_and_keys, longer_bias, mask_of_heads, of_heads
from regard.recording.step_masks import Rows, Stacked


class Grows(Protocol):
    """A call while it may still grow."""

    run: int

    def call(self) -> Call:
        """The call as it is now."""

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Leave only the texts that a beam search returned; see :class:`regard.recording.beam_rows.Lineage`."""


class Tape:
    """Takes steps in, gives calls out."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.tracks: list[Grows] = []
        self.latest: dict[tuple[str, int], Grows] = {}
        self.steps = 0
        self._seen_layers: Counter[Kind] = Counter()
        self._kinds: dict[str, Kind] = {}
        self._search: Search | None = None
        self.begin()

    def begin(self) -> None:
        """A module was called from outside: a pass through the model begins."""
        self._layers: Counter[Kind] = Counter()
        self._occurrences: Counter[str] = Counter()
        self._past = 0
        self._same_text = False  # whether a layer of this pass has compared all of its keys

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
        if step.past != self._past:
            step = replace(step, past=self._past)
        step = of_heads(step, self.wanted.heads)
        if self._search is not None:
            # Statistics are of whole texts, and which texts these will be is not known yet.
            step = replace(step, statistics=None)
        track = self.latest.get((slot.name, slot.occurrence))
        if isinstance(track, Track) and self._continues(track, step):
            track.append(step)
            self.touch(track)
            return
        self.put(slot, Track(slot, step, self.wanted, 0 if track is None else track.run + 1))

    def _continues(self, track: Track, step: Step) -> bool:
        if self._search is not None:
            return track.searched_by(step, self._past)
        continues = track.continued_by(step, self._past, last_only=self._same_text)
        self._same_text = self._same_text or (continues and not track.cross)
        return continues

    # ---- beam search ---------------------------------------------------------------------------

    def begin_search(self) -> None:
        """From here on rows of the batch may go on from one another, until the search ends."""
        self._search = Search()

    def touch(self, track: Grows) -> None:
        """Rows were written into a record: the search that runs, if one does, is to know."""
        if self._search is not None:
            self._search.touch(track)

    def end_search(self, rows: Tensor | None = None, prompt: int = 0) -> None:
        """Keep the texts that the search returned; without ``rows``, everything as it was read."""
        search, self._search = self._search, None
        if search is not None and rows is not None:
            search.follow(rows, prompt)

    # ---- records -------------------------------------------------------------------------------

    def kind_before(self, name: str) -> Kind | None:
        """What the module was when it was last called, if it was."""
        return self._kinds.get(name)

    def put(self, slot: Slot, track: Grows) -> None:
        """Begin a record."""
        before = self.latest.get((slot.name, slot.occurrence))
        if self._search is not None:
            self._search.again |= any(before is known for known in self._search.tracks)
        self.touch(track)
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
        self.keys = step.k.shape[2]
        self.start, self.stop, self.first_key = step.past, step.stop, step.first_key
        self.border = step.stop  # behind the last step of several rows: where generation began
        self.views: list[tuple[int, int, View]] = [(step.past, step.stop, step.view)]
        self.kept = step.statistics
        self.last_key = None if self.kept is None else step.k[:, :, -1:].detach().clone()
        self.bias = step.bias if self.kept is None else None
        self.sees: tuple[Tensor, Tensor] | None = None  # (text, query) and (text, key): not behind the end
        self.grown: dict[str, Growing] = {}
        if self.kept is None:
            parts = {"q": step.q, "k": step.k, "v": step.v} if wanted.values else {"q": step.q, "k": step.k}
            for name, tensor in parts.items():
                self.grown[name] = Growing(tensor.to(wanted.dtype or tensor.dtype), axis=2)
            assert step.lse is not None
            self.own_lse = not _exact(step.q.dtype, self.grown["q"].rows.dtype)
            self.grown["lse"] = Growing(step.lse[:, :, :0] if self.own_lse else step.lse, axis=2)
        # What was copied need not be held twice, and a view of nothing would still hold all of it.
        empty = step.q.new_empty(0)
        self.first = replace(step, q=empty, k=empty, v=empty, lse=None, statistics=None, bias=None)

    @property
    def cross(self) -> bool:
        """Whether the keys belong to another text."""
        return self.slot.kind == "cross"

    # ---- what comes next -----------------------------------------------------------------------

    def _next(self, step: Step, past: int) -> bool:
        """Whether the step stands behind ours, and has keys like ours."""
        if not past or past != self.stop or step.first_key > past:
            return False
        ours = self.last_key if "k" not in self.grown else self.grown["k"].rows
        assert ours is not None
        return step.k.shape[1] == ours.shape[1] and step.k.shape[3] == ours.shape[3]

    def continued_by(self, step: Step, past: int, *, last_only: bool = False) -> bool:
        """Whether the step goes on where this ended; see the rule at the top."""
        if not self._next(step, past):
            return False
        own, other = self._shared_keys(step, last_only=last_only)
        if own.shape[1:] != other.shape[1:]:
            return False
        if own.shape == other.shape and torch.equal(own, other):
            return True
        if max(len(own), len(other)) > 1 and parents(own, other) is not None:
            raise RecordingError(
                "A beam search is followed from the generate() of a model that is watched.",
                got=f"a batch that was reordered at position {past} of {self.slot.name}",
                do="Watch the model whose generate() you call, or watch one forward pass over the best text.",
            )
        return False

    def searched_by(self, step: Step, past: int) -> bool:
        """Whether every row of a beam search's pass goes on from one of our rows."""
        if self.kept is not None or not self._next(step, past):
            return False
        own, other = self._shared_keys(step, last_only=True)
        if own.shape[1:] != other.shape[1:]:
            return False
        found = parents(own, other)
        if found is not None and len(own) != len(other):
            self._take(found)  # each prompt became several rows
        return found is not None

    def _shared_keys(self, step: Step, *, last_only: bool) -> tuple[Tensor, Tensor]:
        """The keys at the positions that both know, or the last of them alone."""
        theirs = step.k.detach()
        if self.cross:
            return self.grown["k"].rows, theirs.to(self.grown["k"].rows.dtype)
        first = self.stop - 1 if last_only or "k" not in self.grown else max(step.first_key, self.first_key)
        theirs = theirs[:, :, first - step.first_key : self.stop - step.first_key]
        if "k" not in self.grown:
            assert self.last_key is not None
            return self.last_key, theirs
        ours = self.grown["k"].rows
        return ours[:, :, first - self.first_key :], theirs.to(ours.dtype)

    def append(self, step: Step) -> None:
        """The rows of the step behind ours, and the keys that are new."""
        new_keys = slice(self.stop - step.first_key, None)
        if self.kept is not None:
            assert step.statistics is not None
            self.kept = joined(self.kept, placed(step.statistics, step.first_key - self.first_key))
            self.last_key = step.k[:, :, -1:].detach().clone()
        else:
            assert step.lse is not None
            self.grown["q"].append(step.q.to(self.grown["q"].rows.dtype))
            if not self.own_lse:
                self.grown["lse"].append(step.lse)
            for name, tensor in (("k", step.k), ("v", step.v)):
                if name in self.grown and not self.cross:
                    self.grown[name].append(tensor[:, :, new_keys].to(self.grown[name].rows.dtype))
        if not self.cross:
            self._see(step)
        if not self.cross and self.kept is None:
            self.bias = longer_bias(self.bias, step.bias, self.stop - self.start, self.slot.name)
        self.keys = step.k.shape[2] if self.cross else step.stop - self.first_key
        self.stop = step.stop
        if step.q.shape[2] > 1:
            self.border = self.stop

    def _see(self, step: Step) -> None:
        start, stop, before = self.views[-1]
        merged = step.view.after(before, stop)
        if merged is not None:
            self.views[-1] = (start, step.stop, merged)
        else:
            self.views.append((step.past, step.stop, step.view))

    # ---- beam search ---------------------------------------------------------------------------

    def _take(self, rows: Tensor) -> None:
        """These rows of the batch in place of all of them; one may come several times."""
        for name, grown in self.grown.items():
            self.grown[name] = Growing(grown.rows[rows.to(grown.rows.device)], axis=2)
        self.bias = bias_of_rows(self.bias, rows)
        self.views = [(start, stop, ChosenView(view, rows)) for start, stop, view in self.views]

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Leave only the texts that a beam search returned."""
        if self.slot.kind == "encoder" and self.border == self.stop:
            return  # it read the prompts, each once
        lineage = Lineage(rows, max(prompt, self.border))
        stop = min(self.stop, lineage.stop)
        queries = lineage.at(self.start, stop)
        keys = lineage.at(self.first_key, stop)
        self.grown["q"] = Growing(along(self.grown["q"].rows, queries), axis=2)
        lse = self.grown["lse"].rows
        none = lse.new_empty(len(rows), lse.shape[1], 0)  # to be computed from the chosen rows
        self.grown["lse"] = Growing(none if self.own_lse else along(lse, queries), axis=2)
        for name in {"k", "v"} & self.grown.keys():
            rows_of_keys = self.grown[name].rows
            if self.cross:
                chosen = rows_of_keys[rows[:, 0].to(rows_of_keys.device)]
            else:
                chosen = along(rows_of_keys, keys)
            self.grown[name] = Growing(chosen, axis=2)
        self.views = [
            (start, min(end, stop), ChosenView(view, lineage.at(start, start + 1)[:, 0].clamp(min=0)))
            for start, end, view in self.views
            if start < stop
        ]
        self.bias = bias_of_rows(self.bias, rows[:, 0])
        self.sees = (queries >= 0, keys >= 0)
        self.stop = stop
        if not self.cross:
            self.keys = stop - self.first_key
            self.bias = bias_of_rows_and_keys(self.bias, slice(0, stop - self.start), self.keys)

    # ---- as a call -----------------------------------------------------------------------------

    def _mask(self) -> Mask:
        first = self.first_key
        if len(self.views) == 1:
            mask = self.views[0][2].over(first, first + self.keys)
        else:
            steps = ((start, stop, view.over(first, stop)) for start, stop, view in self.views)
            mask = Stacked(tuple(Rows(start - first, stop - first, view) for start, stop, view in steps))
        if self.sees is not None:
            mask = without_ended(mask, self.sees[0], None if self.cross else self.sees[1])
        return mask_of_heads(mask, self.wanted.heads, Extent(self.stop - self.start, self.keys))

    def _complete_lse(self) -> None:
        """The lse of rows whose Q and K were rounded, from Q and K as they are kept.

        The lse that the model computed belongs to other scores: with it, weights would exceed 1.
        """
        grown = self.grown.get("lse")
        if grown is None:
            return
        begin = self.start + grown.rows.shape[2]
        for start, stop, mask in self._masks_from(begin):
            keys = self.keys if self.cross else stop - self.first_key
            wide = grown.rows.dtype
            q = self.grown["q"].rows[:, :, start - self.start : stop - self.start].to(wide)
            k = self.grown["k"].rows[:, :, :keys].to(wide)
            rows = slice(start - self.start, stop - self.start)
            with torch.no_grad(), torch.autocast(q.device.type, enabled=False):
                _, lse = attention_with_lse(
                    q,
                    k,
                    k,
                    mask=mask_of_heads(mask, self.wanted.heads, Extent(stop - start, keys)),
                    bias=bias_of_rows_and_keys(self.bias, rows, keys),
                    scale=self.first.scale,
                    softcap=self.first.softcap,
                    sinks=self.first.sinks,
                )
            grown.append(lse)

    def _masks_from(self, begin: int) -> Iterator[tuple[int, int, Mask]]:
        """The stretches of rows from ``begin`` on, each with the mask over its keys."""
        if self.cross:
            if begin < self.stop:
                yield begin, self.stop, self.views[0][2].over(self.first_key, self.first_key + self.keys)
            return
        for start, stop, view in self.views:
            if stop > begin:
                yield max(start, begin), stop, view.over(self.first_key, stop)

    def call(self) -> Call:
        """The call as it is now."""
        kind: Kind = self.slot.kind
        if kind == "encoder" and len(self.views) > 1:
            kind = "decoder"  # it grew from step to step, whatever its first rows looked like
        self._complete_lse()
        tensors: dict[str, Any] = {name: grown.finish() for name, grown in self.grown.items()}
        if self.sees is not None:
            tensors["lse"] = tensors["lse"].masked_fill(~self.sees[0][:, None], -torch.inf)
        call = Call(
            name=self.slot.name,
            kind=kind,
            layer=self.slot.layer,
            mask=self._mask(),
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


def _exact(computed: torch.dtype, kept: torch.dtype) -> bool:
    """Whether the lse that came with Q and K belongs to what is kept of them, to the last digit.

    Torch's kernel for half precisions rounds inside, so that its lse is off by some 1e-4.
    """
    return computed in (torch.float32, torch.float64) and torch.promote_types(computed, kept) == kept
