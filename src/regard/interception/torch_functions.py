"""Any PyTorch model: intercept every call of torch's own attention functions, and of regard's.

``F.scaled_dot_product_attention`` and ``regard.attention`` are one function each;
``nn.MultiheadAttention`` and ``nn.Transformer*`` go through ``F.multi_head_attention_forward``, which is
run here with our own attention inside.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from math import prod
from types import FunctionType
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.interception.call_types import InterceptedCall
from regard.interception.pipeline import ModuleTracker, attend, running_trackers, to_autocast_dtype
from regard.kernels import attention, attention_weights
from regard.kernels.inputs import Inputs, prepare
from regard.masks import MaskLike, dense
from regard.masks.id_table import causal_bias, is_causal_bias
from regard.masks.patterns import upper_left_causal


class AttentionFunctionMode(TorchFunctionMode):
    """Intercepts the attention functions that are called while it is active, in this thread.

    Several can be active, one for each watch; the innermost one computes, and writes for all of them.
    """

    sees_pieces = False  # so that the pieces of a call may run on other threads

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        seen: dict[Any, Callable[..., Any]] = {
            F.scaled_dot_product_attention: self._sdpa,
            F.multi_head_attention_forward: self._multi_head,
            attention: self._regard,
        }
        if func in seen:
            trackers = running_trackers()
            if trackers:
                return seen[func](trackers, *args, **kwargs)
        return func(*args, **kwargs)

    def _regard(
        self, trackers: list[ModuleTracker], q: Tensor, k: Tensor, v: Tensor, **options: Any
    ) -> Tensor:
        inputs = prepare(q, k, v, **options)
        return inputs.restore(_attend(inputs, trackers)[0])

    def _sdpa(
        self,
        trackers: list[ModuleTracker],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        del enable_gqa  # regard reads it off the shapes
        mask: MaskLike | None = attn_mask
        if is_causal or _begins_at_the_first_key(attn_mask):
            mask = upper_left_causal(query.shape[-2], key.shape[-2])
        inputs = prepare(*to_autocast_dtype(query, key, value), mask=mask, scale=scale, dropout=dropout_p)
        return inputs.restore(_attend(inputs, trackers)[0])

    def _multi_head(
        self, trackers: list[ModuleTracker], *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:
        """As torch does it, with the weights only if they were asked for."""
        call = inspect.signature(F.multi_head_attention_forward).bind(*args, **kwargs)
        call.apply_defaults()
        asked, average = call.arguments["need_weights"], call.arguments["average_attn_weights"]
        call.arguments["need_weights"] = False
        inside: list[Inputs] = []
        output, _ = _with_our_attention(trackers, inside)(*call.args, **call.kwargs)
        if not asked:
            return output, None
        seen = inside[0]
        weights = attention_weights(seen.q, seen.k, mask=seen.mask, bias=seen.bias, scale=seen.scale)
        weights = weights.mean(1) if average else weights
        return output, weights[0] if call.arguments["query"].dim() == 2 else weights


def _begins_at_the_first_key(attn_mask: object) -> bool:
    """Whether torch reads this bias as ``is_causal``, whatever sizes it was made for."""
    if not is_causal_bias(attn_mask):
        return False
    lower_right, (queries, keys) = causal_bias(attn_mask)
    return not lower_right or queries == keys


def _attend(inputs: Inputs, trackers: list[ModuleTracker]) -> tuple[Tensor, Inputs]:
    """The output, and the inputs that it was computed from."""
    inputs = _with_one_batch_axis(inputs)
    kind = trackers[0].kind_of(inputs, trackers[0].running)
    # The model says nothing about positions, so the last query is at the last key.
    return attend(InterceptedCall(inputs, None, kind, None, max(0, inputs.extent.offset)), trackers)


def _with_one_batch_axis(inputs: Inputs) -> Inputs:
    """The inputs as if their leading axes had been one, as Q, K and V already have it."""
    lead, mask = inputs.lead, inputs.mask
    if len(lead) < 2:
        return inputs
    if len(mask.lead) > 2:
        # A mask that differs along several axes is a tensor that the model made.
        table = mask.dense(*inputs.extent)
        shape = (*(lead if prod(mask.lead[:-1]) > 1 else (1,) * len(lead)), *table.shape[-3:])
        mask = dense(table.expand(shape).flatten(0, len(lead) - 1))
    return replace(inputs, lead=(len(inputs.q),), mask=mask)


def _with_our_attention(
    trackers: list[ModuleTracker], inside: list[Inputs]
) -> Callable[..., tuple[Tensor, Any]]:
    """A copy of torch's function that calls our ``scaled_dot_product_attention``.

    A copy with its own globals, because replacing the name in torch would affect every thread.
    """

    def ours(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, is_causal: bool) -> Tensor:
        chosen: MaskLike | None = upper_left_causal(q.shape[-2], k.shape[-2]) if is_causal else mask
        inputs = prepare(*to_autocast_dtype(q, k, v), mask=chosen, dropout=dropout)
        output, computed = _attend(inputs, trackers)
        inside.append(computed)
        return output

    original = F.multi_head_attention_forward
    names = {**vars(F), "scaled_dot_product_attention": ours, "has_torch_function": lambda _: False}
    copy = FunctionType(original.__code__, names, original.__name__, original.__defaults__)
    copy.__kwdefaults__ = original.__kwdefaults__
    return copy
