"""A call that grows while a model generates, and the rule of what continues it.

    AttentionStep, one or several → ScoredCallBuilder → ScoredCall

When a model generates, it reads the prompt and then one token after another, each time with the keys
of everything before in a cache. A step *continues* the earlier call of the same module if

* its first query is exactly where the earlier call ended (there is a cache, and it is that long),
* the batch is the same, and
* the keys of the positions that both have are equal, bit by bit.

The keys of all positions are compared in the first layer of a pass, where they say which tokens were
read. If they are equal, the other layers compare only the last key, which depends on all before it.

Cross-attention has the same keys at every step; it continues if they are equal and its decoder is
where its rows end. Every other step begins a new call, in the next *run*. So nothing is ever
overwritten, and two forward passes stay two.

During a beam search each row of a pass can continue any row of the pass before; see ``beam_rows.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from regard.errors import RecordingError
from regard.interception.call_types import AttentionStep, CallPlace, Kind, MaskView
from regard.kernels import attention_with_lse
from regard.masks import Mask
from regard.masks.extent import Extent
from regard.recording.beam_rows import BeamRows, SelectedMaskView, along, parents, without_ended
from regard.recording.output_gradients import OutputGradients
from regard.recording.scored_call import ScoredCall
from regard.recording.selection import longer_bias, mask_of_heads
from regard.recording.step_masks import MaskRows, StackedMask
from regard.recording.summary_call import SummaryCall
from regard.recording.watch_options import WatchOptions


class CallBuilder(ABC):
    """One call while generation may still append to it."""

    def __init__(self, place: CallPlace, step: AttentionStep, options: WatchOptions, run: int) -> None:
        self.place = place
        self.run = run
        self.options = options
        self.keys = step.k.shape[2]
        self.start, self.stop, self.first_key = step.past, step.stop, step.first_key
        self.prompt_end = step.stop  # after the last step with several rows: where generation began
        self.views: list[tuple[int, int, MaskView]] = [(step.past, step.stop, step.view)]

    @property
    def cross(self) -> bool:
        """Whether the keys belong to another text."""
        return self.place.kind == "cross"

    @property
    def kind(self) -> Kind:
        """The kind of the call: one that grew is a decoder's, whatever its first rows looked like."""
        grew = self.place.kind == "encoder" and len(self.views) > 1
        return "decoder" if grew else self.place.kind

    # ---- what comes next -----------------------------------------------------------------------

    @abstractmethod
    def _shared_keys(self, step: AttentionStep, *, last_only: bool) -> tuple[Tensor, Tensor]:
        """Our keys and those of the step at the positions that both have, or only at the last of them."""

    def _begins_here(self, step: AttentionStep, past: int) -> bool:
        """Whether the step begins where this call ends."""
        return past > 0 and past == self.stop and step.first_key <= past

    def continued_by(self, step: AttentionStep, past: int, *, last_only: bool = False) -> bool:
        """Whether the step continues this call; see the rule at the top."""
        if not self._begins_here(step, past):
            return False
        own, other = self._shared_keys(step, last_only=last_only)
        if own.shape[1:] != other.shape[1:]:
            return False
        if own.shape == other.shape and torch.equal(own, other):
            return True
        if max(len(own), len(other)) > 1 and parents(own, other) is not None:
            raise RecordingError(
                "A beam search can only be followed if the model whose generate() runs is being watched.",
                got="a batch that was reordered at position {past} of {name}",
                do="Watch the model whose generate() you call, or watch one forward pass over the best text.",
                past=past,
                name=self.place.name,
            )
        return False

    def append(self, step: AttentionStep) -> None:
        """Append the rows of the step, and its new keys."""
        self._append_rows(step)
        if not self.cross:
            self._append_view(step)
        self.keys = step.k.shape[2] if self.cross else step.stop - self.first_key
        self.stop = step.stop
        if step.q.shape[2] > 1:
            self.prompt_end = self.stop

    @abstractmethod
    def _append_rows(self, step: AttentionStep) -> None:
        """Append what is kept of the rows and new keys of the step."""

    def _append_view(self, step: AttentionStep) -> None:
        start, stop, before = self.views[-1]
        merged = step.view.after(before, stop)
        if merged is not None:
            self.views[-1] = (start, step.stop, merged)
        else:
            self.views.append((step.past, step.stop, step.view))

    # ---- as a call -----------------------------------------------------------------------------

    def _mask(self) -> Mask:
        """The mask of all rows, before heads are selected."""
        first = self.first_key
        if len(self.views) == 1:
            return self.views[0][2].over(first, first + self.keys)
        steps = ((start, stop, view.over(first, stop)) for start, stop, view in self.views)
        return StackedMask(tuple(MaskRows(start - first, stop - first, view) for start, stop, view in steps))

    def _described(self) -> dict[str, Any]:
        """What all types of call have in common."""
        return {
            "name": self.place.name,
            "kind": self.kind,
            "layer": self.place.layer,
            "run": self.run,
            "numbers": self.options.heads,
            "mask": self._of_heads(self._mask(), Extent(self.stop - self.start, self.keys)),
        }

    def _of_heads(self, mask: Mask, extent: Extent) -> Mask:
        """The mask of the heads that are kept."""
        heads = self.options.heads
        return mask if heads is None else mask_of_heads(mask, heads, extent)


class ScoredCallBuilder(CallBuilder):
    """Q, K and lse of a call while generation may still append to it."""

    def __init__(self, place: CallPlace, step: AttentionStep, options: WatchOptions, run: int) -> None:
        super().__init__(place, step, options, run)
        self.scale, self.softcap, self.sinks, self.bias = step.scale, step.softcap, step.sinks, step.bias
        self.inside: tuple[Tensor, Tensor] | None = None  # (text, query), (text, key): within the text
        parts = {"q": step.q, "k": step.k, "v": step.v} if options.values else {"q": step.q, "k": step.k}
        self.buffers = {
            name: Buffer(tensor.to(options.dtype or tensor.dtype), axis=2) for name, tensor in parts.items()
        }
        self.gradients = OutputGradients(place.name) if options.gradients else None
        self.projection = self._projection(step)
        self.projection_bias = None
        if options.projections is not None and self.projection is not None:
            self.projection_bias = options.projections.bias(place.name)
        lse = _lse(step)
        self.own_lse = not _exact(step.q.dtype, self.buffers["q"].rows.dtype)
        self.buffers["lse"] = Buffer(lse[:, :, :0] if self.own_lse else lse, axis=2)
        self.follow_gradient(step, 0)

    def _projection(self, step: AttentionStep) -> Tensor | None:
        """Each head's part of the output projection, if the watch keeps it and it is known."""
        known = self.options.projections
        if known is None:
            return None
        numbers = range(step.q.shape[1]) if self.options.heads is None else self.options.heads
        return known.by_head(self.place.name, tuple(numbers), step.v.shape[-1])

    def add_residual(self, first_row: int, x: Tensor) -> None:
        """Keep what the outputs of some rows were added to, ``(batch, query, width)``."""
        if self.projection is None or x.shape[-1] != self.projection.shape[-1]:
            return
        rows, known = x[:, None], self.buffers.get("residual")  # with an axis of heads, as all buffers have
        if known is None and first_row == 0:
            self.buffers["residual"] = Buffer(rows.to(self.options.dtype or rows.dtype), axis=2)
        elif known is not None and known.rows.shape[2] == first_row and len(known.rows) == len(rows):
            known.append(rows.to(known.rows.dtype))

    # ---- gradients -----------------------------------------------------------------------------

    def follow_gradient(self, step: AttentionStep, first_row: int) -> None:
        """Wait for the gradient of the output of a step, whose rows begin at ``first_row``."""
        if self.gradients is not None and step.output is not None:
            self.gradients.follow(step.output, first_row, self.options.heads, step.dropout)

    def repeated_by(self, place: CallPlace, step: AttentionStep) -> bool:
        """Whether the step computes this call a second time."""
        q = self.buffers["q"].rows
        same = place.name == self.place.name and q.shape == step.q.shape
        return same and torch.equal(q, step.q.detach().to(q.dtype))

    # ---- what comes next -----------------------------------------------------------------------

    def _begins_here(self, step: AttentionStep, past: int) -> bool:
        keys = self.buffers["k"].rows
        same_heads = step.k.shape[1] == keys.shape[1] and step.k.shape[3] == keys.shape[3]
        return same_heads and super()._begins_here(step, past)

    def searched_by(self, step: AttentionStep, past: int) -> bool:
        """Whether every row of a step of a beam search continues one of our rows."""
        if not self._begins_here(step, past):
            return False
        own, other = self._shared_keys(step, last_only=True)
        if own.shape[1:] != other.shape[1:]:
            return False
        found = parents(own, other)
        if found is not None and len(own) != len(other):
            self._take(found)  # each prompt became several rows
        return found is not None

    def _shared_keys(self, step: AttentionStep, *, last_only: bool) -> tuple[Tensor, Tensor]:
        ours, theirs = self.buffers["k"].rows, step.k.detach()
        if not self.cross:
            first = self.stop - 1 if last_only else max(step.first_key, self.first_key)
            theirs = theirs[:, :, first - step.first_key : self.stop - step.first_key]
            ours = ours[:, :, first - self.first_key :]
        return ours, theirs.to(ours.dtype)

    def _append_rows(self, step: AttentionStep) -> None:
        self.follow_gradient(step, self.buffers["q"].rows.shape[2])
        self.buffers["q"].append(step.q.to(self.buffers["q"].rows.dtype))
        if not self.own_lse:
            self.buffers["lse"].append(_lse(step))
        if self.cross:
            return
        new_keys = slice(self.stop - step.first_key, None)
        for name, tensor in (("k", step.k), ("v", step.v)):
            if name in self.buffers:
                self.buffers[name].append(tensor[:, :, new_keys].to(self.buffers[name].rows.dtype))
        self.bias = longer_bias(self.bias, step.bias, self.stop - self.start, self.place.name)

    # ---- beam search ---------------------------------------------------------------------------

    def _take(self, rows: Tensor) -> None:
        """Select rows of the batch; a row can occur several times."""
        for name, buffer in self.buffers.items():
            self.buffers[name] = Buffer(buffer.rows[rows.to(buffer.rows.device)], axis=2)
        self.bias = None if self.bias is None else self.bias.select(batch=rows)
        self.views = [(start, stop, SelectedMaskView(view, rows)) for start, stop, view in self.views]

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Keep only the texts that a beam search returned."""
        if self.place.kind == "encoder" and self.prompt_end == self.stop:
            return  # it read the prompts, each once
        beams = BeamRows(rows, max(prompt, self.prompt_end))
        stop = min(self.stop, beams.stop)
        queries = beams.at(self.start, stop)
        keys = beams.at(self.first_key, stop)
        self.buffers["q"] = Buffer(along(self.buffers["q"].rows, queries), axis=2)
        self._follow_residual(queries)
        lse = self.buffers["lse"].rows
        none = lse.new_empty(len(rows), lse.shape[1], 0)  # to be computed from the chosen rows
        self.buffers["lse"] = Buffer(none if self.own_lse else along(lse, queries), axis=2)
        for name in {"k", "v"} & self.buffers.keys():
            rows_of_keys = self.buffers[name].rows
            if self.cross:
                chosen = rows_of_keys[rows[:, 0].to(rows_of_keys.device)]
            else:
                chosen = along(rows_of_keys, keys)
            self.buffers[name] = Buffer(chosen, axis=2)
        self.views = [
            (start, min(end, stop), SelectedMaskView(view, beams.at(start, start + 1)[:, 0].clamp(min=0)))
            for start, end, view in self.views
            if start < stop
        ]
        self.bias = None if self.bias is None else self.bias.select(batch=rows[:, 0])
        self.inside = (queries >= 0, keys >= 0)
        self.stop = stop
        if not self.cross:
            self.keys = stop - self.first_key
            self.bias = None if self.bias is None else self.bias.crop(slice(0, stop - self.start), self.keys)

    def _follow_residual(self, queries: Tensor) -> None:
        known = self.buffers.pop("residual", None)
        if known is not None and known.rows.shape[2] >= queries.shape[1]:
            self.buffers["residual"] = Buffer(along(known.rows, queries), axis=2)

    # ---- as a call -----------------------------------------------------------------------------

    def _mask(self) -> Mask:
        mask = super()._mask()
        if self.inside is None:
            return mask
        return without_ended(mask, self.inside[0], None if self.cross else self.inside[1])

    def _complete_lse(self) -> None:
        """Compute the lse of rows whose Q and K were rounded, from Q and K as they are kept.

        The lse that the model computed belongs to other scores: with it, weights would exceed 1.
        """
        buffer = self.buffers["lse"]
        begin = self.start + buffer.rows.shape[2]
        for start, stop, mask in self._masks_from(begin):
            keys = self.keys if self.cross else stop - self.first_key
            wide = buffer.rows.dtype
            q = self.buffers["q"].rows[:, :, start - self.start : stop - self.start].to(wide)
            k = self.buffers["k"].rows[:, :, :keys].to(wide)
            rows = slice(start - self.start, stop - self.start)
            with torch.no_grad(), torch.autocast(q.device.type, enabled=False):
                _, lse = attention_with_lse(
                    q,
                    k,
                    k,
                    mask=self._of_heads(mask, Extent(stop - start, keys)),
                    bias=None if self.bias is None else self.bias.crop(rows, keys),
                    scale=self.scale,
                    softcap=self.softcap,
                    sinks=self.sinks,
                )
            buffer.append(lse)

    def _masks_from(self, begin: int) -> Iterator[tuple[int, int, Mask]]:
        """The spans of rows from ``begin`` on, each with the mask over its keys."""
        if self.cross:
            if begin < self.stop:
                yield begin, self.stop, self.views[0][2].over(self.first_key, self.first_key + self.keys)
            return
        for start, stop, view in self.views:
            if stop > begin:
                yield max(start, begin), stop, view.over(self.first_key, stop)

    def call(self) -> ScoredCall | SummaryCall:
        """The call so far, as its statistics if that is what the watch keeps."""
        self._complete_lse()
        tensors: dict[str, Any] = {name: buffer.finish() for name, buffer in self.buffers.items()}
        residual = tensors.pop("residual", None)
        if residual is not None and residual.shape[2] == tensors["q"].shape[2]:  # every row has one
            tensors["residual"] = residual[:, 0]
        if self.inside is not None:
            tensors["lse"] = tensors["lse"].masked_fill(~self.inside[0][:, None], -torch.inf)
        call = ScoredCall(
            **tensors,
            **self._described(),
            bias=self.bias,
            scale=self.scale,
            softcap=self.softcap,
            sinks=self.sinks,
            output_gradient=self._output_gradient(),
            projection=self.projection,
            projection_bias=self.projection_bias,
        )
        return call.summary(self.options.top) if self.options.statistics else call

    def _output_gradient(self) -> Tensor | None:
        """dO of all rows, in the dtype in which it is kept."""
        if self.gradients is None or not self.gradients.received:
            return None
        found = self.gradients.over(self.buffers["q"].rows.shape[2])
        # Gradients are often below the smallest number of float16.
        kept = self.options.dtype or self.buffers["v"].rows.dtype
        return found if kept == torch.float16 else found.to(kept)


def _lse(step: AttentionStep) -> Tensor:
    """The lse of a step, which is computed for every step that a writer keeps."""
    assert step.lse is not None
    return step.lse


def _exact(computed: torch.dtype, kept: torch.dtype) -> bool:
    """Whether the lse that came with Q and K belongs to what is kept of them, to the last digit.

    Torch's kernel for half precisions rounds inside, so that its lse is off by some 1e-4.
    """
    return computed in (torch.float32, torch.float64) and torch.promote_types(computed, kept) == kept


class Buffer:
    """Rows appended along one axis; the capacity doubles, so that n steps copy O(n) and not O(n²).

    >>> buffer = Buffer(torch.zeros(1, 2, 3), axis=1)
    >>> buffer.append(torch.ones(1, 1, 3))
    >>> buffer.rows[0, :, 0]
    tensor([0., 0., 1.])
    """

    def __init__(self, rows: Tensor, *, axis: int) -> None:
        self._axis = axis
        # A copy, because models may reuse their memory and a view would keep more alive.
        self._storage = rows.detach().clone(memory_format=torch.contiguous_format)
        self._length = rows.shape[axis]

    @property
    def rows(self) -> Tensor:
        """All rows so far, as a view."""
        return self._storage.narrow(self._axis, 0, self._length)

    def append(self, rows: Tensor) -> None:
        """Append rows."""
        needed = self._length + rows.shape[self._axis]
        if needed > self._storage.shape[self._axis]:
            shape = list(self._storage.shape)
            shape[self._axis] = max(needed, 2 * self._length)
            larger = self._storage.new_empty(shape)
            larger.narrow(self._axis, 0, self._length).copy_(self.rows)
            self._storage = larger
        self._storage.narrow(self._axis, self._length, rows.shape[self._axis]).copy_(rows.detach())
        self._length = needed

    def finish(self) -> Tensor:
        """All rows, without spare capacity."""
        if self._length < self._storage.shape[self._axis]:
            self._storage = self.rows.clone(memory_format=torch.contiguous_format)
        return self._storage
