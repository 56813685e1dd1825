"""Calls, masks, biases and statistics as JSON beside named tensors, and back, with every value checked."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention import Statistics
from regard.attention.biases import T5, Alibi, Bias, Relative, Sum, TensorBias, relative, t5
from regard.errors import RecordingFileError
from regard.masks import Mask, dense, parse
from regard.masks.mask import Both, Either, Not
from regard.masks.patterns import Dense
from regard.masks.positions import Extent
from regard.recording.call import KINDS, Call
from regard.recording.placing import FunctionMask
from regard.recording.stacking import Rows, Stacked


class Shelf:
    """Tensors by name. Equal masks share theirs."""

    def __init__(self, tensors: dict[str, Tensor] | None = None) -> None:
        self.tensors = {} if tensors is None else tensors
        self._tables: dict[Mask, str] = {}

    def put(self, name: str, tensor: Tensor) -> str:
        """Keep a tensor; a copy, because safetensors wants each to have memory of its own."""
        self.tensors[name] = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        return name

    def put_table(self, mask: Mask, table: Tensor) -> str:
        """Keep the table of a mask, once."""
        if mask not in self._tables:
            self._tables[mask] = self.put(f"mask.{len(self._tables)}", table)
        return self._tables[mask]

    def get(self, name: object) -> Tensor:
        """A tensor that must be there."""
        if not isinstance(name, str) or name not in self.tensors:
            raise RecordingFileError("A recording holds the tensors it names.", got=f"{name!r}")
        return self.tensors[name]


# ---- calls -----------------------------------------------------------------------------------


def call_to(call: Call, shelf: Shelf) -> dict[str, Any]:
    """A call as JSON, its tensors on the shelf."""
    place = f"call.{sum(name.endswith('.lse') or name.endswith('.own_weights') for name in shelf.tensors)}"
    names = {name: shelf.put(f"{place}.{name}", tensor) for name, tensor in call.tensors().items()}
    return {
        "name": call.name,
        "kind": call.kind,
        "layer": call.layer,
        "run": call.run,
        "scale": call.scale,
        "softcap": call.softcap,
        "heads": call.numbers,
        "tensors": names,
        "mask": mask_to(call.mask, call.extent, shelf),
        "bias": None if call.bias is None else bias_to(call.bias, place, shelf),
    }


def call_from(described: dict[str, Any], shelf: Shelf) -> Call:
    """The call that was described; its parts must fit together."""
    tensors = {name: shelf.get(place) for name, place in described["tensors"].items()}
    known = {field.name for field in fields(Statistics)}
    kept: dict[str, Any] = {name: tensors.pop(f"kept.{name}", None) for name in known}
    numbers = described["heads"]
    call = Call(
        name=_is(described["name"], str),
        kind=_is(described["kind"], str),
        layer=_is(described["layer"], int),
        mask=mask_from(described["mask"], shelf),
        bias=None if described["bias"] is None else bias_from(described["bias"], shelf),
        scale=float(described["scale"]),
        softcap=None if described["softcap"] is None else float(described["softcap"]),
        run=_is(described["run"], int),
        numbers=None if numbers is None else tuple(_is(number, int) for number in numbers),
        kept=Statistics(**kept) if kept["lse"] is not None and "q" not in tensors else None,
        **tensors,
    )
    _check(call)
    return call


def _is(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise RecordingFileError(f"A recording has a {kind.__name__} here.", got=repr(value)[:60])
    return value


def _check(call: Call) -> None:
    """Raise unless the shapes of a call are those of one call."""
    if call.kind not in KINDS:
        raise RecordingFileError(f"A call is one of {', '.join(KINDS)}.", got=repr(call.kind))
    batch, heads, queries, keys = call.shape
    wanted: dict[str, tuple[int, ...]] = {"lse": (batch, heads, queries), "sinks": (heads,)}
    for name, shape in wanted.items():
        tensor = getattr(call, name)
        if tensor is not None and tuple(tensor.shape) != shape:
            raise RecordingFileError(f"{name} has shape {shape}.", got=str(tuple(tensor.shape)))
    if call.q is not None and call.k is not None:
        fits = call.k.shape[0] == batch and call.q.shape[-1] == call.k.shape[-1] and call.lse is not None
        if not fits or not call.k.shape[1] or heads % call.k.shape[1]:
            raise RecordingFileError(
                "q and k are of one call.", got=f"{tuple(call.q.shape)}, {tuple(call.k.shape)}"
            )
    if call.numbers is not None and len(call.numbers) != heads:
        raise RecordingFileError(f"There is a number for each head (heads = {heads}).", got=str(call.numbers))
    call.mask.check(Extent(queries, keys))
    np.broadcast_shapes(call.mask.lead, (batch, heads))
    if call.bias is not None:
        call.bias.check(batch, heads, Extent(queries, keys))


# ---- masks -----------------------------------------------------------------------------------


def mask_to(mask: Mask, extent: Extent, shelf: Shelf) -> Any:
    """A mask as JSON: operators as lists, patterns as their text, tables as tensors."""
    if isinstance(mask, Both | Either):
        return [mask.sign, *(mask_to(part, extent, shelf) for part in mask.parts)]
    if isinstance(mask, Not):
        return ["~", mask_to(mask.part, extent, shelf)]
    if isinstance(mask, Stacked):
        return ["rows", *([r.start, r.stop, mask_to(r.mask, r.extent, shelf)] for r in mask.steps)]
    if isinstance(mask, Dense):
        return ["table", shelf.put_table(mask, torch.from_numpy(mask.table.values.copy()))]
    if isinstance(mask, FunctionMask):
        # A function cannot go into a file; what it says can.
        return ["table", shelf.put_table(mask, mask.dense(*extent))]
    return repr(mask)


def mask_from(described: Any, shelf: Shelf, depth: int = 0) -> Mask:
    """The mask that was described."""
    if isinstance(described, str):
        return parse(described)
    sign, *parts = _is(described, list)
    if depth > 50:
        raise RecordingFileError("A mask nests at most 50 levels.", got="more")
    if sign == "table":
        return dense(shelf.get(parts[0]))
    if sign == "rows":
        steps = (Rows(_is(a, int), _is(b, int), mask_from(part, shelf, depth + 1)) for a, b, part in parts)
        return Stacked(tuple(steps))
    inner = [mask_from(part, shelf, depth + 1) for part in parts]
    if sign == "~":
        return ~inner[0]
    if sign not in ("&", "|"):
        raise RecordingFileError("Masks are joined by & | ~.", got=repr(sign)[:60])
    return Both.of(*inner) if sign == "&" else Either.of(*inner)


# ---- biases ----------------------------------------------------------------------------------


def bias_to(bias: Bias, place: str, shelf: Shelf) -> dict[str, Any]:
    """A bias as JSON, its tables on the shelf."""
    if isinstance(bias, Sum):
        return {"sum": [bias_to(part, f"{place}.{i}", shelf) for i, part in enumerate(bias.parts)]}
    described: dict[str, Any] = {"table": shelf.put(f"{place}.bias", bias.tables[0])}
    if isinstance(bias, T5):
        return {
            "kind": "t5",
            "bidirectional": bias.bidirectional,
            "max_distance": bias.max_distance,
            **described,
        }
    kinds = {Alibi: "alibi", Relative: "relative", TensorBias: "tensor"}
    return {"kind": kinds[type(bias)], **described}


def bias_from(described: dict[str, Any], shelf: Shelf) -> Bias:
    """The bias that was described."""
    if "sum" in described:
        return Sum(tuple(bias_from(part, shelf) for part in described["sum"]))
    table = shelf.get(described["table"])
    match described["kind"]:
        case "t5":
            far = _is(described["max_distance"], int)
            return t5(table, _is(described["bidirectional"], bool), max_distance=far)
        case "relative":
            return relative(table)
        case "alibi" if table.ndim == 1:
            return Alibi(table)
        case "tensor" if table.ndim == 4:
            return TensorBias(table)
    raise RecordingFileError("A bias is t5, relative, alibi or tensor.", got=repr(described["kind"])[:60])
