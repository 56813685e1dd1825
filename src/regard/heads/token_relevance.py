"""Relevance: which input tokens an output depends on, by weights and their gradients through all layers.

Chefer, Gur & Wolf (2021). A layer of self-attention adds what its weights carried, as far as the loss grows
with them, to the relevance R of tokens for positions::

    Ā = mean_h (A ⊙ ∂A)⁺        R ← R + Ā R        R = I at first

A decoder that looks at a source also has a relevance S of source tokens for its positions. Self-attention
does ``S ← S + Ā S``; cross-attention, with the relevance R of the decoder and E of the encoder so far::

    S ← S + R̄ᵀ Ā Ē              R̄ = (R − I) / rows' sums + I

One row of R is ``e (I + Ā_L) ⋯ (I + Ā_1)``, a vector that goes down through the layers, and R applied to a
vector goes up through them. So a row costs a few passes, whatever the length: nothing of n×n is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.checks import check_position
from regard.errors import RecordingError
from regard.heads.attention_rollout import layers_of, rollout
from regard.heads.head_table import check_batch, check_recording
from regard.kernels.plain_kernel import MAX_SCORES
from regard.masks.pair_patterns import looks_back
from regard.recording import Recording, ScoredCall
from regard.table import Table


@dataclass(frozen=True, eq=False)
class Relevance:
    """How much each token matters to what one position became.

    ``own[j]`` is for token j of the text; ``source`` the same for the other text of an encoder-decoder.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> with regard.watch(model, gradients=True) as seen:
    ...     model(torch.tensor([[5, 6, 7]]))[0, -1, 9].backward()
    >>> regard.relevance(seen, row=-1).own.shape  # one number per token
    torch.Size([3])
    """

    row: int
    own: Tensor  # (token,)
    source: Tensor | None = None  # (token of the source,)
    tokens: tuple[str, ...] | None = None
    source_tokens: tuple[str, ...] | None = None
    gradients: bool = True  # False for rollout

    @property
    def added(self) -> Tensor:
        """R − I, what attention added to ``own``: a position begins with a relevance of 1 for itself.

        Rollout has no such 1: its rows are shares, and this is ``own``.
        """
        if not self.gradients:
            return self.own
        found = self.own.clone()
        found[self.row] -= 1
        return found

    def table(self) -> Table:
        """One row per token."""
        sides = [("text", self.own, self.tokens), ("source", self.source, self.source_tokens)]
        rows = [
            (side, at, None if tokens is None else tokens[at], float(value))
            for side, values, tokens in sides
            if values is not None
            for at, value in enumerate(values)
        ]
        return Table(("side", "position", "token", "relevance"), rows)


@torch.no_grad()
def relevance(
    recording: Recording, *, row: int, batch: int = 0, run: int = 0, gradients: bool = True
) -> Relevance:
    """What the position ``row`` depends on, by the rule of Chefer, Gur and Wolf (2021).

    For encoders, decoders and encoder-decoders recorded with ``gradients=True``, the backward pass
    being that of the score to explain: a class read at the first position, a token at the last.
    ``gradients=False`` takes the weights alone, which is :func:`regard.heads.rollout`.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoder(
    ...     torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 3, enable_nested_tensor=False
    ... ).eval()
    >>> with regard.watch(model, gradients=True) as seen:
    ...     model(torch.randn(1, 5, 16))[0, 0].norm().backward()
    >>> regard.relevance(seen, row=0).own.shape
    torch.Size([5])
    """
    check_recording(recording)
    recording = _closed(recording)
    if not gradients:
        flow = rollout(recording, batch, rows=[row], run=run)
        source = None if flow.source is None else flow.source[0]
        return replace(_named(recording, batch, row, flow.own[0], source), gradients=False)
    stacks = {
        kind: [call.scored() for call in layers_of(recording, run, kind)]
        for kind in ("encoder", "decoder", "cross")
    }
    for call in (call for stack in stacks.values() for call in stack):
        check_batch(call, batch)
        call.gradients  # raises before the work begins  # noqa: B018
    if stacks["cross"]:
        own, source = _two_texts(stacks["encoder"], stacks["decoder"], stacks["cross"], batch, row)
        return _named(recording, batch, row, own, source)
    if bool(stacks["encoder"]) == bool(stacks["decoder"]):
        raise RecordingError(
            "Relevance needs one text, or two that cross-attention joins.",
            got="encoder and decoder without cross-attention between them"
            if stacks["encoder"]
            else "no calls of run {run}",
            do="Record only the part you need, for example watch(model.text_model).",
            run=run,
        )
    stack = stacks["encoder"] or stacks["decoder"]
    return _named(recording, batch, row, _down(stack, _started(stack[0], row), batch)[0], None)


def _closed(recording: Recording) -> Recording:
    """A copy whose calls are built once; a recording in progress builds them on every access."""
    if recording.closed:
        return recording
    found = Recording(recording.model, recording.calls)
    found.tokens, found.source_tokens = recording.tokens, recording.source_tokens
    return found


def _named(recording: Recording, batch: int, row: int, own: Tensor, source: Tensor | None) -> Relevance:
    sides = (recording.tokens, recording.source_tokens)
    tokens, source_tokens = (None if side is None else tuple(side[batch]) for side in sides)
    if source is None and tokens is None:
        tokens = source_tokens
    return Relevance(row % len(own), own, source, tokens, source_tokens if source is not None else None)


# ---- vectors through layers ------------------------------------------------------------------------


def _two_texts(
    encoder: list[ScoredCall], decoder: list[ScoredCall], cross: list[ScoredCall], batch: int, row: int
) -> tuple[Tensor, Tensor]:
    """The relevance of both texts for a row of the decoder."""
    if not encoder or len(decoder) != len(cross):
        raise RecordingError(
            "Relevance through cross-attention needs every layer of encoder and decoder.",
            got="{encoder_count} encoder, {decoder_count} decoder and {cross_count} cross layers",
            do="Record all of them: watch(model) without layers=.",
            encoder_count=len(encoder),
            decoder_count=len(decoder),
            cross_count=len(cross),
        )
    # The row above each layer, on its way down: it carries S of that layer to the end.
    above = [_started(decoder[0], row)]
    for call in reversed(decoder):
        above.append(above[-1] + _left(call, above[-1], batch))
    own = above.pop()
    rows = torch.cat(list(reversed(above)))  # (layer, query)
    source = rows.new_zeros(1, cross[0].keys)
    # R x of every layer, on the way up; the last of these vectors gives the sums of the rows.
    up = torch.cat([rows, torch.ones_like(rows[:1])])
    for layer, (itself, other) in enumerate(zip(decoder, cross)):
        up = up + _right(itself, up, batch)
        normal = _divided(up[layer] - rows[layer], up[-1] - 1) + rows[layer]  # R̄ x
        source = source + _left(other, normal[None], batch)
    sums = _up(encoder, source.new_ones(1, encoder[0].queries), batch)[0] - 1
    divided = _divided(source, sums)
    return own[0], (_down(encoder, divided, batch) - divided + source)[0]


def _divided(numbers: Tensor, sums: Tensor) -> Tensor:
    """A row of R − I that is 0 stays 0."""
    return torch.where(sums > 0, numbers / torch.where(sums > 0, sums, 1.0), 0.0)


def _down(stack: list[ScoredCall], x: Tensor, batch: int) -> Tensor:
    """``x (I + Ā_L) ⋯ (I + Ā_1)``."""
    for call in reversed(stack):
        x = x + _left(call, x, batch)
    return x


def _up(stack: list[ScoredCall], x: Tensor, batch: int) -> Tensor:
    """``(I + Ā_L) ⋯ (I + Ā_1) xᵀ``, as rows."""
    for call in stack:
        x = x + _right(call, x, batch)
    return x


def _left(call: ScoredCall, x: Tensor, batch: int) -> Tensor:
    """``x Ā``, ``(vector, key)``."""
    taken = x.new_zeros(len(x), call.keys)
    for part, mean in _positive(call, batch, x.any(0)):
        taken[:, : mean.shape[1]] += x[:, part].to(mean) @ mean
    return taken


def _right(call: ScoredCall, x: Tensor, batch: int) -> Tensor:
    """``Ā xᵀ``, as rows ``(vector, query)``."""
    found = x.new_zeros(len(x), call.queries)
    for part, mean in _positive(call, batch, torch.ones(call.queries, dtype=torch.bool)):
        found[:, part] = (x[:, : mean.shape[1]].to(mean) @ mean.T).to(found)
    return found


def _positive(call: ScoredCall, batch: int, wanted: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """``Ā = mean_h (A ⊙ ∂A)⁺``, some rows at a time and as many keys as they see.

    Rows that are not wanted are passed over.
    """
    step, causal = max(1, MAX_SCORES // call.keys), looks_back(call.mask)
    for start in range(0, call.queries, step):
        part = slice(start, min(start + step, call.queries))
        if not bool(wanted[part].any()):
            continue
        seen = slice(0, part.stop + call.extent.offset if causal else call.keys)
        heads = (call.weights_times_gradient(head, part, seen, batch) for head in call.head_numbers)
        mean = torch.zeros(())
        for product in heads:
            mean = mean.to(product) + product.clamp_(min=0)
        yield part, (mean / call.heads).cpu()


def _started(call: ScoredCall, row: int) -> Tensor:
    """A row of the identity."""
    x = torch.zeros(1, call.queries, dtype=torch.float64)
    x[0, check_position("row", row, call.queries)] = 1
    return x
