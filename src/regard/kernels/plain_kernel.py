"""One tile in plain torch, on any device, with all that the fused kernel lacks.

    Tile → output (batch, head, query, value channel), lse (batch, head, query)

It has softcap, dropout and the gradient of a bias. Only a few rows of scores exist at a time,
never n×n. Everything is computed in at least float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

MAX_SCORES = 1 << 22
"""The most scores in memory at once: 16 MB in float32."""


@dataclass(frozen=True)
class ScoreOptions:
    """What is done to the scores of a tile apart from mask and bias."""

    scale: float
    softcap: float | None = None
    dropout: float = 0.0


class Tile(NamedTuple):
    """Some queries, the keys that they may see, and what is added to their scores: one kernel call."""

    q: Tensor  # (batch, head, query, channel)
    k: Tensor  # (batch, head, key, channel)
    v: Tensor  # (batch, head, key, value channel)
    additive: Tensor | None  # (batch or 1, head or 1, query, key)
    sees: Tensor | None  # (batch or 1, head or 1, query), which rows see any key; None: all do
    options: ScoreOptions
    causal: bool = False  # the fused kernel's built-in causal mask is all that is needed
    seed: int = 0  # of the dropout, the same forward and backward


class BackwardRows(NamedTuple):
    """What the backward pass needs of whole rows, ``(batch, head, query, ...)``."""

    grad: Tensor  # of the output
    output: Tensor
    lse: Tensor  # finite: an arbitrary number for rows that see no key
    delta: Tensor  # Σ grad · output, the term that softmax subtracts from every gradient

    def at(self, rows: slice) -> BackwardRows:
        """Some of the rows."""
        return BackwardRows(*(x[:, :, rows] for x in self))


def scores_of(
    q: Tensor, k: Tensor, additive: Tensor | None, options: ScoreOptions
) -> tuple[Tensor, Tensor | None]:
    """``cap(scale · q kᵀ) + additive``, and the derivative of the cap for the backward pass."""
    scores = q @ k.transpose(-1, -2) * options.scale
    slope = None
    if options.softcap is not None:
        bent = torch.tanh(scores / options.softcap)
        scores, slope = options.softcap * bent, 1 - bent * bent
    return (scores if additive is None else scores + additive), slope


def forward(tile: Tile) -> tuple[Tensor, Tensor]:
    """Output and lse of one tile; rows that see no key get 0 and −inf."""
    outputs, sums = [], []
    k, v = _wide(tile.k), _wide(tile.v)
    for rows, keep in _slices(tile):
        scores, _ = scores_of(_wide(tile.q[..., rows, :]), k, _rows(tile.additive, rows), tile.options)
        highest = scores.amax(-1, keepdim=True)
        highest = torch.where(highest == -torch.inf, 0.0, highest)
        powers = exp(scores - highest)
        total = powers.sum(-1, keepdim=True)
        sums.append((highest + torch.log(total)).squeeze(-1))
        weights = powers if keep is None else powers * keep
        outputs.append(weights @ v / torch.where(total > 0, total, 1.0))
    return torch.cat(outputs, -2), torch.cat(sums, -1)


def backward(
    tile: Tile, whole: BackwardRows, collect: Callable[[slice, Tensor], None] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v, given what is known of the whole rows.

    ``collect`` receives the gradients of the additive scores, a few rows at a time.
    """
    grad_q, grad_k, grad_v = (torch.zeros_like(_wide(x)) for x in (tile.q, tile.k, tile.v))
    k, v, scale = _wide(tile.k), _wide(tile.v), tile.options.scale
    for rows, keep in _slices(tile):
        some_q, some_grad = _wide(tile.q[..., rows, :]), _wide(whole.grad[..., rows, :])
        scores, slope = scores_of(some_q, k, _rows(tile.additive, rows), tile.options)
        # No weight exceeds 1, though rounding can lift a large score above the lse of its row.
        weights = exp((scores - whole.lse[..., rows, None]).clamp_(max=0))
        grad_weights = some_grad @ v.transpose(-1, -2)
        if keep is not None:
            grad_weights = grad_weights * keep
        kept = weights if keep is None else weights * keep
        grad_v += kept.transpose(-1, -2) @ some_grad
        grad_scores = weights * (grad_weights - whole.delta[..., rows, None])
        if collect is not None:
            collect(rows, grad_scores)
        bent = grad_scores if slope is None else grad_scores * slope
        grad_q[..., rows, :] = bent @ k * scale
        grad_k += bent.transpose(-1, -2) @ some_q * scale
    return grad_q, grad_k, grad_v


# ---- formulas that other modules share -------------------------------------------------------


def exp(x: Tensor) -> Tensor:
    """``e^x`` computed by exp2: torch's exp is far slower where the result underflows, as under a mask."""
    return torch.exp2(x * math.log2(math.e))


def finite_lse(lse: Tensor) -> Tensor:
    """The lse with 0 in place of −inf, so that rows that see no key do not become NaN.

    Their scores are all −inf, and so ``exp(s − 0)`` is 0.
    """
    return torch.where(lse == -torch.inf, 0.0, lse)


def weights_of(scores: Tensor, lse: Tensor) -> Tensor:
    """``exp(s − lse)``; the two broadcast, so rows of scores need ``lse[..., None]``.

    With the lse over some of the keys in place of scores, it is their share of the whole row's weight.

    >>> scores = torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]])
    >>> weights_of(scores, torch.logsumexp(scores, -1)[..., None])
    tensor([[0.5000, 0.5000],
            [0.0000, 0.0000]])
    """
    return torch.exp(scores - finite_lse(lse))


def add_sinks(output: Tensor, lse: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor]:
    """Output and lse of whole rows, after a sink per head has taken its share of the weight.

    ``output (batch, head, query, channel)``, ``lse (batch, head, query)``, ``sinks (head,)``.
    """
    if sinks is None:
        return output, lse
    total = torch.logaddexp(lse, sinks.to(lse.dtype)[:, None])
    return (output * torch.exp(lse - total)[..., None]).to(output.dtype), total


def merge(output: Tensor, lse: Tensor, other_output: Tensor, other_lse: Tensor) -> None:
    """Merge output and lse over some keys with those over other keys, in place."""
    total = torch.logaddexp(lse, other_lse)
    finite = finite_lse(total)
    output.mul_(torch.exp(lse - finite)[..., None])
    output.add_(other_output.mul_(torch.exp(other_lse - finite)[..., None]))
    lse.copy_(total)


def _slices(tile: Tile) -> Iterator[tuple[slice, Tensor | None]]:
    """A few rows at a time, with the dropout factors of their weights; the same for the same seed."""
    (batch, heads, queries, _), keys, device = tile.q.shape, tile.k.shape[-2], tile.q.device
    step = max(1, MAX_SCORES // max(1, batch * heads * keys))
    chance = torch.Generator(device=device)
    chance.manual_seed(tile.seed)
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        keep = None
        if tile.options.dropout:
            shape = (batch, heads, rows.stop - rows.start, keys)
            random = torch.rand(shape, generator=chance, device=device)
            keep = (random >= tile.options.dropout).to(_wide(tile.k).dtype) / (1 - tile.options.dropout)
        yield rows, keep


def _rows(additive: Tensor | None, rows: slice) -> Tensor | None:
    return additive if additive is None or additive.shape[-2] == 1 else additive[..., rows, :]


def _wide(x: Tensor) -> Tensor:
    """At least float32."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()
