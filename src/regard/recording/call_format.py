"""Converts calls, masks and biases to a description with named tensors, and back; everything is checked."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import torch
from msgspec import convert, to_builtins
from torch import Tensor

from regard.errors import RecordingFileError
from regard.interception.function_mask import FunctionMask
from regard.interception.placed_mask import PlacedMask
from regard.kernels import Statistics
from regard.kernels.bias import Bias, Sum, TensorBias
from regard.kernels.biases import T5, Alibi, Relative, relative, t5
from regard.kernels.capped_bias import CappedBias
from regard.kernels.scaled_bias import ScaledBias
from regard.masks import Mask, dense, parse
from regard.masks.extent import Extent
from regard.masks.mask import Both, Either, Not
from regard.masks.pair_patterns import Dense
from regard.recording.call import Call
from regard.recording.call_validation import check_parts, check_tensors, place_of_call
from regard.recording.dense_call import DenseCall
from regard.recording.recording_schema import (
    AlibiDescription,
    BiasDescription,
    CallDescription,
    CappedDescription,
    Count,
    Position,
    RelativeDescription,
    ScaledDescription,
    SumDescription,
    T5Description,
    TensorDescription,
)
from regard.recording.scored_call import ScoredCall
from regard.recording.step_masks import MaskRows, StackedMask
from regard.recording.summary_call import SummaryCall

DEEPEST = 50
"""The deepest nesting of masks or of sums; anything deeper is a mistake or an attack."""

_STATISTICS = tuple(field.name for field in fields(Statistics))


class TensorStore:
    """Tensors by name. Equal masks share theirs."""

    def __init__(self, tensors: dict[str, Tensor] | None = None) -> None:
        self.tensors = {} if tensors is None else tensors
        self._tables: dict[Mask, str] = {}
        self._written: dict[int, tuple[str, Tensor]] = {}  # the tensor too, so that its id stays its own

    def put(self, name: str, tensor: Tensor) -> str:
        """Keep a tensor; a copy, because safetensors needs each to have its own memory."""
        self.tensors[name] = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        return name

    def put_once(self, name: str, tensor: Tensor) -> str:
        """Keep a tensor; one that several calls share, as they share an output projection, is kept once."""
        if id(tensor) not in self._written:
            self._written[id(tensor)] = self.put(name, tensor), tensor
        return self._written[id(tensor)][0]

    def put_table(self, mask: Mask, table: Tensor) -> str:
        """Keep the table of a mask, once."""
        if mask not in self._tables:
            self._tables[mask] = self.put(f"mask.{len(self._tables)}", table)
        return self._tables[mask]

    def get(self, name: str) -> Tensor:
        """A tensor that must be there."""
        if name not in self.tensors:
            raise RecordingFileError(
                "A recording must hold the tensors that it names.", got="{name}", name=repr(name)[:60]
            )
        return self.tensors[name]


# ---- calls -----------------------------------------------------------------------------------


def call_to(call: Call, store: TensorStore) -> CallDescription:
    """A call as its description, its tensors in the store."""
    place = f"call.{sum(name.endswith('.lse') or name.endswith('.own_weights') for name in store.tensors)}"
    return CallDescription(
        name=call.name,
        kind=call.kind,
        layer=call.layer,
        run=call.run,
        heads=None if call.numbers is None else list(call.numbers),
        tensors={name: store.put_once(f"{place}.{name}", tensor) for name, tensor in call.tensors().items()},
        mask=mask_to(call.mask, call.extent, store),
        **_scoring_to(call, place, store),
    )


def _scoring_to(call: Call, place: str, store: TensorStore) -> dict[str, Any]:
    """What makes the scores of a call besides Q and K; only calls that have them need it."""
    if not isinstance(call, ScoredCall):
        return {"scale": 1.0, "softcap": None, "bias": None}
    return {
        "scale": float(call.scale),
        "softcap": None if call.softcap is None else float(call.softcap),
        "bias": None if call.bias is None else bias_to(call.bias, place, store),
    }


def call_from(described: CallDescription, store: TensorStore, number: int) -> Call:
    """The call that was described; its parts must fit together."""
    tensors = {name: store.get(place) for name, place in described.tensors.items()}
    where = place_of_call(described.name, number)
    sizes = check_tensors(tensors, where)
    call = _built(described, tensors, store)
    check_parts(call, sizes, where)
    return call


def _built(described: CallDescription, tensors: dict[str, Tensor], store: TensorStore) -> Call:
    """The call of the type that has these tensors."""
    common: dict[str, Any] = {
        "name": described.name,
        "kind": described.kind,
        "layer": described.layer,
        "mask": mask_from(described.mask, store),
        "run": described.run,
        "numbers": None if described.heads is None else tuple(described.heads),
    }
    bias = None if described.bias is None else bias_from(described.bias, store)
    if "q" in tensors:
        scoring = {"bias": bias, "scale": described.scale, "softcap": described.softcap}
        return ScoredCall(**common | tensors | scoring)
    if "own_weights" in tensors:
        # Earlier versions wrote sinks beside weights and statistics; nothing needs them there.
        return DenseCall(**common, matrix=tensors["own_weights"])
    kept: dict[str, Any] = {name: tensors.get(f"kept.{name}") for name in _STATISTICS}
    return SummaryCall(**common, kept=Statistics(**kept))


# ---- masks -----------------------------------------------------------------------------------


def mask_to(mask: Mask, extent: Extent, store: TensorStore) -> Any:
    """A mask as JSON: operators as lists, patterns as their text, tables as tensors."""
    if isinstance(mask, Both | Either):
        return [mask.sign, *(mask_to(part, extent, store) for part in mask.parts)]
    if isinstance(mask, Not):
        return ["~", mask_to(mask.part, extent, store)]
    if isinstance(mask, StackedMask):
        return ["rows", *([r.start, r.stop, mask_to(r.mask, r.extent, store)] for r in mask.steps)]
    if isinstance(mask, PlacedMask):
        start = -1 if mask.start is None else mask.start
        return ["placed", mask.first_key, start, mask_to(mask.pattern, extent, store)]
    if isinstance(mask, Dense):
        return ["table", store.put_table(mask, torch.from_numpy(mask.table.values.copy()))]
    if isinstance(mask, FunctionMask):
        # A function cannot be saved; its values can.
        return ["table", store.put_table(mask, mask.dense(*extent))]
    return repr(mask)


def mask_from(described: object, store: TensorStore, depth: int = 0) -> Mask:
    """The mask that was described."""
    if isinstance(described, str):
        return parse(described)
    if not isinstance(described, list) or not described or depth > DEEPEST:
        raise RecordingFileError(
            "A mask must be a text, or a list that starts with its kind, nested at most {deepest} levels.",
            got="{described}",
            deepest=DEEPEST,
            described=repr(described)[:60],
        )
    sign, *parts = described
    if sign == "table":
        (name,) = convert(parts, tuple[str])
        return dense(_mask_table(store.get(name)))
    if sign == "rows":
        return _stacked(convert(parts, list[tuple[Count, Count, Any]]), store, depth)
    if sign == "placed":
        first_key, start, pattern = convert(parts, tuple[Count, Position, Any])
        return PlacedMask(mask_from(pattern, store, depth + 1), first_key, None if start < 0 else start)
    inner = [mask_from(part, store, depth + 1) for part in parts]
    if sign == "~" and len(inner) == 1:
        return ~inner[0]
    if sign not in ("&", "|") or not inner:
        raise RecordingFileError(
            "Masks must be combined with & | ~.", got="{described}", described=repr(described)[:60]
        )
    return Both.of(*inner) if sign == "&" else Either.of(*inner)


def _mask_table(table: Tensor) -> Tensor:
    if table.dtype != torch.bool or not 2 <= table.ndim <= 4 or not table.numel():
        raise RecordingFileError(
            "The table of a mask must hold bools (batch, head, query, key).",
            got="{dtype} of shape {shape}",
            dtype=table.dtype,
            shape=tuple(table.shape),
        )
    return table


def _stacked(parts: list[tuple[int, int, Any]], store: TensorStore, depth: int) -> Mask:
    ends = [start for start, _, _ in parts[:1]] + [stop for _, stop, _ in parts]
    starts = [start for start, _, _ in parts]
    if not parts or starts != ends[:-1] or any(a >= b for a, b in pairwise(ends)):
        raise RecordingFileError(
            "The rows of a mask must follow each other without a gap.",
            got="{rows}",
            rows=str([part[:2] for part in parts])[:60],
        )
    return StackedMask(tuple(MaskRows(a, b, mask_from(part, store, depth + 1)) for a, b, part in parts))


# ---- biases ----------------------------------------------------------------------------------


def bias_to(bias: Bias, place: str, store: TensorStore) -> dict[str, Any]:
    """A bias as JSON, its tables in the store."""
    if isinstance(bias, Sum):
        return {"sum": [bias_to(part, f"{place}.{i}", store) for i, part in enumerate(bias.parts)]}
    if isinstance(bias, ScaledBias):
        factors = store.put(f"{place}.factors", bias.factors)
        return {"scaled": bias_to(bias.part, f"{place}.0", store), "factors": factors}
    if isinstance(bias, CappedBias):
        q, k = (store.put(f"{place}.capped.{name}", table) for name, table in zip("qk", bias.tables))
        capped: dict[str, Any] = to_builtins(CappedDescription(q, k, bias.scale, bias.softcap))
        return capped
    table = store.put(f"{place}.bias", bias.tables[0])
    written: dict[str, Any] = to_builtins(_one_bias(bias, table))
    return written


def _one_bias(bias: Bias, table: str) -> BiasDescription:
    if isinstance(bias, T5):
        return T5Description(table, bias.bidirectional, bias.max_distance)
    if isinstance(bias, Alibi):
        return AlibiDescription(table)
    return RelativeDescription(table) if isinstance(bias, Relative) else TensorDescription(table)


def bias_from(described: dict[str, Any], store: TensorStore, depth: int = 0) -> Bias:
    """The bias that was described."""
    if depth > DEEPEST:
        raise RecordingFileError(
            "A bias must not nest more than {deepest} levels.", got="more", deepest=DEEPEST
        )
    if "sum" in described:
        parts = convert(described, SumDescription).sum
        return Sum(tuple(bias_from(part, store, depth + 1) for part in parts))
    if "scaled" in described:
        found = convert(described, ScaledDescription)
        return ScaledBias(bias_from(found.scaled, store, depth + 1), _factors(store.get(found.factors)))
    if "capped" in described:
        own = convert(described, CappedDescription)
        capped = CappedBias(store.get(own.capped), store.get(own.k), own.scale, own.softcap)
        return capped if own.factors is None else ScaledBias(capped, _factors(store.get(own.factors)))
    one: BiasDescription = convert(described, BiasDescription)
    table = store.get(one.table)
    if isinstance(one, T5Description):
        return t5(table, one.bidirectional, max_distance=one.max_distance)
    if isinstance(one, RelativeDescription):
        return relative(table)
    axes, kind = (1, Alibi) if isinstance(one, AlibiDescription) else (4, TensorBias)
    if table.ndim != axes or not table.numel():
        raise RecordingFileError(
            "The table of this bias must have {axes} axes, none of them empty.",
            got="shape {shape}",
            axes=axes,
            shape=tuple(table.shape),
        )
    return kind(table)


def _factors(factors: Tensor) -> Tensor:
    if not factors.is_floating_point() or factors.ndim != 3 or not bool(factors.isfinite().all()):
        raise RecordingFileError(
            "The factors of a bias must be finite numbers (batch, head, query).",
            got="{dtype} of shape {shape}",
            dtype=factors.dtype,
            shape=tuple(factors.shape),
        )
    return factors
