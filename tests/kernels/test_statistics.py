"""Statistics against the float64 definition, computed from the dense weights in NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given

import regard
from kernels.test_attention import MASKS, OPTIONS, N
from masks.strategies import expressions
from parity import definition, tensors
from regard import biases, masks
from regard.errors import ArgumentError, ShapeError
from regard.kernels import statistics_torch


def by_definition(q, k, v, **options):
    """Every statistic as docs/statistics.md defines it, from the dense weights."""
    trace = definition(q, k, v, **options)
    w, lse = trace["weights"], trace["lse"]
    queries, keys = w.shape[-2:]
    position = np.arange(queries) + keys - queries
    gap = np.abs(position[:, None] - np.arange(keys))
    last = (
        "masked"
        if options.get("mask") is not None
        else ("biased" if options.get("bias") is not None else "scores")
    )
    scores = trace["capped"] if last == "scores" and options.get("softcap") else trace[last]

    def on(key):
        inside = (key >= 0) & (key < keys)
        picked = np.take_along_axis(
            w, np.broadcast_to(np.where(inside, key, 0)[:, None], (*w.shape[:-1], 1)), -1
        )[..., 0]
        return picked * inside

    mass = w.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "output": trace.output,
            "lse": lse,
            "entropy": -np.where(w > 0, w * np.log(w), 0).sum(-1),
            "visible": np.broadcast_to(scores > -np.inf, w.shape).sum(-1),
            "received": w.sum(-2),
            "self_weight": on(position),
            "previous_weight": on(position - 1),
            "first_weight": on(np.zeros_like(position)),
            "distance": np.where(mass > 0, (w * gap).sum(-1) / mass, 0),
            "peak": w.max(-1, initial=0),
            "weights": w,
        }


def assert_statistics(found, wanted, tolerance, top=0):
    for name, value in wanted.items():
        if name in ("weights", "lse"):
            continue
        mine = getattr(found, name).double().numpy()
        assert mine.shape == value.shape, name
        error = np.abs(mine - value) / np.maximum(1, np.abs(value))
        assert error.max(initial=0) <= tolerance, f"{name}: {error.max():.2e}"
    empty = wanted["visible"] == 0
    finite = np.isfinite(wanted["lse"])
    assert ((found.lse.numpy() == -np.inf) == ~finite).all()
    assert np.abs(found.lse.double().numpy()[finite] - wanted["lse"][finite]).max(initial=0) <= 30 * tolerance
    # The peak's key must have the peak's weight; which of equals it is does not matter.
    key = found.peak_key.numpy()
    assert ((key == -1) == empty).all()
    at_key = np.take_along_axis(wanted["weights"], np.maximum(key, 0)[..., None], -1)[..., 0]
    assert np.abs(np.where(empty, 0, at_key) - wanted["peak"]).max(initial=0) <= tolerance
    assert (found.entropy >= 0).all()
    if top:
        best = np.sort(wanted["weights"], -1)[..., : -top - 1 : -1]
        best = np.concatenate([best, np.zeros((*best.shape[:-1], top - best.shape[-1]))], -1)
        assert np.abs(found.top_weights.double().numpy() - best).max(initial=0) <= tolerance
        keys = found.top_keys.numpy()
        at_keys = np.take_along_axis(wanted["weights"], np.maximum(keys, 0), -1)
        assert np.abs(np.where(keys < 0, 0, at_keys) - best).max(initial=0) <= tolerance


@pytest.mark.usefixtures("always_tiled")  # these lengths would otherwise be computed densely
@pytest.mark.parametrize("label", OPTIONS)
@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in MASKS.items()])
def test_every_mask_and_option(mask, label):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=N, values=7)
    options = OPTIONS[label]()
    wanted = by_definition(q, k, v, mask=mask, **options)
    found = regard.attention_statistics(q, k, v, mask=mask, top=3, **options)
    assert_statistics(found, wanted, 1e-11, top=3)
    if label == "plain":
        entropy, visible = found.entropy.numpy(), found.visible.numpy()
        assert (entropy <= np.log(np.maximum(visible, 1)) + 1e-12).all()


def largest_score(q, k, scale=None):
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT
    return float(scores.abs().max() * (q.shape[-1] ** -0.5 if scale is None else scale))


@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in MASKS.items()])
def test_float32_is_within_1e_5_and_2e_4_at_scores_of_400(mask):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=N, channels=16, dtype=torch.float32)
    assert_statistics(
        regard.attention_statistics(q, k, v, mask=mask, top=2), by_definition(q, k, v, mask=mask), 1e-5, top=2
    )
    q = q * (400 / largest_score(q, k))
    wanted = by_definition(q, k, v, mask=mask)
    found = regard.attention_statistics(q, k, v, mask=mask)
    for name in (
        "output",
        "entropy",
        "received",
        "self_weight",
        "previous_weight",
        "first_weight",
        "peak",
        "distance",
    ):
        error = np.abs(getattr(found, name).double().numpy() - wanted[name])
        assert (error / np.maximum(1, np.abs(wanted[name]))).max(initial=0) < 2e-4, name


@pytest.mark.parametrize("label", OPTIONS)
@pytest.mark.parametrize("name", ["full", "causal", "banded", "gathered", "batch lengths"])
def test_every_option_in_float32_at_ordinary_and_large_scores(name, label):
    q, k, v = tensors(2, heads=6, key_heads=2, queries=N, channels=16, dtype=torch.float32)
    options = {"mask": MASKS[name], **OPTIONS[label]()}
    for factor in (1.0, 400 / largest_score(q, k, options.get("scale"))):
        wanted = by_definition(q * factor, k, v, **options)
        found = regard.attention_statistics(q * factor, k, v, **options)
        # ALiBi alone takes the scores of far rows to −100, where float32 has steps of 8e-6: measured 1.06e-5.
        ordinary = factor == 1.0 and np.abs(wanted["lse"][np.isfinite(wanted["lse"])]).max() < 32
        tolerance = 1e-5 if ordinary else 2e-4
        for statistic in ("output", "entropy", "received", "self_weight", "peak", "distance"):
            error = np.abs(getattr(found, statistic).double().numpy() - wanted[statistic])
            assert (error / np.maximum(1, np.abs(wanted[statistic]))).max() < tolerance, statistic


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_inputs_are_computed_in_float32(dtype):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=N, channels=16, dtype=dtype)
    wanted = by_definition(q, k, v, mask=masks.causal())
    found = regard.attention_statistics(q, k, mask=masks.causal())
    assert found.output is None
    assert found.entropy.dtype == torch.float32
    assert_statistics(found, {name: value for name, value in wanted.items() if name != "output"}, 1e-5)


@pytest.mark.parametrize(("queries", "keys"), [(1, 130), (65, 130), (130, 65), (1, 1)])
def test_rectangles(queries, keys, always_tiled):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=queries, keys=keys)
    for mask in (None, masks.causal(), masks.window(9, 3), masks.local_global(16)):
        wanted = by_definition(q, k, v, mask=mask)
        assert_statistics(regard.attention_statistics(q, k, v, mask=mask, top=4), wanted, 1e-11, top=4)


@given(expressions(70))
def test_random_masks(mask):
    q, k, v = tensors(1, heads=2, queries=70)
    patched = pytest.MonkeyPatch()
    patched.setattr(statistics_torch.TorchStatistics, "max_scores", 70 * 2 * 9)  # nine rows at a time
    patched.setattr(statistics_torch, "ARGMAX_BLOCK", 16)
    try:
        found = regard.attention_statistics(q, k, v, mask=mask, top=2)
    finally:
        patched.undo()
    assert_statistics(found, by_definition(q, k, v, mask=mask), 1e-11, top=2)


def test_a_bias_may_forbid():
    q, k, v = tensors(2, heads=2, queries=80)
    bias = torch.randn(2, 80, 80).double().masked_fill(torch.rand(2, 80, 80) > 0.5, -torch.inf)
    bias[0, 7] = -torch.inf
    trace = definition(q, k, v, bias=bias)
    found = regard.attention_statistics(q, k, v, bias=bias)
    assert torch.equal(found.visible, (bias > -torch.inf).sum(-1).expand(2, 2, 80))
    assert np.abs(found.output.numpy() - trace.output).max() < 1e-12
    assert found.peak_key[0, 0, 7] == -1


def test_any_number_of_leading_axes():
    for lead in ((), (2,), (2, 3)):
        q, k, v = tensors(*lead, heads=4, key_heads=2, queries=9)
        found = regard.attention_statistics(q, k, v, top=2)
        assert found.entropy.shape == (*lead, 4, 9)
        assert found.received.shape == (*lead, 4, 9)
        assert found.top_keys.shape == (*lead, 4, 9, 2)
        assert_statistics(found, by_definition(q, k, v), 1e-11, top=2)
    found = regard.attention_statistics(*(x[0] for x in tensors(heads=1, queries=9)))
    assert found.output.shape == (9, 5)
    assert found.entropy.shape == (9,)


@pytest.mark.parametrize(("queries", "keys", "batch"), [(0, 5, 2), (5, 0, 2), (5, 5, 0)])
def test_empty_sequences(queries, keys, batch):
    q, k, v = tensors(batch, queries=queries, keys=keys)
    found = regard.attention_statistics(q, k, v, mask=masks.causal(), top=2)
    assert found.entropy.shape == (batch, 3, queries)
    assert found.received.shape == (batch, 3, keys)
    assert not found.received.any()
    assert (found.top_keys == -1).all()


def test_no_graph_is_built_and_inputs_stay():
    q, k, v = tensors(queries=80, grad=True)
    before = q.detach().clone()
    found = regard.attention_statistics(q, k, v, bias=biases.alibi(3))
    assert not found.output.requires_grad
    assert torch.equal(q.detach(), before)


def test_bad_input_is_named():
    q, k, v = tensors(queries=4)
    with pytest.raises(ArgumentError, match="top = -1"):
        regard.attention_statistics(q, k, v, top=-1)
    with pytest.raises(ArgumentError, match="top = True"):
        regard.attention_statistics(q, k, v, top=True)
    with pytest.raises(ShapeError, match="as many values as keys"):
        regard.attention_statistics(q, k, v[:, :3])
