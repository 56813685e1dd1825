"""Gradients of attention from V and dO, against autograd's gradients of dense weights and scores."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import regard
from recording.dense_gradients import DenseAttention, dense_torch, dense_transformers
from recording.families import FAMILIES, inputs_of
from regard import masks
from regard import nn as rnn
from regard.errors import ArgumentError, RecordingError, ShapeError
from regard.recording import Recording

HF = ("bert", "gpt2", "llama", "gemma2", "gpt_oss", "t5", "bart", "vit")
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9}


def loss_of(model, inputs):
    """A loss to which every output contributes."""
    found = model(**inputs)[0]
    return (found * torch.randn(found.shape, generator=torch.Generator().manual_seed(5)).to(found)).mean()


def assert_same_gradients(seen, dense, dtype):
    """Weights, their gradients and those of the scores are those of dense attention."""
    assert len(seen) == len(dense.weights) > 0
    for call, scores, weights in zip(seen, dense.scores, dense.weights):
        size = float(weights.grad.abs().max())  # a loss that is a mean has small gradients
        assert size > 0
        tolerance = {"rtol": 0, "atol": TOLERANCE[dtype] * size}
        for batch in range(call.batch):
            found = call.gradient(None, batch=batch)
            torch.testing.assert_close(found, weights.grad[batch], **tolerance)
            found = call.score_gradient(None, batch=batch)
            torch.testing.assert_close(found, scores.grad[batch], **tolerance)
            found = call.weights_times_gradient(None, batch=batch)
            torch.testing.assert_close(found, (weights * weights.grad)[batch].detach(), **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", HF)
def test_gradients_are_autograds(family, dtype):
    if (family, dtype) == ("gpt_oss", torch.float64):
        pytest.skip("torch computes the experts of gpt_oss in float32 at most; sinks are tested below")
    model = FAMILIES[family].build().to(dtype)
    inputs = inputs_of(FAMILIES[family], "right")
    inputs = {name: x.to(dtype) if x.is_floating_point() else x for name, x in inputs.items()}
    with dense_transformers(model) as dense:
        loss_of(model, inputs).backward()
    with regard.watch(model, gradients=True) as seen:
        loss_of(model, inputs).backward()
    assert_same_gradients(seen, dense, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_transformer_with_padding_and_causal(dtype):
    torch.manual_seed(1)
    model = nn.Transformer(24, 4, 2, 2, 37, dropout=0.0, batch_first=True, dtype=dtype)
    padding = torch.zeros(2, 11, dtype=torch.bool)
    padding[1, -3:] = True
    inputs = {
        "src": torch.randn(2, 11, 24, dtype=dtype),
        "tgt": torch.randn(2, 7, 24, dtype=dtype),
        "tgt_mask": nn.Transformer.generate_square_subsequent_mask(7, dtype=dtype),
        "src_key_padding_mask": padding,
        "memory_key_padding_mask": padding,
    }

    def run():
        found = model(**inputs)
        (found * torch.linspace(-1, 2, found.numel(), dtype=dtype).view_as(found)).mean().backward()

    with dense_torch() as dense:
        run()
    with regard.watch(model, gradients=True) as seen:
        run()
    assert_same_gradients(seen, dense, dtype)
    assert {call.kind for call in seen} == {"encoder", "decoder", "cross"}


class Attending(nn.Module):
    """Grouped heads with a softcap, sinks and a bias, by a function of one's choice."""

    def __init__(self, attend):
        super().__init__()
        torch.manual_seed(4)
        self.attend = attend
        self.q, self.k = torch.randn(2, 4, 7, 5).double(), torch.randn(2, 2, 11, 5).double()
        self.v, self.sinks = torch.randn(2, 2, 11, 3).double().requires_grad_(), torch.randn(4).double()
        self.bias = torch.randn(1, 4, 7, 11).double()

    def forward(self, mask):
        q, k = self.q.requires_grad_(), self.k
        return self.attend(q, k, self.v, mask=mask, scale=0.7, softcap=2.0, sinks=self.sinks, bias=self.bias)


def test_softcap_sinks_and_bias_in_float64():
    dense, ours = DenseAttention(), Attending(regard.attention)
    mask = masks.causal().dense(7, 11)
    Attending(dense.attend)(mask).pow(3).sum().backward()
    with regard.watch(ours, gradients=True) as seen:
        ours(masks.causal()).pow(3).sum().backward()
    assert_same_gradients(seen, dense, torch.float64)


def small(layers=2):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 3, 17, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def test_parts_of_the_matrix():
    model, x = small(), torch.randn(2, 7, 12)
    with regard.watch(model, gradients=True) as seen:
        model(x).square().sum().backward()
    for name in ("gradient", "score_gradient", "weights_times_gradient"):
        ask = getattr(seen[1], name)
        whole = ask(2, batch=1)
        torch.testing.assert_close(ask(2, slice(1, 4), [0, 5], batch=1), whole[1:4][:, [0, 5]])
        torch.testing.assert_close(ask(2, 6, slice(2, None), batch=1), whole[6:7, 2:])
        assert ask(None).shape == (3, 7, 7)


def test_backward_passes_add_up():
    model, x = small(), torch.randn(1, 5, 12)
    with regard.watch(model, gradients=True) as once:
        (3 * model(x).square().sum()).backward()
    with regard.watch(model, gradients=True) as twice:
        loss = model(x).square().sum()
        loss.backward(retain_graph=True)
        (2 * loss).backward()
    torch.testing.assert_close(twice[0].gradient(1), once[0].gradient(1))


def test_runs_have_their_own_gradients():
    model, x, y = small(), torch.randn(1, 5, 12), torch.randn(1, 5, 12)
    with regard.watch(model, gradients=True) as seen:
        (model(x).square().sum() + model(y).pow(3).sum()).backward()
    for run, (given, loss) in enumerate(((x, lambda o: o.square().sum()), (y, lambda o: o.pow(3).sum()))):
        with regard.watch(model, gradients=True) as alone:
            loss(model(given)).backward()
        got = seen.layer(1, run=run).gradient(0)
        torch.testing.assert_close(got, alone.layer(1).gradient(0))


def test_a_call_that_no_gradient_reaches_has_zeros():
    model, x = small(), torch.randn(1, 5, 12)
    with regard.watch(model, gradients=True) as seen:
        middle = model.layers[0](x)
        model(x)
        middle.square().sum().backward()
    reached, passed, later = seen[0], seen[1], seen[2]
    assert reached.gradient(0).abs().max() > 0
    assert later.run == 0
    assert not later.gradient(0).any()
    assert passed.run == 1
    with pytest.raises(RecordingError, match="no backward pass was recorded"):
        passed.gradient(0)


class Checkpointed(nn.Module):
    """Layers under checkpointing; all weights of one layer, so that numbering by counting would go wrong."""

    def __init__(self, reentrant):
        super().__init__()
        self.layers, self.reentrant = small(3).layers, reentrant

    def forward(self, x):
        for layer in self.layers:
            x = x if self.reentrant is None else x.requires_grad_()
            x = layer(x) if self.reentrant is None else checkpoint(layer, x, use_reentrant=self.reentrant)
        return x


@pytest.mark.parametrize("layers", [None, [1, 2]])
@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_is_recorded_once(reentrant, layers):
    x, y = torch.randn(1, 5, 12), torch.randn(1, 5, 12)
    found = []
    for kind in (reentrant, None):
        model = Checkpointed(kind)
        with regard.watch(model, gradients=True, layers=layers) as seen:
            first, second = model(x.clone()), model(y.clone())
            (first.square().sum() + second.pow(3).sum()).backward()
        found.append(seen)
    assert len(found[0]) == len(found[1]) == 2 * (3 if layers is None else 2)
    for one, other in zip(*found):
        assert (one.layer, one.run, one.name) == (other.layer, other.run, other.name)
        torch.testing.assert_close(one.gradient(None), other.gradient(None))


def test_checkpointing_without_gradients_is_recorded_once():
    model = Checkpointed(False)
    with regard.watch(model) as seen:
        model(torch.randn(1, 5, 12)).sum().backward()
    assert [call.layer for call in seen] == [0, 1, 2]


def test_edits_find_their_layer_under_checkpointing():
    x, found = torch.randn(1, 5, 12), []
    for kind in (False, None):
        model = Checkpointed(kind)
        with regard.edit(model, regard.edits.scale(0.5, layers=[2])):
            model(x.clone()).square().sum().backward()
        found.append(model.layers[1].linear1.weight.grad)
    torch.testing.assert_close(*found)


def test_frozen_models_give_gradients():
    model, x = small(), torch.randn(1, 5, 12)
    with regard.watch(model, gradients=True) as learning:
        model(x).square().sum().backward()
    with regard.watch(model.requires_grad_(False), gradients=True) as frozen:
        model(x).square().sum().backward()
    for one, other in zip(learning, frozen):
        torch.testing.assert_close(one.gradient(None), other.gradient(None))
    assert all(parameter.grad is None or not parameter.requires_grad for parameter in model.parameters())


def test_regard_nn_and_some_heads():
    torch.manual_seed(2)
    attend, x = rnn.MultiHeadAttention(12, 4), torch.randn(2, 7, 12)
    with (
        regard.watch(attend, gradients=True) as seen,
        regard.watch(attend, gradients=True, heads=[1, 3]) as some,
    ):
        attend(x, mask=masks.causal()).square().sum().backward()
    for head in (1, 3):
        torch.testing.assert_close(
            some[0].score_gradient(head, batch=1), seen[0].score_gradient(head, batch=1)
        )


def test_rows_that_came_one_by_one():
    """A text read with a cache, under gradients, is one call with all of its gradients."""
    model = FAMILIES["gpt2"].build()
    ids = torch.randint(3, 60, (1, 7))
    with regard.watch(model, gradients=True) as whole:
        model(input_ids=ids).logits.square().sum().backward()
    with regard.watch(model, gradients=True) as steps:
        first = model(input_ids=ids[:, :4], use_cache=True)
        rest = model(input_ids=ids[:, 4:], past_key_values=first.past_key_values)
        (first.logits.square().sum() + rest.logits.square().sum()).backward()
    assert len(steps) == len(whole)
    torch.testing.assert_close(steps[0].gradient(2), whole[0].gradient(2), rtol=1e-4, atol=1e-4)


# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [None, torch.bfloat16, torch.float16])
def test_saved_and_loaded(tmp_path, dtype):
    model, x = small(), torch.randn(2, 5, 12)
    with regard.watch(model, gradients=True, projections=True, dtype=dtype) as seen:
        model(x).square().sum().backward()
    seen.save(tmp_path / "seen.safetensors")
    again = regard.load(tmp_path / "seen.safetensors")
    for one, other in zip(seen, again):
        assert torch.equal(one.gradient(1), other.gradient(1))
        u = torch.randn(12)
        assert torch.equal(one.contribution(1, direction=u), other.contribution(1, direction=u))
    kept = again[0].output_gradient.dtype
    assert kept == (torch.bfloat16 if dtype == torch.bfloat16 else torch.float32)


def test_a_projection_is_kept_once_for_all_runs(tmp_path):
    model, x = small(1), torch.randn(1, 5, 12)
    with regard.watch(model, projections=True) as seen:
        model(x)
        model(x)
    assert seen[0].projection is seen[1].projection
    seen.save(tmp_path / "seen.safetensors")
    again = regard.load(tmp_path / "seen.safetensors")
    assert again[0].projection is again[1].projection


def test_a_file_with_gradients_has_values(tmp_path):
    model, x = small(1), torch.randn(1, 5, 12)
    with regard.watch(model, gradients=True) as seen:
        model(x).sum().backward()
    broken = Recording("model", [replace(seen[0], v=None)])
    with pytest.raises(RecordingError, match="must come with v"):
        broken.save(tmp_path / "seen.safetensors")


def test_the_size_is_known_before():
    model, x = small(), torch.randn(1, 5, 12)
    with regard.watch(model, gradients=True) as seen:
        model(x).sum().backward()
    assert regard.recording.estimate(model, 5, gradients=True).nbytes == seen.nbytes


# ---- projections -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5", "bart", "vit"])
def test_contributions_add_up_to_the_output_of_the_layer(family):
    model = FAMILIES[family].build()
    inputs = inputs_of(FAMILIES[family], "right")
    with regard.watch(model, projections=True) as seen, torch.no_grad():
        model(**inputs)
    for call in seen:
        u = torch.randn(call.projections.shape[-1])
        total = sum(call.contribution(head, direction=u, batch=1).sum(-1) for head in call.head_numbers)
        heads = call.output()[1]  # (head, query, channel)
        torch.testing.assert_close(
            total, torch.einsum("hqc,hcw,w->q", heads, call.projections, u), rtol=1e-4, atol=1e-5
        )
        own = regard.heads.value_weighted(call)
        torch.testing.assert_close(own.norms, regard.heads.value_weighted(call, model).norms)


def test_a_given_projection():
    model, x = small(1), torch.randn(1, 5, 12)
    twice = 2 * model.layers[0].self_attn.out_proj.weight.detach()
    with regard.watch(model, projections={"layers.0.self_attn": twice}) as seen, torch.no_grad():
        model(x)
    with regard.watch(model, projections=True) as found, torch.no_grad():
        model(x)
    torch.testing.assert_close(seen[0].projections, 2 * found[0].projections)


# ---- bad input -------------------------------------------------------------------------------------


def test_a_projection_of_a_module_that_is_not_there_is_refused():
    model = torch.nn.TransformerEncoderLayer(6, 2, batch_first=True).eval()
    given = {"self_attn": model.self_attn.out_proj, "layers.7": model.self_attn.out_proj}
    with pytest.raises(
        RecordingError, match=r"Got 'layers\.7', which TransformerEncoderLayer does not have"
    ) as raised:
        regard.watch(model, projections=given)
    assert raised.value.in_words("zh") != str(raised.value)
    alone = model.self_attn  # recorded under the name of its class
    with torch.no_grad(), regard.watch(alone, projections={"MultiheadAttention": alone.out_proj}) as seen:
        alone(*[torch.randn(1, 3, 6)] * 3)
    assert seen[0].projections.shape == (2, 3, 6)


def test_no_backward():
    model, x = small(), torch.randn(1, 5, 12)
    with (
        pytest.raises(RecordingError, match=r"inside the with block\. Got none"),
        regard.watch(model, gradients=True),
    ):
        loss = model(x).sum()
    loss.backward()  # after the block: the recording has ended


def test_backward_after_the_block_changes_nothing():
    model, x = small(), torch.randn(1, 5, 12)
    with regard.watch(model, gradients=True) as seen:
        loss = model(x).square().sum()
        loss.backward(retain_graph=True)
    before = seen[0].gradient(0)
    loss.backward()
    assert torch.equal(seen[0].gradient(0), before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_under_no_grad(mode):
    model, x = small(), torch.randn(1, 5, 12)
    with (
        pytest.raises(RecordingError, match=r"Got a forward pass under torch.no_grad\(\)"),
        regard.watch(model, gradients=True),
        mode(),
    ):
        model(x)


def test_a_loss_that_is_not_a_number():
    model, x = small(), torch.randn(1, 5, 12)
    with (
        pytest.raises(RecordingError, match=r"NaN or infinity at the output of layers\.1"),
        regard.watch(model, gradients=True),
    ):
        (model(x).sum() * torch.nan).backward()


def test_dropout_is_refused():
    model = nn.TransformerEncoderLayer(12, 3, 17, dropout=0.5, batch_first=True)
    with (
        pytest.raises(RecordingError, match=r"without dropout. Got dropout = 0.5"),
        regard.watch(model, gradients=True),
    ):
        model(torch.randn(1, 5, 12)).sum().backward()


def test_other_bad_input():
    model, x = small(), torch.randn(1, 5, 12)
    with pytest.raises(ArgumentError, match="need Q, K and V"):
        regard.watch(model, gradients=True, statistics=True)
    with regard.watch(model, values=True) as seen:
        model(x)
    with pytest.raises(RecordingError, match="no backward pass was recorded"):
        seen[0].score_gradient(0)
    with pytest.raises(RecordingError, match="which was not recorded"):
        seen[0].contribution(0, direction=torch.ones(12))
    with regard.watch(model, projections=True) as seen:
        model(x)
    with pytest.raises(ShapeError, match=r"width = 12\). Got \(13,\)"):
        seen[0].contribution(0, direction=torch.ones(13))
    with pytest.raises(RecordingError, match="kept only its statistics"):
        seen[0].summary(0).gradient(0)


@pytest.mark.parametrize("reentrant", [True, False])
def test_transformers_checkpointing(reentrant):
    model = FAMILIES["llama"].build()
    inputs = inputs_of(FAMILIES["llama"], "left")
    with regard.watch(model, gradients=True) as plain:
        loss_of(model, inputs).backward()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    model.train()
    with regard.watch(model, gradients=True) as seen:
        if reentrant:
            model.enable_input_require_grads()
        loss_of(model, inputs).backward()
    assert [call.name for call in seen] == [call.name for call in plain]
    for one, other in zip(seen, plain):
        torch.testing.assert_close(one.gradient(None, batch=1), other.gradient(None, batch=1))
