"""The importance of a head: the gradient of a gate on its output.

With ``O_h`` multiplied by a gate ``g_h = 1``, ``∂L/∂g_h = Σ_i dO_i · O_i``. To first order, that is what the
loss loses if the head is switched off, the difference that ``regard.ablate`` measures with a run for each
head (Michel, Levy & Neubig, 2019). One pass of attention for O; no matrix, and no further run of the model.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.heads.head_selection import Chosen, chosen
from regard.heads.head_table import check_batch, check_recording
from regard.kernels.plain_kernel import MAX_SCORES
from regard.masks.pair_patterns import looks_back
from regard.recording import Recording, ScoredCall
from regard.table import Table, Value
from regard.threads import each, spread

COLUMNS = ("name", "kind", "layer", "head", "texts", "importance", "gate_gradient")


@torch.no_grad()
def importance(
    recording: Recording, batch: int | None = None, *, layers: Chosen = None, heads: Chosen = None
) -> Table:
    """One row per head: ``|Σ_i dO_i · O_i|``, averaged over texts, for a recording with gradients.

    Texts are the elements of the batch and the runs; ``batch`` chooses an element. ``gate_gradient`` is the
    mean with its sign: negative if the loss would rise without the head.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    >>> with regard.watch(model, gradients=True) as seen:
    ...     model(torch.randn(3, 5, 16)).square().sum().backward()
    >>> found = importance(seen).sort("importance", descending=True)
    >>> found.columns[-3:], found.column("texts")
    (('texts', 'importance', 'gate_gradient'), [3, 3])
    """
    check_recording(recording)
    calls = [call.scored() for _, call in chosen(recording, layers, heads)]
    for call in calls:
        check_batch(call, batch)
        call.gradients  # raises before the work begins  # noqa: B018
    size = sum(call.q.numel() * call.keys for call in calls)
    gates = spread(lambda: each(lambda at: gate_gradients(calls[at]), range(len(calls))), size)
    found: dict[tuple[Value, ...], list[Tensor]] = {}
    for call, gate in zip(calls, gates):
        which = slice(None) if batch is None else slice(batch, batch + 1)
        for index, head in enumerate(call.head_numbers):
            found.setdefault((call.name, call.kind, call.layer, head), []).append(gate[which, index])
    return Table(COLUMNS, [(*place, *_means(torch.cat(parts))) for place, parts in found.items()])


def gate_gradients(call: ScoredCall) -> Tensor:
    """``∂L/∂g = Σ_i dO_i · O_i`` of each head, ``(batch, head)``."""
    output = call.output()
    wide = torch.promote_types(output.dtype, call.gradients.dtype)
    return (output.to(wide) * call.gradients.to(wide)).double().sum((2, 3)).cpu()


@torch.no_grad()
def key_importance(call: ScoredCall, batch: int = 0) -> Tensor:
    """``Σ_h Σ_i w_ij ∂L/∂w_ij``: the gradient of a gate on what key j gives to all heads, ``(key,)``.

    Over keys it sums to what :func:`gate_gradients` sum to over heads. It is computed a few rows at a time.
    """
    total = torch.zeros(call.keys, dtype=torch.float64)
    step, causal = max(1, MAX_SCORES // call.keys), looks_back(call.mask)
    for start in range(0, call.queries, step):
        part = slice(start, min(start + step, call.queries))
        seen = slice(0, part.stop + call.extent.offset if causal else call.keys)
        for head in call.head_numbers:
            given = call.weights_times_gradient(head, part, seen, batch).double().sum(0).cpu()
            total[: len(given)] += given
    return total


def _means(gates: Tensor) -> tuple[int, float, float]:
    return len(gates), float(gates.abs().mean()), float(gates.mean())
