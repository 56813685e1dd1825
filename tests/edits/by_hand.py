"""The same edits made by hand in an eager attention with dense weights, without regard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import AttentionMaskInterface as Masks

NAME = "by_hand"


@dataclass
class HandCall:
    """One attention call with all its matrices, ``(batch, head, query, key)``, and its output."""

    kind: str
    layer: int
    scores: Tensor
    values: Tensor
    past: int
    first_key: int = 0
    sinks: Tensor | None = None  # the scores of the learned sinks, (batch, head, query, 1)
    weights: Tensor = field(default_factory=lambda: torch.empty(0))
    output: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def i(self) -> Tensor:
        """The positions of the queries, as a column."""
        return torch.arange(self.past, self.past + self.scores.shape[2])[:, None]

    @property
    def j(self) -> Tensor:
        """The positions of the keys, as a row."""
        return torch.arange(self.first_key, self.first_key + self.scores.shape[3])[None]


@dataclass
class HandEdit:
    """What to change, and where."""

    scores: Callable[[HandCall], Tensor] | None = None
    sinks: Callable[[HandCall], Tensor] | None = None
    weights: Callable[[HandCall], Tensor] | None = None
    output: Callable[[HandCall], Tensor] | None = None
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    kind: str | None = None
    rows: tuple[int, ...] | None = None
    elements: tuple[int, ...] | None = None

    def change(self, stage: str, call: HandCall) -> None:
        found = getattr(self, stage)
        if found is None or self.kind not in (None, call.kind):
            return
        if self.layers is not None and call.layer not in self.layers:
            return
        before, after = getattr(call, stage), found(call)
        for axis, chosen, positions in (
            (0, self.elements, torch.arange(before.shape[0])),
            (1, self.heads, torch.arange(before.shape[1])),
            (2, self.rows, call.i[:, 0]),
        ):
            if chosen is not None:
                here = torch.isin(positions, torch.tensor(chosen))
                after = torch.where(here.reshape([-1 if a == axis else 1 for a in range(4)]), after, before)
        setattr(call, stage, after)


def softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Weights; a row without any key is 0."""
    if sinks is not None:
        scores = torch.cat([scores, sinks], -1)
    found = torch.softmax(scores, -1).nan_to_num(0.0)
    return found if sinks is None else found[..., :-1]


@dataclass
class Hand:
    """The attention function that transformers calls while a model is edited by hand."""

    names: dict[int, str]
    edits: list[HandEdit]
    keep: bool = False
    calls: list[HandCall] = field(default_factory=list)
    stop: int = 0  # the length of the text so far

    def place(self, module: Any) -> tuple[str, int]:
        name = self.names[id(module)]
        numbers = re.findall(r"\.(\d+)\.", f".{name}.")
        if any(word in name for word in ("EncDec", "encoder_attn", "cross")):
            kind = "cross"
        else:
            looks_back = getattr(module, "is_causal", False) or getattr(module, "is_decoder", False)
            kind = (
                "decoder" if looks_back and not name.startswith(("encoder", "model.encoder")) else "encoder"
            )
        return kind, int(numbers[0])

    def __call__(self, module, query, key, value, attention_mask, **options):
        scaling, softcap = options.get("scaling"), options.get("softcap")
        position_bias = options.get("position_bias")
        kind, layer = self.place(module)
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if position_bias is not None:
            scores = scores + position_bias[..., : key.shape[2]]
        queries, keys = scores.shape[2:]
        if kind != "cross" and not layer:
            self.stop = queries if queries == keys else self.stop + queries
        first_key = 0 if kind == "cross" else self.stop - keys  # a sliding cache drops its oldest keys
        sinks = options.get("s_aux")
        if sinks is not None:
            sinks = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        call = HandCall(kind, layer, scores, value, self.stop - queries, first_key, sinks)
        self.change("scores", call)
        if sinks is not None:
            self.change("sinks", call)
        if attention_mask is not None:
            hidden = attention_mask[..., :keys] < torch.finfo(scores.dtype).min / 2
            call.scores = call.scores.masked_fill(hidden, -torch.inf)
        call.weights = softmax(call.scores, call.sinks)
        self.change("weights", call)
        call.output = call.weights @ value
        self.change("output", call)
        if self.keep:
            self.calls.append(call)
        return call.output.transpose(1, 2).contiguous(), call.weights

    def change(self, stage: str, call: HandCall) -> None:
        for edit in self.edits:
            edit.change(stage, call)


@contextmanager
def edited_by_hand(model, *edits: HandEdit, keep: bool = False) -> Iterator[Hand]:
    """Run a transformers model with a dense attention of ours."""
    hand = Hand({id(module): name for name, module in model.named_modules()}, list(edits), keep)
    AttentionInterface.register(NAME, hand)
    AttentionMaskInterface.register(NAME, Masks._global_mapping["eager"])
    configs = {id(part.config): part.config for part in model.modules() if hasattr(part, "config")}
    before = {number: config._attn_implementation for number, config in configs.items()}
    for config in configs.values():
        config._attn_implementation_internal = NAME
    try:
        yield hand
    finally:
        for number, config in configs.items():
            config._attn_implementation_internal = before[number]


# ---- the edits ---------------------------------------------------------------------------------


def blocked(pairs: Callable[[Tensor, Tensor], Tensor], **where: Any) -> HandEdit:
    """−inf at these pairs of positions (query, key)."""
    return HandEdit(scores=lambda call: call.scores.masked_fill(pairs(call.i, call.j), -torch.inf), **where)


def scaled(factor: float, **where: Any) -> HandEdit:
    return HandEdit(output=lambda call: call.output * factor, **where)


def uniform(**where: Any) -> HandEdit:
    """The weight that the keys of a row have, the same for each of those that it sees."""

    def even(call: HandCall) -> Tensor:
        sees = call.scores > -torch.inf
        return sees * call.weights.sum(-1, keepdim=True) / sees.sum(-1, keepdim=True).clamp(min=1)

    return HandEdit(weights=even, **where)


def tempered(t: float, **where: Any) -> HandEdit:
    """Every score divided by t, that of a sink too."""
    return HandEdit(scores=lambda call: call.scores / t, sinks=lambda call: call.sinks / t, **where)


def swapped(calls: list[HandCall], stage: str, **where: Any) -> HandEdit:
    """The weights or outputs of another run."""
    known = {(call.kind, call.layer): getattr(call, stage) for call in calls}
    return HandEdit(
        **{stage: lambda call: known[call.kind, call.layer].expand_as(getattr(call, stage))}, **where
    )
