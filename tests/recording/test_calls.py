"""The three types of call: what each can do, what it refuses, and how they agree with the matrix."""

from dataclasses import fields, replace

import pytest
import torch

import regard
from recording.families import all_weights, region_of
from recording.kinds import BATCH, HEADS, KEYS, QUERIES, recordings, scored
from regard import masks
from regard.errors import RecordingError, RegardError
from regard.kernels import attention_weights, attention_with_lse, biases
from regard.recording import Call, DenseCall, ScoredCall, SummaryCall

RECORDINGS = recordings()
WITH_WEIGHTS = [name for name, seen in RECORDINGS.items() if seen[0].has_weights]

REGIONS = {
    "prefix": masks.prefix(2),
    "window": masks.window(1, 1),
    "edges": masks.span(1, 3).T & masks.span(0, 4),
    "by batch": masks.padding(lengths=[3, 6]),
    "by head": masks.dense(torch.rand(1, HEADS, 1, KEYS, generator=torch.Generator().manual_seed(3)) > 0.5),
    "everything": masks.everything(),
    "nothing": masks.nothing(),
}


def dense_of(call):
    """The same call as its weights alone."""
    return DenseCall(call.name, call.kind, call.layer, all_weights(call), run=call.run, numbers=call.numbers)


def exact(call):
    """The call with the lse of its Q and K as they were rounded."""
    return replace(call, lse=call.on_cpu().statistics().lse) if isinstance(call, ScoredCall) else call


def test_each_type_is_a_call():
    call = scored()
    for one, kind in ((call, ScoredCall), (call.summary(2), SummaryCall), (dense_of(call), DenseCall)):
        assert type(one) is kind
        assert isinstance(one, Call)
        assert isinstance(one, regard.recording.Call)
        assert one.shape == (BATCH, HEADS, KEYS, KEYS)
        assert (one.name, one.kind, one.layer, one.extent) == (call.name, call.kind, call.layer, call.extent)
        assert one.nbytes == sum(tensor.nbytes for tensor in one.tensors().values())
        assert repr(one) == repr(call)[:-1] + (", dense>" if one.dense else ">")
    assert [one.has_weights for one in (call, call.summary(0), dense_of(call))] == [True, False, True]


def test_a_call_without_a_type_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Call("attention", "encoder", 0)


# ---- the mass of a region ----------------------------------------------------------------------


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_mass_is_the_sum_of_the_weights(name, region):
    mask = REGIONS[region]
    for call in RECORDINGS[name]:
        wanted = (all_weights(call) * region_of(mask, call)).sum(-1)
        for one in (call, dense_of(call)):
            found = one.mass(mask)
            assert found.shape == call.shape[:3]
            assert found.dtype == wanted.dtype
            torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)


def test_a_region_is_a_tensor_too():
    call, table = scored(), torch.rand(KEYS, KEYS) > 0.5
    assert torch.equal(call.mass(table), call.mass(masks.dense(table)))
    assert torch.equal(dense_of(call).mass(table), dense_of(call).mass(masks.dense(table)))


def test_the_mass_of_everything_is_what_a_sink_leaves():
    call = scored(sinks=torch.randn(HEADS))
    sink = torch.exp(call.sinks[:, None] - call.lse)
    torch.testing.assert_close(call.mass(masks.everything()) + sink, torch.ones(BATCH, HEADS, KEYS))


@pytest.mark.parametrize("call", [scored(), dense_of(scored())], ids=["scored", "dense"])
def test_a_region_of_another_size_is_refused(call):
    with pytest.raises(RegardError, match=str(KEYS)):
        call.mass(masks.padding([True] * 3))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_weighted_sums(name, region):
    call, mask = exact(RECORDINGS[name][0]), REGIONS[region]
    values = torch.randn(call.batch, 1, call.keys, 2)
    inside = all_weights(call) * region_of(mask, call)
    for one in (call, dense_of(call)):
        torch.testing.assert_close(
            one.weighted(values, mask), inside @ values.to(inside), atol=2e-6, rtol=1e-5
        )
    torch.testing.assert_close(
        call.statistics(values=values).output, all_weights(call) @ values.to(inside), atol=2e-6, rtol=1e-5
    )


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", [name for name in WITH_WEIGHTS if "v" in RECORDINGS[name][0].tensors()])
def test_without_is_the_output_of_the_other_keys(name, region):
    """The identity ``(O − Σ_{j∈M} w v) / (1 − mass)``, in float64 from the matrix."""
    mask = REGIONS[region]
    for call in map(exact, RECORDINGS[name]):
        weights = all_weights(call).double()
        v = call.v.double().repeat_interleave(call.heads // call.v.shape[1], 1)
        inside = weights * region_of(mask, call)
        left = 1 - inside.sum(-1, keepdim=True)
        wanted = (weights @ v - inside @ v) / left
        # Where all the weight is in the region, the identity is 0 / 0, and the output is 0.
        sees = (weights - inside).sum(-1, keepdim=True) > 1e-9
        wanted = torch.where(sees, wanted, 0.0)
        torch.testing.assert_close(call.without(mask).double(), wanted, atol=2e-5, rtol=1e-4)


def test_without_keeps_its_digits_where_a_region_has_nearly_all_the_weight():
    call = scored(queries=QUERIES, mask=masks.everything())
    k = call.k.clone()
    k[:, :, 0] = 30 * call.q[:, :: HEADS // k.shape[1], 0]  # nearly all of the first query's weight
    q = call.q[:, :, :1]
    wide = attention_weights(q.double(), k.double(), mask=~masks.prefix(1), scale=0.5)
    lse = attention_with_lse(q, k, k, scale=0.5)[1]
    one = replace(call, q=q, k=k, lse=lse, mask=masks.everything())
    assert one.mass(masks.prefix(1)).max() > 0.999
    wanted = wide @ one.v.double().repeat_interleave(HEADS // k.shape[1], 1)
    torch.testing.assert_close(one.without(masks.prefix(1)).double(), wanted, atol=1e-5, rtol=1e-5)


# ---- what a type cannot do -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda call: call.weights(0),
        lambda call: call.mass(masks.prefix(1)),
        lambda call: call.weighted(torch.ones(1, 1, KEYS, 1), masks.prefix(1)),
        lambda call: call.without(masks.prefix(1)),
        lambda call: call.statistics(values=torch.ones(1, 1, KEYS, 1)),
        lambda call: call.scored(),
    ],
)
def test_statistics_have_no_weights(ask):
    with pytest.raises(
        RecordingError, match=r"Weights need Q and K, but layers\.0\.attention kept only its stat"
    ):
        ask(scored().summary(0))


@pytest.mark.parametrize("ask", [lambda call: call.without(masks.prefix(1)), lambda call: call.scored()])
def test_dense_weights_have_no_scores_and_no_values(ask):
    with pytest.raises(
        RecordingError, match=r"needs Q, K and V, but layers\.0\.attention has only the weights"
    ):
        ask(dense_of(scored()))


def test_without_needs_values():
    with pytest.raises(RecordingError, match=r"needs V, but layers\.0\.attention was .* values=True"):
        scored(v=None).without(masks.prefix(1))


# ---- parts of a call ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDINGS)
def test_one_sequence_and_some_heads(name):
    for call in RECORDINGS[name]:
        for batch, heads in ((1, None), (None, [0, 3]), (0, [2]), (None, [1]), (1, [1, 2])):
            one = call.select(batch, heads)
            assert type(one) is type(call)
            index = list(range(call.heads)) if heads is None else heads
            assert one.head_numbers == tuple(call.head_numbers[at] for at in index)
            assert one.shape == (call.batch if batch is None else 1, len(index), *call.extent)
            rows = slice(None) if batch is None else slice(batch, batch + 1)
            if call.has_weights:
                torch.testing.assert_close(all_weights(one), all_weights(call)[rows][:, index])
            found, wanted = one.statistics(), call.statistics()
            for field in fields(wanted):
                value = getattr(wanted, field.name)
                if value is not None and field.name != "output":
                    torch.testing.assert_close(getattr(found, field.name), value[rows][:, index])


@pytest.mark.parametrize("name", RECORDINGS)
def test_on_the_cpu_in_at_least_float32(name):
    for call in RECORDINGS[name]:
        one = call.on_cpu()
        for tensor in one.tensors().values():
            assert tensor.dtype in (torch.float32, torch.float64, torch.int64)
            assert not tensor.requires_grad
        if call.has_weights:
            assert torch.equal(all_weights(one), all_weights(call))


def test_hidden_queries_see_nothing():
    visible = torch.rand(BATCH, KEYS) > 0.4
    for call in (scored(), dense_of(scored())):
        found = call.hide_queries(visible).statistics()
        wanted = call.statistics()
        assert not found.visible.transpose(1, 2)[~visible].any()
        assert torch.equal(found.entropy.transpose(1, 2)[visible], wanted.entropy.transpose(1, 2)[visible])
    summary = scored().summary(0)
    assert summary.hide_queries(visible) is summary


def test_the_mask_of_dense_weights_is_not_known():
    call = scored(bias=biases.alibi(HEADS), mask=masks.everything())
    assert call.mask_known
    assert not dense_of(call).mask_known
    assert not call.summary(0).mask_known
    assert scored().summary(0).mask_known
