"""Attention rollout: how much of each input token has flowed into each position after all layers.

Abnar & Zuidema (2020). A layer mixes the vectors at the positions, by its mean attention and by the
residual connection around it::

    Â = r · I + (1 − r) · (Ā + diag(1 − Ā 1))        R = Â_L ⋯ Â_2 Â_1

Ā is the mean over heads. Where its row sums to less than 1 (a sink took weight, or nothing was
visible) attention added that much less, and what is missing stays with the token; so rows of R sum to 1.

With cross-attention, two texts flow into the decoder. A decoder layer first mixes the target by its
own attention and then takes a part ``1 − r`` from the source, as the encoder left it.

Rows of R are computed from the last layer down, ``x ← x Â``, with the matrix of a layer made a few
rows at a time. Nothing n×n is built unless all rows are requested, and then only the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.checks import check_number
from regard.errors import ArgumentError, Phrase, RecordingError
from regard.heads.head_selection import Chosen, chosen
from regard.heads.head_table import check_batch, check_recording, check_run
from regard.kernels.plain_kernel import MAX_SCORES
from regard.recording import Call, Recording
from regard.recording.call import Positions


@dataclass(frozen=True, eq=False)
class Rollout:
    """Which input tokens the final content of some positions came from.

    ``own[r, j]`` is the share of token j of the text in row r; ``source`` the same for the other text of
    an encoder-decoder. Both together sum to 1 in each row.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> with torch.no_grad(), regard.watch(model) as seen:
    ...     _ = model(torch.tensor([[5, 6, 7]]))
    >>> regard.heads.rollout(seen).own.shape  # (position, token)
    torch.Size([3, 3])
    """

    own: Tensor  # (row, token)
    source: Tensor | None = None  # (row, token of the source)


@torch.no_grad()
def rollout(
    recording: Recording,
    batch: int = 0,
    residual: float = 0.5,
    *,
    rows: Positions = slice(None),
    run: int = 0,
    layers: Chosen = None,
    heads: Chosen = None,
) -> Rollout:
    """Attention rollout through all layers, for an encoder, a decoder or both together.

    ``residual`` is the share r of the residual connection. ``rows`` selects some positions only, which
    is cheaper: time and memory are those of the rows. ``layers`` and ``heads`` choose the attention
    that the text flows through; other layers act as the identity.
    ``run`` chooses a pass where several were recorded.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoder(
    ...     torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 3, enable_nested_tensor=False
    ... )
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> flow = rollout(seen, rows=0)
    >>> flow.own.shape, round(float(flow.own.sum()), 4)
    (torch.Size([1, 5]), 1.0)
    """
    check_recording(recording)
    check_number("residual", residual, 0, 1, example=0.5)
    recording = Recording(recording.model, recording.calls)  # in progress, it builds its calls on each access
    calls = _of_run(recording, run)
    for call in calls:
        check_batch(call, batch)
    used = dict(chosen(recording, layers, heads))
    kept = {id(call): used[number] for number, call in enumerate(recording) if number in used}
    cross = _stack(calls, "cross")
    if cross:
        return _two_texts(calls, cross, batch, float(residual), rows, kept)
    if len({call.kind for call in calls}) > 1:
        raise RecordingError(
            "Rollout needs one text, or two texts joined by cross-attention.",
            got="encoder and decoder without cross-attention between them",
            do="Record only the part you need, for example watch(model.text_model).",
        )
    stack = _stack(calls, calls[0].kind)
    x = _started(stack[0], rows)
    for call in reversed(stack):
        x = _through(kept.get(id(call)), x, batch, float(residual))
    return Rollout(x)


def layers_of(recording: Recording, run: int, kind: str) -> list[Call]:
    """The layers of a kind in order, all of them, in one pass over one text."""
    return _stack(_of_run(recording, run), kind)


def _of_run(recording: Recording, run: int) -> list[Call]:
    check_run(recording, run)
    return [call for call in recording if call.run == run]


def _two_texts(
    calls: list[Call], cross: list[Call], batch: int, residual: float, rows: Positions, kept: dict[int, Call]
) -> Rollout:
    encoder, decoder = _stack(calls, "encoder"), _stack(calls, "decoder")
    if not encoder or len(decoder) != len(cross):
        raise RecordingError(
            "Rollout through cross-attention needs every layer of encoder and decoder.",
            got="{encoder_count} encoder, {decoder_count} decoder and {cross_count} cross layers",
            do="Record all of them: watch(model) without layers=.",
            encoder_count=len(encoder),
            decoder_count=len(decoder),
            cross_count=len(cross),
        )
    own = _started(decoder[0], rows)
    source = own.new_zeros(len(own), cross[0].keys)
    for itself, other in zip(reversed(decoder), reversed(cross)):
        if id(other) in kept:
            taken, left = _attended(kept[id(other)], own, batch)
            source, own = source + (1 - residual) * taken, residual * own + (1 - residual) * left
        own = _through(kept.get(id(itself)), own, batch, residual)
    for call in reversed(encoder):
        source = _through(kept.get(id(call)), source, batch, residual)
    return Rollout(own, source)


def _stack(calls: list[Call], kind: str) -> list[Call]:
    """The layers of a kind in order, all of them, over one text."""
    found = sorted((call for call in calls if call.kind == kind), key=lambda call: call.layer)
    if [call.layer for call in found] != list(range(len(found))):
        raise RecordingError(
            "Rollout needs every layer, starting at 0.",
            got="{kind} layers {found}",
            do="Record all of them: watch(model) without layers=.",
            kind=kind,
            found=[call.layer for call in found],
        )
    sizes = {tuple(call.extent) for call in found}
    if len(sizes) > 1 or (kind != "cross" and any(queries != keys for queries, keys in sizes)):
        raise RecordingError(
            "Rollout needs as many queries as keys, the same in every layer.",
            got="{sizes}",
            do="Watch one forward pass over the whole text, of one model.",
            sizes=[
                Phrase("{queries} queries × {keys} keys", queries=queries, keys=keys)
                for queries, keys in sorted(sizes)
            ],
        )
    return found


def _started(call: Call, rows: Positions) -> Tensor:
    """The chosen rows of the identity."""
    try:
        wanted = np.atleast_1d(np.arange(call.queries)[rows])
    except IndexError:
        raise ArgumentError(
            "rows must be a slice, or positions below {queries}.",
            got="{rows!r}",
            do="Count from 0.",
            queries=call.queries,
            rows=rows,
        ) from None
    x = torch.zeros(len(wanted), call.queries, dtype=torch.float64)
    x[torch.arange(len(wanted)), torch.from_numpy(wanted)] = 1
    return x


def _through(call: Call | None, x: Tensor, batch: int, residual: float) -> Tensor:
    """``x Â`` of one layer of self-attention; x itself for a layer that is left out."""
    if call is None:
        return x
    taken, left = _attended(call, x, batch)
    return residual * x + (1 - residual) * (taken + left)


def _attended(call: Call, x: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    """``x Ā`` and ``x diag(1 − Ā 1)``: what comes from the keys, and what attention did not replace."""
    taken, left = x.new_zeros(len(x), call.keys), torch.empty_like(x)
    step = max(1, MAX_SCORES // call.keys)
    for start in range(0, call.queries, step):
        part = slice(start, min(start + step, call.queries))
        heads = (call.weights(head, part, batch=batch).double().cpu() for head in call.head_numbers)
        mean = sum(heads, start=x.new_zeros(())) / call.heads
        mass = mean.sum(-1)
        # Rounding can carry a row slightly beyond 1.
        taken += x[:, part] / mass.clamp(min=1) @ mean
        left[:, part] = x[:, part] * (1 - mass).clamp(min=0)
    return taken, left
