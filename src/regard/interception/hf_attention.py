"""What transformers calls in a model that is watched or edited: a mask function and an attention function.

    mask function, padding  → mask_function()      → TransformersMask, a lazy mask
    module, Q, K, V, mask   → attention_function() → InterceptedCall → pipeline.attend() → output

Both are registered under the name ``regard_watch``, which the configurations of the model have as their
attention while the block runs (``model_interception.py``). transformers describes a mask by a function of
(batch, head, query, key) index, composed of a few known ones, and a 2-D padding mask. The known ones become
regard masks, so that no model builds its mask as n×n; any other is evaluated tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import ReferenceType, ref

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import RecordingError
from regard.interception.call_types import InterceptedCall, Kind, MaskView
from regard.interception.function_mask import FunctionMask, MaskFunction
from regard.interception.mask_tensor import MaskTensor
from regard.interception.pipeline import ModuleTracker, attend, to_autocast_dtype, trackers_of
from regard.kernels import attention_weights
from regard.kernels.bias import Bias
from regard.kernels.biases import t5
from regard.kernels.inputs import Inputs, prepare
from regard.masks import Mask, MaskLike, causal, documents, everything, padding, window
from regard.masks.mask import Both, Constant, Either
from regard.masks.patterns import OneAxis

IMPLEMENTATION = "regard_watch"


@dataclass
class ReplacedConfig:
    """A configuration that now names our attention, and what it named before."""

    config: Any
    before: str | None
    users: int = 1


replaced_configs: dict[int, ReplacedConfig] = {}
"""The configurations of all models that are watched or edited now, by id."""


def _before(config: Any) -> str | None:
    known = replaced_configs.get(id(config))
    return None if known is None else known.before


# ---- calls -----------------------------------------------------------------------------------


def mask_function(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] | None = None,
    attention_mask: Tensor | TransformersMask | None = None,
    use_vmap: bool = False,
    config: Any = None,
    **options: Any,
) -> TransformersMask:
    """The mask of one forward pass, lazily; never None, so that causal models stay causal."""
    if isinstance(attention_mask, TransformersMask):
        return attention_mask  # made earlier, and passed through the model
    from transformers import masking_utils

    function = mask_function or masking_utils.causal_mask_function
    past = int(q_offset)

    def make_tensor() -> Tensor | None:
        kind = "eager" if _before(config) == "eager" else "sdpa"
        make: Any = masking_utils.AttentionMaskInterface._global_mapping[kind]
        return make(  # type: ignore[no-any-return]
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            q_offset=past,
            kv_offset=kv_offset,
            mask_function=function,
            attention_mask=attention_mask,
            use_vmap=use_vmap,
            **{**options, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False},
        )

    keep = None if attention_mask is None else attention_mask.bool()
    return TransformersMask(
        function, keep, batch_size, q_length, kv_length, past, int(kv_offset), use_vmap, make_tensor
    )


def attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    is_causal: bool | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of one module, through the pipeline of every tracker of it."""
    _check_softcap(module, softcap)
    given, view = attention_mask, None
    if isinstance(given, TransformersMask):
        given, key, value = _fitted(given, key, value)
        view = given
        mask: MaskLike | None = given.here()
    elif given is None and _relies_on_causal(module, query, is_causal):
        mask = causal()
        key, value = key[:, :, : query.shape[2]], value[:, :, : query.shape[2]]
    else:
        mask = given
    if position_bias is not None and position_bias.shape[-1] != key.shape[2]:
        position_bias = position_bias[..., : key.shape[2]]
    query, key, value = to_autocast_dtype(query, key, value)
    inputs = prepare(
        query,
        key,
        value,
        mask=mask,
        bias=_bias_of(module, position_bias),
        scale=scaling,
        softcap=softcap,
        sinks=s_aux,
        dropout=dropout,
    )
    seen_by = trackers_of(module)
    kind = _kind(module, seen_by, inputs, view)
    call = InterceptedCall(inputs, module, kind, **_position_fields(view, inputs))
    output, computed = attend(call, seen_by)
    weights = None
    if _wants_weights(options):
        weights = attention_weights(
            computed.q,
            computed.k,
            mask=computed.mask,
            bias=computed.bias,
            scale=computed.scale,
            softcap=computed.softcap,
            sinks=computed.sinks,
        )
    return output.transpose(1, 2).contiguous(), weights


def _check_softcap(module: nn.Module, softcap: float | None) -> None:
    """Under ``sdpa`` transformers drops a softcap (before 5.22) or refuses; neither is the model."""
    if softcap is not None and _before(getattr(module, "config", None)) == "sdpa":
        raise RecordingError(
            "A model with a softcap ({softcap:g}) needs an attention implementation that applies it.",
            got="sdpa, which does not",
            do='Load the model with attn_implementation="eager".',
            softcap=softcap,
        )


def _fitted(placed: TransformersMask, key: Tensor, value: Tensor) -> tuple[TransformersMask, Tensor, Tensor]:
    """Cut keys and mask to one length: a static cache has room for keys that are yet to come."""
    keys = min(key.shape[2], placed.keys)
    if placed.causal:
        keys = min(keys, placed.past + placed.queries - placed.first_key)
    if keys == key.shape[2] == placed.keys:
        return placed, key, value
    return replace(placed, keys=keys), key[:, :, :keys], value[:, :, :keys]


def _relies_on_causal(module: nn.Module, query: Tensor, is_causal: bool | None) -> bool:
    """Whether no mask means causal, as for the ``sdpa`` attention, or nothing at all, as for ``eager``."""
    if _before(getattr(module, "config", None)) == "eager" or query.shape[2] == 1:
        return False
    return bool(getattr(module, "is_causal", True)) if is_causal is None else bool(is_causal)


def _bias_of(module: nn.Module, given: Tensor | None) -> Bias | Tensor | None:
    """The position bias; for T5, the small table that it comes from."""
    if given is None:
        return None
    for tracker in trackers_of(module):
        lazy = tracker.lazy_biases.get(id(given))
        if lazy is not None and lazy[0] is given:
            return lazy[1]
    bias: Bias | None = None
    if not getattr(module, "has_relative_attention_bias", True) and not given.any():
        return None  # T5 adds zeros where it has no bias
    table = getattr(getattr(module, "relative_attention_bias", None), "weight", None)
    if isinstance(table, Tensor) and hasattr(module, "relative_attention_max_distance"):
        bias = t5(
            table,
            not getattr(module, "is_decoder", False),
            max_distance=int(module.relative_attention_max_distance),  # type: ignore[arg-type]
        )
    if bias is None:
        return given
    for tracker in trackers_of(module):
        # The first layer makes the bias and passes the same tensor to all others.
        tracker.lazy_biases.clear()
        tracker.lazy_biases[id(given)] = (given, bias)
    return bias


def _kind(
    module: nn.Module, trackers: list[ModuleTracker], inputs: Inputs, view: TransformersMask | None
) -> Kind:
    if not trackers:
        return "encoder"
    if view is not None and view.of_decoder:
        return "decoder"
    if getattr(module, "is_cross_attention", False):
        return "cross"
    return trackers[0].kind_of(inputs, module)


def _position_fields(view: TransformersMask | None, inputs: Inputs) -> dict[str, Any]:
    if view is None or not view.aligned:
        return {"view": None, "past": max(0, inputs.extent.offset)}
    return {"view": view, "past": view.past, "first_key": view.first_key}


def _wants_weights(options: dict[str, Any]) -> bool:
    """Whether the user also asked the model for its weights; then n×n is what they want."""
    if options.get("output_attentions"):
        return True
    from transformers.utils import output_capturing

    active: Any = output_capturing._active_collector
    collector = active.get()
    return collector is not None and any("attentions" in name for name in collector)


# ---- the masks -------------------------------------------------------------------------------


class UnknownMaskFunction(Exception):  # noqa: N818 - it never leaves this file
    """Not one of the mask functions that regard knows."""


@dataclass(frozen=True, eq=False)
class TransformersMask(MaskTensor):
    """A mask function of transformers, with the span of the text that it is for.

    Queries are at ``past … past + queries − 1`` and keys at ``first_key … first_key + keys − 1``.
    For a model that computes with its mask it behaves like the tensor it represents.
    """

    function: MaskFunction
    keep: Tensor | None  # (batch, position), False at padding
    batch: int
    queries: int
    keys: int
    past: int
    first_key: int
    one_by_one: bool  # whether the function takes single indices only
    make_tensor: Callable[[], Tensor | None] = field(repr=False)
    # The last answer of ``after``: the view before it (weakly, or each would hold all before it), the
    # length, and whether this view continues where that one ended.
    _last_answer: list[tuple[ReferenceType[MaskView], int, bool]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def causal(self) -> bool:
        """Whether the function never lets a query see a later key."""
        return _is_causal(self.function, strictly=True)

    @property
    def of_decoder(self) -> bool:
        """Whether it looks back, perhaps with exceptions such as a prefix or an image read at once."""
        return _is_causal(self.function, strictly=False)

    def over(self, first: int, stop: int) -> Mask:
        """The mask whose key 0 is at ``first`` and whose last query and key are at ``stop − 1``."""
        kept = self._padding(first, stop)
        try:
            return translated(self.function, first, stop) & kept
        except UnknownMaskFunction:
            return FunctionMask(self.function, self.batch, first, first, self.one_by_one) & kept

    @cached_property
    def whole(self) -> Mask:
        """The mask over these keys, if the last query is at the last of them."""
        return self.over(self.first_key, self.first_key + self.keys)

    @property
    def aligned(self) -> bool:
        """Whether the last query is at the last key, as regard assumes, or it does not matter."""
        same = self.past + self.queries == self.first_key + self.keys
        return same or all(_ignores_queries(part) for part in self.whole.patterns())

    def here(self) -> Mask:
        """The mask of exactly these queries and keys."""
        if self.aligned:
            return self.whole
        shift = self.past + self.queries - self.keys
        asked = FunctionMask(self.function, self.batch, shift, self.first_key, self.one_by_one)
        return asked & self._padding(self.first_key, self.first_key + self.keys)

    def _padding(self, first: int, stop: int) -> Mask:
        if self.keep is None:
            return everything()
        kept = _stretch(self.keep, first, stop, fill=False)
        return everything() if bool(kept.all()) else padding(kept)

    def after(self, before: MaskView, length: int) -> MaskView | None:
        """This view, if it agrees with the view before it on the first positions."""
        # All layers of a pass share their view, so the answer for the first serves the others.
        for view, known, continues in self._last_answer:
            if view() is before and known == length:
                return self if continues else None
        continues = self._repeats(before, length)
        self._last_answer[:] = [(ref(before), length, continues)]
        return self if continues else None

    def _repeats(self, before: MaskView, length: int) -> bool:
        if not isinstance(before, TransformersMask) or not self.causal or not before.causal:
            return False
        bare = [replace(view, keep=None).over(0, length) for view in (before, self)]
        return bare[0] == bare[1] and before._padding(0, length) == self._padding(0, length)

    # ---- as a tensor ---------------------------------------------------------------------------

    def dense(self) -> Tensor | None:
        """The tensor that the model would have got without regard."""
        return self.make_tensor()

    @property
    def shape(self) -> torch.Size:
        """The shape of that tensor."""
        return torch.Size((self.batch, 1, self.queries, self.keys))


def _stretch(table: Tensor, first: int, stop: int, *, fill: Any) -> Tensor:
    """Columns ``first … stop − 1`` of a table; those it does not have are filled."""
    columns = table[:, first:stop]
    return F.pad(columns, (0, stop - first - columns.shape[1]), value=fill)


def _ignores_queries(part: Mask) -> bool:
    return isinstance(part, Constant) or (isinstance(part, OneAxis) and not part.transposed)


# ---- the known functions ---------------------------------------------------------------------


def _parts(function: MaskFunction) -> tuple[str, dict[str, Any]]:
    """Which function of transformers made this one, and with which values."""
    if getattr(function, "__module__", "") != "transformers.masking_utils":
        raise UnknownMaskFunction
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    return function.__qualname__.partition(".")[0], {name: cell.cell_contents for name, cell in cells}


def _is_causal(function: MaskFunction, *, strictly: bool) -> bool:
    try:
        maker, values = _parts(function)
    except UnknownMaskFunction:
        return False
    if maker == "and_masks" or (maker == "or_masks" and not strictly):
        return any(_is_causal(part, strictly=strictly) for part in values["mask_functions"])
    return maker == "causal_mask_function"


def translated(function: MaskFunction, first: int, stop: int) -> Mask:
    """A known mask function over the keys ``first … stop − 1``."""
    maker, values = _parts(function)
    if maker in ("and_masks", "or_masks"):
        parts = [translated(part, first, stop) for part in values["mask_functions"]]
        return Both.of(*parts) if maker == "and_masks" else Either.of(*parts)
    if maker not in KNOWN:
        raise UnknownMaskFunction
    return KNOWN[maker](values, first, stop)


def _chunks(values: dict[str, Any], first: int, stop: int) -> Mask:
    positions = torch.arange(first, stop, device=values["left_padding"].device)
    return documents((positions - values["left_padding"][:, None]) // values["chunk_size"])


def _blocks(values: dict[str, Any], first: int, stop: int) -> Mask:
    ids = _stretch(values["block_sequence_ids"], first, stop, fill=-1)
    return documents(ids) & padding(ids >= 0)


KNOWN: dict[str, Callable[[dict[str, Any], int, int], Mask]] = {
    "causal_mask_function": lambda values, first, stop: causal(),
    "bidirectional_mask_function": lambda values, first, stop: everything(),
    # transformers counts the query itself: a window of w sees w − 1 keys before it.
    "sliding_window_overlay": lambda values, first, stop: window(values["sliding_window"] - 1, None),
    "sliding_window_bidirectional_overlay": lambda values, first, stop: window(
        values["sliding_window"], values["sliding_window"]
    ),
    "chunked_overlay": _chunks,
    "blockwise_overlay": _blocks,
    "packed_sequence_mask_function": lambda values, first, stop: documents(
        _stretch(values["packed_sequence_mask"], first, stop, fill=-1)
    ),
    "padding_mask_function": lambda values, first, stop: padding(
        _stretch(values["padding_mask"].bool(), first, stop, fill=False)
    ),
}
