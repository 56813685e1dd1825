"""Checks that a recorded call is complete: the right tensors, of dtypes and sizes that fit, without NaN.

``save`` and ``load`` both check. So whatever ``save`` writes can be loaded, and whatever loads can be used:
weights, statistics, tables, roles and pages.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from regard.errors import Phrase, RecordingFileError
from regard.kernels.bias import Bias
from regard.recording.call import Call
from regard.recording.recording_schema import LARGEST
from regard.recording.scored_call import ScoredCall

COMPARED = 1 << 20
"""How many weights are computed to check that rows sum to 1; of a larger call, evenly spread rows."""

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

ROWS = "batch head query"
AXES = {
    "q": "batch head query channel",
    "k": "batch group key channel",
    "v": "batch group key value",
    "lse": ROWS,
    "sinks": "head",
    "output_gradient": "batch head query value",
    "projection": "head value width",
    "projection_bias": "width",
    "residual": "batch query width",
    "own_weights": "batch head query key",
    "kept.output": "batch head query value",
    "kept.lse": ROWS,
    "kept.entropy": ROWS,
    "kept.visible": ROWS,
    "kept.received": "batch head key",
    "kept.self_weight": ROWS,
    "kept.previous_weight": ROWS,
    "kept.first_weight": ROWS,
    "kept.distance": ROWS,
    "kept.peak": ROWS,
    "kept.peak_key": ROWS,
    "kept.top_weights": "batch head query top",
    "kept.top_keys": "batch head query top",
}
"""The axes of every tensor that a call can have; an axis has one size in all tensors of a call."""

OPTIONAL = ("sinks", "kept.output", "kept.top_weights", "kept.top_keys")
INTEGERS = {"kept.visible": 0, "kept.peak_key": -1, "kept.top_keys": -1}
"""Tensors of whole numbers, with the least value of each."""

MINUS_INFINITE = ("lse", "kept.lse", "sinks")
"""Tensors in which −inf has a meaning: a query that sees nothing, or a sink that takes nothing."""


KINDS_OF_CALL = {
    "q": ({"q", "k", "lse"}, {"v", "sinks", "output_gradient", "projection", "projection_bias", "residual"}),
    "own_weights": ({"own_weights"}, {"sinks"}),
    "kept.lse": (
        {name for name in AXES if name.startswith("kept.") and name not in OPTIONAL},
        set(OPTIONAL),
    ),
}
"""The tensors that a call of each type has, and those that it can have, by the one that tells its type.

Calls of weights or statistics had sinks in files of earlier versions.
"""


def check_call(call: Call, number: int) -> None:
    """Raise RecordingFileError, naming the call and the tensor, unless the call is complete."""
    where = place_of_call(call.name, number)
    check_parts(call, check_tensors(call.tensors(), where), where)


def place_of_call(name: str, number: int) -> str:
    """The call as errors name it."""
    return f"seen[{number}] ({name[:60]!r})"


# ---- one tensor after the other ------------------------------------------------------------------


def check_tensors(tensors: dict[str, Tensor], where: str) -> dict[str, int]:
    """The size of every axis; raises unless these are the tensors of one type of call, all usable."""
    _check_names(set(tensors), where)
    sizes = _check_sizes(tensors, where)
    for name, tensor in tensors.items():
        _check_numbers(name, tensor, sizes["key"], where)
    dtypes = {str(tensors[name].dtype) for name in ("q", "k", "v") if name in tensors}
    if len(dtypes) > 1:
        raise RecordingFileError(
            "q, k and v of {where} must have the same dtype.",
            got="{dtypes}",
            where=where,
            dtypes=", ".join(sorted(dtypes)),
        )
    return sizes


def _check_names(names: set[str], where: str) -> None:
    """A call has Q, K and lse, or statistics, or weights; and nothing of another kind."""
    unknown = sorted(names - set(AXES))
    if unknown:
        raise RecordingFileError(
            "A call must have only tensors that regard knows.", got="{tensor}", tensor=f"{unknown[0]!r}"[:60]
        )
    first = next((name for name in KINDS_OF_CALL if name in names), "q")
    needed, optional = KINDS_OF_CALL[first]
    wrong = sorted(needed - names) + sorted(names - needed - optional)
    if wrong:
        raise RecordingFileError(
            "The tensors of {where} must include {needed}.",
            got="no {wrong}" if wrong[0] in needed else "{wrong}",
            where=where,
            needed=", ".join(sorted(needed)),
            wrong=wrong[0],
        )
    extra = sorted(names & {"output_gradient", "projection"})
    if extra and "v" not in names:
        raise RecordingFileError(
            "The {extra} of {where} must come with v.", got="no v", extra=extra[0], where=where
        )
    behind = sorted(names & {"projection_bias", "residual"})
    if behind and "projection" not in names:
        raise RecordingFileError(
            "The {extra} of {where} must come with projection.",
            got="no projection",
            extra=behind[0],
            where=where,
        )
    if ("kept.top_keys" in names) != ("kept.top_weights" in names):
        raise RecordingFileError(
            "The top keys of {where} must come with their weights.", got="one of them", where=where
        )


def _check_sizes(tensors: dict[str, Tensor], where: str) -> dict[str, int]:
    """The size of every axis; it is the same in all tensors, and never 0."""
    sizes: dict[str, int] = {}
    for name, tensor in tensors.items():
        axes = AXES[name].split()
        fits = tensor.ndim == len(axes) and all(
            size > 0 and size == sizes.setdefault(axis, size) for axis, size in zip(axes, tensor.shape)
        )
        if not fits:
            wanted = ", ".join(f"{axis} = {sizes[axis]}" if sizes.get(axis) else axis for axis in axes)
            raise RecordingFileError(
                "The shape of {name} in {where} must be ({wanted}), with no empty axis.",
                got="{shape}",
                name=name,
                where=where,
                wanted=wanted,
                shape=tuple(tensor.shape),
            )
    if sizes["head"] % sizes.get("group", 1):
        raise RecordingFileError(
            "The heads of {where} must share its key heads evenly (heads = {heads}).",
            got="{key_heads} key heads",
            where=where,
            heads=sizes["head"],
            key_heads=sizes["group"],
        )
    return sizes


def _check_numbers(name: str, tensor: Tensor, keys: int, where: str) -> None:
    if name in INTEGERS:
        least, most = INTEGERS[name], keys if name == "kept.visible" else keys - 1
        if tensor.dtype != torch.int64 or int(tensor.min()) < least or int(tensor.max()) > most:
            raise RecordingFileError(
                "The numbers of {name} in {where} must be whole, from {least} to {most}, as int64.",
                got="{dtype}, {range}",
                name=name,
                where=where,
                least=least,
                most=most,
                dtype=tensor.dtype,
                range=_range(tensor),
            )
        return
    named = Phrase("{name} in {where}", name=name, where=where)
    _check_floats(named, tensor, -math.inf if name in MINUS_INFINITE else -LARGEST)


def _check_floats(name: Phrase, tensor: Tensor, least: float) -> None:
    """Raise unless these are floating-point numbers from ``least`` to ``LARGEST``."""
    if tensor.dtype not in FLOATS:
        raise RecordingFileError(
            "The dtype of {name} must be float16, bfloat16, float32 or float64.",
            got="{dtype}",
            name=name,
            dtype=tensor.dtype,
        )
    # NaN goes through both, and no second tensor of this size is made.
    low, high = (float(bound) for bound in tensor.aminmax())
    if low >= least and high <= LARGEST:
        return
    found = "NaN" if math.isnan(low) else _range(tensor)
    if least == -math.inf:
        raise RecordingFileError(
            "The numbers of {name} must be −inf or at most {largest:.0e} in size.",
            got="{found}",
            name=name,
            largest=LARGEST,
            found=found,
        )
    raise RecordingFileError(
        "The numbers of {name} must be at most {largest:.0e} in size.",
        got="{found}",
        name=name,
        largest=LARGEST,
        found=found,
    )


def _range(tensor: Tensor) -> str:
    return f"{tensor.min().item():.3g} … {tensor.max().item():.3g}"


# ---- how they fit together -----------------------------------------------------------------------


def check_parts(call: Call, sizes: dict[str, int], where: str) -> None:
    """Raise unless the heads, the mask, the bias and the scores of a call fit its tensors."""
    _check_heads(call, sizes, where)
    _check_mask(call, where)
    if isinstance(call, ScoredCall):
        if call.bias is not None:
            call.bias.check(call.batch, call.heads, call.extent)
            _check_bias(call.bias, where)
        _check_scores(call, where)


def _check_heads(call: Call, sizes: dict[str, int], where: str) -> None:
    if call.kind != "cross" and sizes["query"] > sizes["key"]:
        raise RecordingFileError(
            "The queries of {where} must be among its keys, because it is not cross-attention.",
            got="{queries} queries and {keys} keys",
            where=where,
            queries=sizes["query"],
            keys=sizes["key"],
        )
    numbers = call.numbers
    if numbers is not None and (len(numbers) != sizes["head"] or len(set(numbers)) < len(numbers)):
        raise RecordingFileError(
            "The heads of {where} must have one number each, all different (heads = {heads}).",
            got="{numbers}",
            where=where,
            heads=sizes["head"],
            numbers=str(numbers)[:60],
        )


def _check_mask(call: Call, where: str) -> None:
    call.mask.check(call.extent)
    lead = call.mask.lead
    own = (call.heads, call.batch)
    if len(lead) > 2 or any(size not in (1, known) for size, known in zip(reversed(lead), own)):
        raise RecordingFileError(
            "The mask of {where} must fit its batch and heads (batch = {batch}, heads = {heads}).",
            got="a mask for {lead}",
            where=where,
            batch=call.batch,
            heads=call.heads,
            lead=lead,
        )
    # Numbers that arrays cannot hold fail at the first use.
    last = np.array([call.keys - 1])
    call.mask.select((0, 0)).evaluate(call.extent, last, last)


def _check_bias(bias: Bias, where: str) -> None:
    for term in bias.terms():
        for table in term.tables:
            _check_floats(
                Phrase("bias in {where}", where=where), table, -math.inf if term.can_forbid else -LARGEST
            )


def _check_scores(call: ScoredCall, where: str) -> None:
    """No score overflows, and lse is that of the scores: the weights of a row sum to 1."""
    greatest = abs(call.scale) * call.q.shape[-1] * _greatest(call.q) * _greatest(call.k)
    if greatest > LARGEST:
        raise RecordingFileError(
            "The scores of {where} must be at most {largest:.0e} in size.",
            got="scale = {scale:.3g}",
            where=where,
            largest=LARGEST,
            scale=call.scale,
        )
    added = 0.0 if call.bias is None else sum(map(_greatest, call.bias.tables))
    some = max(1, COMPARED // (call.batch * call.heads * call.keys))
    rows = np.unique(np.linspace(0, call.queries - 1, min(some, call.queries)).astype(int)).tolist()
    for batch in range(call.batch):
        for index, head in enumerate(call.head_numbers):
            weights = call.weights(head, rows=rows, batch=batch).sum(-1).double()
            lse = call.lse[batch, index][rows].double()
            if call.sinks is not None:
                weights = weights + (call.sinks[index].double() - lse).exp().nan_to_num(1.0)
            # Kept in half precision, Q and K give scores that are rounded in proportion to their size.
            play = 0.1 + 0.01 * (_largest_scores(call, batch, index, rows) + added)
            hidden = (lse == -torch.inf) & (weights == 0)
            if not bool((hidden | (weights.log().abs() <= play)).all()):
                raise RecordingFileError(
                    "The weights of each row of {where} must sum to 1, sinks included (head = {head}).",
                    got="{min:.3g} … {max:.3g}",
                    where=where,
                    head=head,
                    min=weights.min(),
                    max=weights.max(),
                )


def _largest_scores(call: ScoredCall, batch: int, head: int, rows: list[int]) -> Tensor:
    """How large the scores of some rows can be, by the lengths of their queries and of the longest key."""
    k = call.k[batch, call.key_head(head)].double()
    q = call.q[batch, head][rows].double()
    longest = torch.linalg.vector_norm(k, dim=-1).max()
    found: Tensor = abs(call.scale) * torch.linalg.vector_norm(q, dim=-1) * longest
    return found


def _greatest(tensor: Tensor) -> float:
    """The greatest absolute value that is finite."""
    low, high = tensor.aminmax()
    if low == -torch.inf:  # only then a copy
        low, high = tensor.masked_fill(tensor == -torch.inf, 0.0).aminmax()
    return max(abs(float(low)), abs(float(high)))
