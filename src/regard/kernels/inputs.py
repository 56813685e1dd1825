"""The user's arguments, checked and normalised.

    q, k, v, mask, bias, scale, softcap, sinks, dropout → Inputs

Tensors become ``(batch, head, length, channel)``, however many leading axes they have; masks and
biases of every accepted kind become a Mask and a Bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import is_fake

from regard.checks import check_number, check_positive, check_probability
from regard.errors import DeviceError, DtypeError, MaskError, ShapeError
from regard.kernels.bias import Bias, BiasLike, Sum, TensorBias
from regard.kernels.precision import FLOATS, LARGEST_SCALE, STEEP, autocasts
from regard.masks import Mask, MaskLike, dense, everything
from regard.masks.extent import Extent
from regard.masks.id_table import is_causal_bias
from regard.masks.mask import as_mask


@dataclass(frozen=True, eq=False)
class Inputs:
    """The checked arguments of one attention call, in one form."""

    q: Tensor  # (batch, head, query, channel)
    k: Tensor  # (batch, key head, key, channel)
    v: Tensor  # (batch, key head, key, value channel)
    lead: tuple[int, ...]  # the leading axes of the user's tensors, without the head axis
    has_heads: bool  # whether they had a head axis
    extent: Extent  # of the whole sequence, of which the tensors may hold only a shard
    mask: Mask
    bias: Bias | None
    scale: float
    softcap: float | None
    sinks: Tensor | None  # (head,)
    dropout: float

    @property
    def heads(self) -> int:
        """The number of query heads."""
        return self.q.shape[1]

    @property
    def steep(self) -> bool:
        """Whether the scores are so large that they must be computed in float64."""
        return abs(self.scale) > STEEP

    def in_double(self) -> Inputs:
        """The same call in float64."""
        return replace(self, q=self.q.double(), k=self.k.double(), v=self.v.double())

    def with_positive_scale(self) -> Inputs:
        """The same call with a positive scale; its sign moves to the queries.

        Kernels with a built-in causal mask write −inf before they multiply by the scale, which
        gives NaN for a scale of 0 and +inf for a negative one; others assume that the greatest product
        is the greatest score. A scale too small for the precision of the scores counts as 0.
        """
        precision = torch.promote_types(self.q.dtype, torch.float32)
        if abs(self.scale) < torch.finfo(precision).tiny:
            return replace(self, q=self.q * 0.0, scale=1.0)
        return self if self.scale > 0 else replace(self, q=-self.q, scale=-self.scale)

    def restore(self, result: Tensor) -> Tensor:
        """A result ``(batch, head, ...)`` with the leading axes of the user's tensors."""
        shape = (*self.lead, *result.shape[1:]) if self.has_heads else (*self.lead, *result.shape[2:])
        return result.reshape(shape)


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor | None,
    *,
    mask: MaskLike | None = None,
    bias: BiasLike | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dropout: float = 0.0,
    extent: Extent | None = None,
) -> Inputs:
    """Check everything once, at the boundary. Without values, the keys are used in their place.

    ``extent`` is that of the whole sequence, if the tensors hold only a shard of it.
    """
    q, k, v = _as_sdpa_takes_them(q, k, k if v is None else v)
    lead, heads = check_tensors(q, k, v)
    has_heads = q.ndim > 2
    batch = prod(lead)
    extent = Extent(q.shape[-2], k.shape[-2]) if extent is None else extent
    q4 = _four_axes(q, lead, has_heads)
    k4, v4 = (_four_axes(x, lead, has_heads) for x in (k, v))
    own_mask, from_mask = _mask_of(mask, lead, heads, extent, q.device)
    return Inputs(
        q4,
        k4,
        v4,
        lead,
        has_heads,
        extent,
        own_mask,
        _bias_of(bias, from_mask, lead, batch, heads, extent, q.device),
        _scale(scale, q.shape[-1]),
        None if softcap is None else check_positive("softcap", softcap),
        None if sinks is None else _check_sinks(sinks, heads, q.device),
        check_probability("dropout", dropout),
    )


# ---- tensors ---------------------------------------------------------------------------------


def _as_sdpa_takes_them(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Leading axes added where others have more, and one dtype for all under autocast, as SDPA does."""
    if not all(isinstance(x, Tensor) for x in tensors):
        return tensors
    axes = [x.ndim for x in tensors]
    if 2 < min(axes) < max(axes):
        tensors = tuple(x[(None,) * (max(axes) - x.ndim)] for x in tensors)
    kinds, device = {x.dtype for x in tensors}, tensors[0].device.type
    if len(kinds) > 1 and kinds <= set(FLOATS[1:]) and autocasts(device):
        tensors = tuple(x.to(torch.get_autocast_dtype(device)) for x in tensors)
    return tensors


def check_tensors(q: Tensor, k: Tensor, v: Tensor | None) -> tuple[tuple[int, ...], int]:
    """Raise unless the tensors fit together; return the leading axes and the number of query heads."""
    v = k if v is None else v
    _check_kinds(q=q, k=k, v=v)
    return _check_shapes(q, k, v)


def _check_kinds(**tensors: object) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise DtypeError(
                "q, k and v must be torch tensors.",
                got="{name} = {type}",
                do="Use torch.as_tensor(...), or regard.reference for NumPy arrays.",
                name=name,
                type=type(tensor).__name__,
            )
        if tensor.dtype not in FLOATS:
            raise DtypeError(
                "q, k and v must be float64, float32, float16 or bfloat16.",
                got="{name}.dtype = {dtype}",
                do="Convert it, for example {name}.float().",
                name=name,
                dtype=tensor.dtype,
            )
    found = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
    if len({tensor.dtype for tensor in found.values()}) > 1:
        kinds = ", ".join(f"{name}.dtype = {tensor.dtype}" for name, tensor in found.items())
        raise DtypeError(
            "q, k and v must have the same dtype.",
            got="{kinds}",
            do="Convert them with .to(...).",
            kinds=kinds,
        )
    if len({tensor.device for tensor in found.values()}) > 1:
        places = ", ".join(f"{name} on {tensor.device}" for name, tensor in found.items())
        raise DeviceError(
            "q, k and v must be on the same device.",
            got="{places}",
            do="Move them with .to(...).",
            places=places,
        )


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> tuple[tuple[int, ...], int]:
    """The leading axes without heads, and the number of query heads."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.ndim == k.ndim == v.ndim or q.ndim < 2:
        raise ShapeError(
            "q, k and v must have the same number of axes, (..., head, length, channel).",
            got="{shapes}",
            do="Add the missing axes, for example with x[None].",
            shapes=shapes,
        )
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            "Queries and keys must have the same number of channels (q = {q}).",
            got="k = {k} in {shapes}",
            do="Project both to the same width.",
            q=q.shape[-1],
            k=k.shape[-1],
            shapes=shapes,
        )
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            "There must be as many values as keys (keys = {keys}).",
            got="values = {values} in {shapes}",
            do="Take both from the same sequence.",
            keys=k.shape[-2],
            values=v.shape[-2],
            shapes=shapes,
        )
    if q.ndim == 2:
        return (), 1
    heads, key_heads = q.shape[-3], k.shape[-3]
    if key_heads != v.shape[-3] or (heads != key_heads and (not key_heads or heads % key_heads)):
        raise ShapeError(
            "Keys and values need the same number of heads, a divisor of the query heads (heads = {heads}).",
            got="key heads = {key_heads}, value heads = {value_heads}",
            do="For grouped-query attention, choose a number of key heads that divides the query heads.",
            heads=heads,
            key_heads=key_heads,
            value_heads=v.shape[-3],
        )
    if q.shape[:-3] == k.shape[:-3] == v.shape[:-3]:
        return tuple(q.shape[:-3]), heads  # the usual case; broadcast_shapes is slow
    try:
        return tuple(torch.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])), heads
    except RuntimeError:
        raise ShapeError(
            "The leading axes of q, k and v must be equal or broadcast.",
            got="{shapes}",
            do="Use the same batch for all three.",
            shapes=shapes,
        ) from None


def _four_axes(x: Tensor, lead: tuple[int, ...], has_heads: bool) -> Tensor:
    if x.stride(-1) != 1:
        x = x.contiguous()  # the fused kernels assume a stride of 1 between channels
    if not has_heads:
        return x[None, None]
    if x.ndim == 4 and x.shape[:1] == lead:
        return x
    return x.expand(*lead, *x.shape[-3:]).reshape(prod(lead), *x.shape[-3:])


# ---- mask and bias ---------------------------------------------------------------------------


def _mask_of(
    given: MaskLike | None, lead: tuple[int, ...], heads: int, extent: Extent, device: torch.device
) -> tuple[Mask, Tensor | None]:
    """The mask, and the finite values of an additive mask."""
    if given is None:
        return everything(), None
    rest: Tensor | None = None
    if isinstance(given, Tensor) and not is_causal_bias(given):
        _check_device("mask", given, device)
        if device.type == "meta" or is_fake(given):
            raise DeviceError(
                "A mask tensor must have data, which decides what is computed.",
                got="a mask tensor without data",
                do="Build the mask with regard.masks, such as masks.causal().",
            )
        if 2 < given.ndim <= len(lead) + 3 and prod(given.shape[:-2]) == 1:
            given = given.reshape(given.shape[-2:])  # one mask for all, which can be planned
        if given.is_floating_point():
            given, rest = _split_additive(given)
    mask = as_mask(given, extent)
    mask.check(extent)
    full = (*lead, heads)
    try:
        fits = not mask.lead or torch.broadcast_shapes(mask.lead, full) == full
    except RuntimeError:
        fits = False
    if not fits:
        no_head_axis = len(mask.lead) == len(lead) and (*mask.lead, 1) != full
        raise ShapeError(
            "A mask must broadcast to (..., batch, head, query, key) = {full}.",
            got="{shape}",
            do="A mask per batch element needs a head axis: use mask[:, None]."
            if no_head_axis
            else "Its axes are (..., batch, head, query, key).",
            full=(*full, *extent),
            shape=(*mask.lead, *extent),
        )
    return mask, rest


def _split_additive(given: Tensor) -> tuple[Mask, Tensor | None]:
    """An additive mask as a Mask, and the remaining finite values, if any."""
    if torch.isnan(given).any():
        raise MaskError(
            "A mask must not contain NaN.",
            got="NaN in an additive mask",
            do="Use 0 where a key may be seen and −inf elsewhere.",
        )
    if torch.isposinf(given).any():
        raise MaskError(
            "A mask must not contain +inf.",
            got="+inf in an additive mask",
            do="Use 0 where a key may be seen and −inf elsewhere.",
        )
    # Hugging Face uses the lowest number of the dtype instead of −inf; it means the same.
    forbidden = given.detach() <= torch.finfo(given.dtype).min
    mask = dense(~forbidden) if forbidden.any() else everything()
    rest = torch.where(forbidden, torch.zeros_like(given), given)
    return mask, rest if given.requires_grad or bool((rest != 0).any()) else None


def _bias_of(
    given: BiasLike | None,
    from_mask: Tensor | None,
    lead: tuple[int, ...],
    batch: int,
    heads: int,
    extent: Extent,
    device: torch.device,
) -> Bias | None:
    parts: list[Bias] = []
    for one in (given, from_mask):
        if one is None:
            continue
        if isinstance(one, Tensor):
            _check_device("bias", one, device)
            if not one.is_floating_point() or is_causal_bias(one):
                raise DtypeError(
                    "A bias must hold floating-point numbers.",
                    got="a causal bias of torch" if is_causal_bias(one) else "{dtype}",
                    do="A bool tensor is a mask: pass mask=.",
                    dtype=one.dtype,
                )
            one = TensorBias(_bias_tensor(one, lead, heads, extent))
        if not isinstance(one, Bias):
            raise DtypeError(
                "A bias must be a tensor or come from regard.biases.",
                got="{type}",
                do="Use biases.alibi(heads), for example.",
                type=type(one).__name__,
            )
        for table in one.tables:
            _check_device("bias", table, device)
        one.check(batch, heads, extent)
        parts.append(one)
    if len(parts) > 1:
        return Sum(tuple(parts))
    return parts[0] if parts else None


def _bias_tensor(given: Tensor, lead: tuple[int, ...], heads: int, extent: Extent) -> Tensor:
    """Four axes: (batch or 1, head or 1, query or 1, key or 1)."""
    wide = given[(None,) * (4 - given.ndim)] if given.ndim < 4 else given
    own = tuple(wide.shape[:-3])
    if prod(own) == 1:
        return wide.reshape(1, *wide.shape[-3:])
    try:
        return wide.expand(*lead, *wide.shape[-3:]).reshape(prod(lead), *wide.shape[-3:])
    except RuntimeError:
        raise ShapeError(
            "A bias must broadcast to (..., batch, head, query, key) = {full}.",
            got="shape {shape}",
            do="Its last three axes are head, query and key; use size 1 where it does not vary.",
            full=(*lead, heads, *extent),
            shape=tuple(given.shape),
        ) from None


def _check_device(name: str, tensor: Tensor, device: torch.device) -> None:
    if tensor.device != device:
        raise DeviceError(
            "{name} must be on the device of q ({device}).",
            got="{name} on {own}",
            do="Move it with .to(...).",
            name=name,
            device=device,
            own=tensor.device,
        )


# ---- numbers ---------------------------------------------------------------------------------


def _scale(given: float | None, channels: int) -> float:
    if given is None:
        return channels**-0.5 if channels else 1.0
    return check_number("scale", given, -LARGEST_SCALE, LARGEST_SCALE)


def _check_sinks(sinks: object, heads: int, device: torch.device) -> Tensor:
    if not isinstance(sinks, Tensor) or not sinks.is_floating_point():
        raise DtypeError(
            "sinks must be a float tensor, one logit per query head.",
            got="{type}",
            do="Pass shape (heads,).",
            type=type(sinks).__name__,
        )
    _check_device("sinks", sinks, device)
    if tuple(sinks.shape) != (heads,):
        raise ShapeError(
            "sinks must have one logit per query head (heads = {heads}).",
            got="shape {shape}",
            do="Pass shape (heads,).",
            heads=heads,
            shape=tuple(sinks.shape),
        )
    return sinks
