"""A small recording of every kind that a file can hold, made by hand."""

import torch

from regard.kernels import attention_with_lse, biases
from regard.kernels.capped_bias import CappedBias
from regard.kernels.scaled_bias import ScaledBias
from regard.masks import causal, dense, documents, padding, window
from regard.recording import DenseCall, Recording, ScoredCall
from regard.recording.step_masks import MaskRows, StackedMask

BATCH, HEADS, GROUPS, QUERIES, KEYS, CHANNELS = 2, 4, 2, 5, 7, 3


def scored(
    *, mask=None, bias=None, sinks=None, softcap=None, dtype=None, groups=GROUPS, queries=KEYS, **options
):
    """A call with Q, K, V and lse."""
    q = torch.randn(BATCH, HEADS, queries, CHANNELS)
    k, v = torch.randn(2, BATCH, groups, KEYS, CHANNELS)
    mask = causal() if mask is None else mask
    asked = {"mask": mask, "bias": bias, "sinks": sinks, "softcap": softcap, "scale": 0.5}
    lse = attention_with_lse(q, k, v, **asked)[1]
    if dtype is not None:
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    given = {"kind": "decoder", "layer": 0, "v": v, **options}
    return ScoredCall("layers.0.attention", q=q, k=k, lse=lse, **{**asked, **given})


def recordings():
    """Recordings by what is special about them."""
    torch.manual_seed(0)
    bias = torch.randn(1, HEADS, 1, KEYS)
    bias[..., 0] = -torch.inf
    steps = StackedMask((MaskRows(0, 3, causal()), MaskRows(3, KEYS, causal() & window(3, 0))))
    keep = torch.tensor([[1] * KEYS, [0, 0] + [1] * (KEYS - 2)])
    t5 = biases.t5(torch.randn(8, HEADS), False, max_distance=16)
    chance = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, BATCH, HEADS, KEYS, CHANNELS, generator=chance)
    capped = ScaledBias(CappedBias(q, k, 0.5, 3.0), torch.rand(1, HEADS, KEYS, generator=chance) - 0.5)
    every = [scored(layer=i) for i in range(2)]
    weights = torch.softmax(torch.randn(BATCH, HEADS, QUERIES, KEYS), -1)
    found = {
        "layers": every,
        "one group per head": [scored(groups=HEADS, v=None, run=1)],
        "some heads": [scored(numbers=(1, 3, 4, 9))],
        "fewer queries": [scored(queries=QUERIES)],
        "half precision": [scored(dtype=torch.float16), scored(dtype=torch.bfloat16, layer=1)],
        "double precision": [scored(dtype=torch.float64)],
        "padding": [scored(mask=padding(keep) & causal())],
        "sees nothing": [scored(mask=documents([[0] * 3 + [1] * 4, [0] * 7]) & ~causal())],
        "tables": [scored(mask=dense(torch.rand(BATCH, 1, KEYS, KEYS) > 0.3) | causal())],
        "stitched": [scored(mask=steps)],
        "alibi": [scored(bias=biases.alibi(HEADS))],
        "relative": [scored(bias=biases.relative(torch.randn(HEADS, 5)))],
        "t5": [scored(bias=t5)],
        "tensor bias": [scored(bias=biases.TensorBias(bias))],
        "sum of biases": [scored(bias=t5 + biases.TensorBias(bias))],
        "sinks": [scored(sinks=torch.randn(HEADS))],
        "softcap": [scored(softcap=3.0)],
        "statistics": [call.summary(0) for call in every],
        "statistics with top": [call.summary(3) for call in every],
        "own weights": [DenseCall("attentions.0", "encoder", 0, weights)],
        "two sides": [
            scored(kind="encoder", mask=window(2, 2)),
            scored(kind="cross", mask=window(99, 99), queries=QUERIES),
        ],
        "capped scores": [scored(softcap=3.0, bias=t5 + capped)],
    }
    return {name: _with_tokens(Recording(f"by hand: {name}", calls)) for name, calls in found.items()}


def _with_tokens(recording):
    if any(call.kind == "cross" for call in recording.calls):
        recording.source_tokens = [f"s{i}" for i in range(KEYS)]
        recording.tokens = [f"t{i}" for i in range(QUERIES)]
    else:
        recording.tokens = [[f"猫{i % 3}" for i in range(KEYS)], [f"{i}" for i in range(KEYS)]]
    return recording
