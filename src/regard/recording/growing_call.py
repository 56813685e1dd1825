"""A call that grows while a model generates, and the rule of what continues it.

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

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.errors import RecordingError
from regard.interception.steps import AttentionStep, CallPlace, Kind, MaskView
from regard.kernels import attention_with_lse
from regard.masks import Mask
from regard.masks.extent import Extent
from regard.recording.beam_rows import Lineage, SelectedMaskView, along, parents, without_ended
from regard.recording.buffer import Buffer
from regard.recording.call import Call
from regard.recording.kept_statistics import joined, placed
from regard.recording.selection import longer_bias, mask_of_heads
from regard.recording.step_masks import MaskRows, StackedMask
from regard.recording.watch_options import WatchOptions


class GrowingCall:
    """One call while generation may still append to it."""

    def __init__(self, place: CallPlace, step: AttentionStep, options: WatchOptions, run: int) -> None:
        self.place = place
        self.run = run
        self.options = options
        self.keys = step.k.shape[2]
        self.start, self.stop, self.first_key = step.past, step.stop, step.first_key
        self.prompt_end = step.stop  # after the last step with several rows: where generation began
        self.views: list[tuple[int, int, MaskView]] = [(step.past, step.stop, step.view)]
        self.kept = step.statistics
        self.last_key = None if self.kept is None else step.k[:, :, -1:].detach().clone()
        self.bias = step.bias if self.kept is None else None
        self.inside: tuple[Tensor, Tensor] | None = None  # (text, query), (text, key): within the text
        self.buffers: dict[str, Buffer] = {}
        if self.kept is None:
            parts = {"q": step.q, "k": step.k, "v": step.v} if options.values else {"q": step.q, "k": step.k}
            for name, tensor in parts.items():
                self.buffers[name] = Buffer(tensor.to(options.dtype or tensor.dtype), axis=2)
            assert step.lse is not None
            self.own_lse = not _exact(step.q.dtype, self.buffers["q"].rows.dtype)
            self.buffers["lse"] = Buffer(step.lse[:, :, :0] if self.own_lse else step.lse, axis=2)
        # What was copied must not be kept twice, and an empty view would still keep all of it alive.
        empty = step.q.new_empty(0)
        self.first = replace(step, q=empty, k=empty, v=empty, lse=None, statistics=None, bias=None)

    @property
    def cross(self) -> bool:
        """Whether the keys belong to another text."""
        return self.place.kind == "cross"

    # ---- what comes next -----------------------------------------------------------------------

    def _next(self, step: AttentionStep, past: int) -> bool:
        """Whether the step begins where this call ends, with keys of the same shape."""
        if not past or past != self.stop or step.first_key > past:
            return False
        ours = self.last_key if "k" not in self.buffers else self.buffers["k"].rows
        assert ours is not None
        return step.k.shape[1] == ours.shape[1] and step.k.shape[3] == ours.shape[3]

    def continued_by(self, step: AttentionStep, past: int, *, last_only: bool = False) -> bool:
        """Whether the step continues this call; see the rule at the top."""
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
                got="a batch that was reordered at position {past} of {name}",
                do="Watch the model whose generate() you call, or watch one forward pass over the best text.",
                past=past,
                name=self.place.name,
            )
        return False

    def searched_by(self, step: AttentionStep, past: int) -> bool:
        """Whether every row of a step of a beam search continues one of our rows."""
        if self.kept is not None or not self._next(step, past):
            return False
        own, other = self._shared_keys(step, last_only=True)
        if own.shape[1:] != other.shape[1:]:
            return False
        found = parents(own, other)
        if found is not None and len(own) != len(other):
            self._take(found)  # each prompt became several rows
        return found is not None

    def _shared_keys(self, step: AttentionStep, *, last_only: bool) -> tuple[Tensor, Tensor]:
        """The keys at the positions that both have, or only the last of them."""
        theirs = step.k.detach()
        if self.cross:
            return self.buffers["k"].rows, theirs.to(self.buffers["k"].rows.dtype)
        first = self.stop - 1 if last_only or "k" not in self.buffers else max(step.first_key, self.first_key)
        theirs = theirs[:, :, first - step.first_key : self.stop - step.first_key]
        if "k" not in self.buffers:
            assert self.last_key is not None
            return self.last_key, theirs
        ours = self.buffers["k"].rows
        return ours[:, :, first - self.first_key :], theirs.to(ours.dtype)

    def append(self, step: AttentionStep) -> None:
        """Append the rows of the step, and its new keys."""
        new_keys = slice(self.stop - step.first_key, None)
        if self.kept is not None:
            assert step.statistics is not None
            self.kept = joined(self.kept, placed(step.statistics, step.first_key - self.first_key))
            self.last_key = step.k[:, :, -1:].detach().clone()
        else:
            assert step.lse is not None
            self.buffers["q"].append(step.q.to(self.buffers["q"].rows.dtype))
            if not self.own_lse:
                self.buffers["lse"].append(step.lse)
            for name, tensor in (("k", step.k), ("v", step.v)):
                if name in self.buffers and not self.cross:
                    self.buffers[name].append(tensor[:, :, new_keys].to(self.buffers[name].rows.dtype))
        if not self.cross:
            self._see(step)
        if not self.cross and self.kept is None:
            self.bias = longer_bias(self.bias, step.bias, self.stop - self.start, self.place.name)
        self.keys = step.k.shape[2] if self.cross else step.stop - self.first_key
        self.stop = step.stop
        if step.q.shape[2] > 1:
            self.prompt_end = self.stop

    def _see(self, step: AttentionStep) -> None:
        start, stop, before = self.views[-1]
        merged = step.view.after(before, stop)
        if merged is not None:
            self.views[-1] = (start, step.stop, merged)
        else:
            self.views.append((step.past, step.stop, step.view))

    # ---- beam search ---------------------------------------------------------------------------

    def _take(self, rows: Tensor) -> None:
        """Select rows of the batch; a row can occur several times."""
        for name, grown in self.buffers.items():
            self.buffers[name] = Buffer(grown.rows[rows.to(grown.rows.device)], axis=2)
        self.bias = None if self.bias is None else self.bias.select(batch=rows)
        self.views = [(start, stop, SelectedMaskView(view, rows)) for start, stop, view in self.views]

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Keep only the texts that a beam search returned."""
        if self.place.kind == "encoder" and self.prompt_end == self.stop:
            return  # it read the prompts, each once
        lineage = Lineage(rows, max(prompt, self.prompt_end))
        stop = min(self.stop, lineage.stop)
        queries = lineage.at(self.start, stop)
        keys = lineage.at(self.first_key, stop)
        self.buffers["q"] = Buffer(along(self.buffers["q"].rows, queries), axis=2)
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
            (start, min(end, stop), SelectedMaskView(view, lineage.at(start, start + 1)[:, 0].clamp(min=0)))
            for start, end, view in self.views
            if start < stop
        ]
        self.bias = None if self.bias is None else self.bias.select(batch=rows[:, 0])
        self.inside = (queries >= 0, keys >= 0)
        self.stop = stop
        if not self.cross:
            self.keys = stop - self.first_key
            self.bias = None if self.bias is None else self.bias.crop(slice(0, stop - self.start), self.keys)

    # ---- as a call -----------------------------------------------------------------------------

    def _mask(self) -> Mask:
        first = self.first_key
        if len(self.views) == 1:
            mask = self.views[0][2].over(first, first + self.keys)
        else:
            steps = ((start, stop, view.over(first, stop)) for start, stop, view in self.views)
            mask = StackedMask(
                tuple(MaskRows(start - first, stop - first, view) for start, stop, view in steps)
            )
        if self.inside is not None:
            mask = without_ended(mask, self.inside[0], None if self.cross else self.inside[1])
        return mask_of_heads(mask, self.options.heads, Extent(self.stop - self.start, self.keys))

    def _complete_lse(self) -> None:
        """The lse of rows whose Q and K were rounded, from Q and K as they are kept.

        The lse that the model computed belongs to other scores: with it, weights would exceed 1.
        """
        grown = self.buffers.get("lse")
        if grown is None:
            return
        begin = self.start + grown.rows.shape[2]
        for start, stop, mask in self._masks_from(begin):
            keys = self.keys if self.cross else stop - self.first_key
            wide = grown.rows.dtype
            q = self.buffers["q"].rows[:, :, start - self.start : stop - self.start].to(wide)
            k = self.buffers["k"].rows[:, :, :keys].to(wide)
            rows = slice(start - self.start, stop - self.start)
            with torch.no_grad(), torch.autocast(q.device.type, enabled=False):
                _, lse = attention_with_lse(
                    q,
                    k,
                    k,
                    mask=mask_of_heads(mask, self.options.heads, Extent(stop - start, keys)),
                    bias=None if self.bias is None else self.bias.crop(rows, keys),
                    scale=self.first.scale,
                    softcap=self.first.softcap,
                    sinks=self.first.sinks,
                )
            grown.append(lse)

    def _masks_from(self, begin: int) -> Iterator[tuple[int, int, Mask]]:
        """The spans of rows from ``begin`` on, each with the mask over its keys."""
        if self.cross:
            if begin < self.stop:
                yield begin, self.stop, self.views[0][2].over(self.first_key, self.first_key + self.keys)
            return
        for start, stop, view in self.views:
            if stop > begin:
                yield max(start, begin), stop, view.over(self.first_key, stop)

    def call(self) -> Call:
        """The call as it is now."""
        kind: Kind = self.place.kind
        if kind == "encoder" and len(self.views) > 1:
            kind = "decoder"  # it grew from step to step, whatever its first rows looked like
        self._complete_lse()
        tensors: dict[str, Any] = {name: grown.finish() for name, grown in self.buffers.items()}
        if self.inside is not None:
            tensors["lse"] = tensors["lse"].masked_fill(~self.inside[0][:, None], -torch.inf)
        call = Call(
            name=self.place.name,
            kind=kind,
            layer=self.place.layer,
            mask=self._mask(),
            bias=self.bias,
            scale=self.first.scale,
            softcap=self.first.softcap,
            sinks=self.first.sinks,
            run=self.run,
            numbers=self.options.heads,
            kept=self.kept,
            **tensors,
        )
        return call.summary(self.options.top) if self.options.statistics else call


def _exact(computed: torch.dtype, kept: torch.dtype) -> bool:
    """Whether the lse that came with Q and K belongs to what is kept of them, to the last digit.

    Torch's kernel for half precisions rounds inside, so that its lse is off by some 1e-4.
    """
    return computed in (torch.float32, torch.float64) and torch.promote_types(computed, kept) == kept
