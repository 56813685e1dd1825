"""Attention as an operator of torch: one node in the graphs of torch.compile and torch.export.

    q, k, v, mask as text or tensor, options → regard::attention → output, lse

The operator plans when it runs, so a graph fits any length that it is guarded for. Its backward pass
is an operator too, and takes the output and the lse of the forward pass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ArgumentError
from regard.kernels.bias import BiasLike
from regard.kernels.functional import run_planned
from regard.kernels.inputs import Inputs, check_tensors, prepare
from regard.kernels.planner import plan_extent
from regard.kernels.tiled import run_backward
from regard.masks import Mask, MaskLike, parse

_OPTIONS = "Tensor? allowed, Tensor? bias, Tensor? sinks, str mask, float? scale, float? softcap"

_parse = lru_cache(maxsize=256)(parse)


def traced_call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: MaskLike | None,
    bias: BiasLike | None,
    scale: float | None,
    softcap: float | None,
    sinks: Tensor | None,
    dropout: float,
) -> Tensor:
    """``attention()`` while torch traces it into a graph."""
    if dropout:
        raise ArgumentError(
            "torch.compile and torch.export need regard.attention without dropout.",
            got="dropout = {dropout}",
            do="Set dropout=0.0, or call it outside the compiled function.",
            dropout=dropout,
        )
    if bias is not None and not isinstance(bias, Tensor):
        raise ArgumentError(
            "torch.compile and torch.export need a bias that is a tensor.",
            got="a bias of regard.biases",
            do="Pass bias=bias.dense(queries, keys), or call it outside the compiled function.",
        )
    plain = bias is None and softcap is None and sinks is None
    if plain and mask is None and q.ndim == 4 and k.shape == v.shape and q.shape[0] == k.shape[0]:
        grouped = q.shape[1] != k.shape[1]
        return F.scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=grouped)
    text, allowed = "", None
    if isinstance(mask, Tensor):
        allowed = mask
    elif mask is not None:
        text = _text(mask)
    output: Tensor = torch.ops.regard.attention(q, k, v, allowed, bias, sinks, text, scale, softcap)[0]
    return output


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _text(mask: MaskLike) -> str:
    """The mask as text, which a graph can hold and save."""
    return repr(mask) if isinstance(mask, Mask) else repr(prepare_mask(mask))


def prepare_mask(mask: MaskLike) -> Mask:
    """An array as a mask."""
    from regard.masks import as_mask

    return as_mask(mask)


def _inputs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None,
    bias: Tensor | None,
    sinks: Tensor | None,
    mask: str,
    scale: float | None,
    softcap: float | None,
) -> Inputs:
    given: Any = allowed if allowed is not None else _parse(mask) if mask else None
    return prepare(q, k, v, mask=given, bias=bias, scale=scale, softcap=softcap, sinks=sinks)


def _forward(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    inputs = _inputs(q, k, v, *options)
    output, lse = run_planned(inputs, plan_extent(inputs.mask, inputs.extent))
    return inputs.restore(output).contiguous(), inputs.restore(lse).contiguous()


def _backward(
    grad: Tensor, output: Tensor, lse: Tensor, q: Tensor, k: Tensor, v: Tensor, *options: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    inputs = _inputs(q, k, v, *options)
    rows = [x.reshape(inputs.q.shape[0], inputs.heads, *x.shape[-2:]) for x in (grad, output)]
    plan = plan_extent(inputs.mask, inputs.extent)
    found: tuple[Any, ...] = run_backward(inputs, plan, rows[0], rows[1], lse.reshape(inputs.q.shape[:-1]))
    of_q, of_k, of_v, of_sinks, *of_tables = found
    of_tensors = [_reduced(own, x, inputs.lead) for own, x in zip((of_q, of_k, of_v), (q, k, v))]
    bias, sinks = options[1], options[2]
    of_bias = q.new_empty(0) if bias is None else _reduced(of_tables[0], bias, inputs.lead)
    of_q, of_k, of_v = of_tensors
    return of_q, of_k, of_v, of_bias, q.new_empty(0) if sinks is None else of_sinks


def _reduced(grad: Tensor, x: Tensor, lead: tuple[int, ...]) -> Tensor:
    """The gradient of ``x``, which was broadcast to the leading axes ``lead`` and flattened."""
    wide = (1,) * (4 - x.ndim) + tuple(x.shape)
    full = grad if grad.shape[0] == 1 else grad.reshape(*lead, *grad.shape[1:])
    while full.ndim < len(wide):
        full = full[None]
    own = full.sum_to_size(*wide[len(wide) - full.ndim :]).reshape(x.shape).to(x.dtype)
    # A new tensor in the usual order of memory, as the fake operator promises and inductor asserts.
    return own.clone(memory_format=torch.contiguous_format)


def _register() -> None:
    operator: Any = torch.library.custom_op(
        "regard::attention",
        _forward,
        mutates_args=(),
        schema=f"(Tensor q, Tensor k, Tensor v, {_OPTIONS}) -> (Tensor, Tensor)",
    )
    backward: Any = torch.library.custom_op(
        "regard::attention_backward",
        _backward,
        mutates_args=(),
        schema=f"(Tensor grad, Tensor output, Tensor lse, Tensor q, Tensor k, Tensor v, {_OPTIONS})"
        " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    )

    @operator.register_fake  # type: ignore[untyped-decorator]
    def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
        lead, heads = check_tensors(q, k, v)
        shape = (*lead, heads, q.shape[-2]) if q.ndim > 2 else (q.shape[-2],)
        wide = torch.promote_types(q.dtype, torch.float32)
        return q.new_empty((*shape, v.shape[-1])), q.new_empty(shape, dtype=wide)

    @backward.register_fake  # type: ignore[untyped-decorator]
    def _(
        grad: Tensor, output: Tensor, lse: Tensor, q: Tensor, k: Tensor, v: Tensor, *options: Any
    ) -> tuple[Tensor, ...]:
        del grad, output, lse
        bias, sinks = options[1], options[2]
        return tuple(q.new_empty(0) if x is None else x.new_empty(x.shape) for x in (q, k, v, bias, sinks))

    def save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*output, *inputs[:6])
        ctx.options = inputs[6:]
        ctx.mark_non_differentiable(output[1])

    def differentiate(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        found = backward(grad.contiguous(), *saved, *ctx.options)
        of_q, of_k, of_v, of_bias, of_sinks = found
        bias, sinks = saved[6], saved[7]
        return (
            *(of_q, of_k, of_v, None),
            None if bias is None else of_bias,
            None if sinks is None else of_sinks,
            *(None, None, None),
        )

    operator.register_autograd(differentiate, setup_context=save)


_register()
