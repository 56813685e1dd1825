"""Models off the registry: their own dense weights, or a refusal that names them."""

import pytest
import torch
import transformers as hf

import regard
from recording.families import LENGTH, SMALL, all_weights, padded
from regard.errors import RecordingError

SPECIAL = {"vocab_size": 61, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}


def bloom():
    return hf.BloomForCausalLM(hf.BloomConfig(hidden_size=24, n_layer=2, n_head=4, **SPECIAL))


def mpt():
    return hf.MptForCausalLM(hf.MptConfig(d_model=32, n_layers=2, n_heads=4, max_seq_len=64, **SPECIAL))


def gptj():
    return hf.GPTJForCausalLM(
        hf.GPTJConfig(n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4, **SPECIAL)
    )


def deberta():
    return hf.DebertaV2Model(
        hf.DebertaV2Config(**SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"])
    )


pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"
)  # DeBERTa


@pytest.fixture
def inputs():
    ids, keep = padded(2, LENGTH, "right")
    return {"input_ids": ids, "attention_mask": keep}


@pytest.mark.parametrize(
    ("build", "kind"), [(bloom, "decoder"), (mpt, "decoder"), (gptj, "decoder"), (deberta, "encoder")]
)
@pytest.mark.parametrize("return_dict", [True, False])
@torch.no_grad()
def test_dense_weights_are_recorded_and_said_to_be(build, kind, return_dict, inputs):
    model = build().eval()
    wanted = model(**inputs, output_attentions=True).attentions
    plain = model(**inputs, return_dict=return_dict)
    with regard.watch(model) as seen:
        watched = model(**inputs, return_dict=return_dict)
    assert type(plain) is type(watched)
    assert len(plain) == len(watched)
    assert torch.equal(plain[0], watched[0])
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    assert [(call.kind, call.layer, call.dense) for call in seen] == [(kind, 0, True), (kind, 1, True)]
    for call, own in zip(seen, wanted):
        assert torch.equal(all_weights(call), own)
        assert torch.equal(call.weights(2, rows=[3], columns=slice(4), batch=1), own[1, 2, 3:4, :4])
        found = call.statistics(top=2)
        assert (found.entropy + torch.xlogy(own, own).sum(-1)).abs().max() < 1e-6
        assert torch.equal(found.received, own.sum(-2))


@torch.no_grad()
def test_their_statistics_are_those_of_attention_statistics():
    from regard.recording.kept_statistics import statistics_of_weights

    q, k = torch.randn(2, 3, 5, 4).double(), torch.randn(2, 3, 7, 4).double()
    mask = regard.masks.window(3, 1)
    wanted = regard.attention_statistics(q, k, mask=mask, top=9)
    found = statistics_of_weights(regard.attention_weights(q, k, mask=mask), 9)
    for name, value in vars(wanted).items():
        if name not in ("output", "lse", "top_keys"):
            assert torch.allclose(getattr(found, name).double(), value.double(), atol=1e-12), name
    assert torch.equal(found.top_keys[..., :3], wanted.top_keys[..., :3])


@torch.no_grad()
def test_generated_rows_are_joined():
    model = gptj().eval()
    ids, _ = padded(2, LENGTH, "none")
    with regard.watch(model) as seen:
        text = model.generate(ids, max_new_tokens=5, do_sample=False)
    own = model(input_ids=text[:, :-1], output_attentions=True).attentions
    assert [call.extent for call in seen] == [(LENGTH + 4, LENGTH + 4)] * 2
    for call, wanted in zip(seen, own):
        assert (all_weights(call) - wanted).abs().max() < 1e-5


@torch.no_grad()
def test_some_layers_heads_and_statistics(inputs):
    model = bloom().eval()
    with regard.watch(model, layers=[1], heads=[3]) as seen:
        model(**inputs)
    with regard.watch(model, statistics=True, top=2) as kept:
        model(**inputs)
    assert [(call.layer, call.head_numbers) for call in seen] == [(1, (3,))]
    assert torch.equal(kept[1].statistics().entropy[:, 3:], seen[0].statistics().entropy)
    with pytest.raises(RecordingError, match=r"Weights need Q and K"):
        kept[0].weights(0)


@torch.no_grad()
def test_bands_are_not_matrices(inputs):
    model = hf.LongformerModel(hf.LongformerConfig(**SMALL, attention_window=4)).eval()
    message = r"LongformerModel computes attention off .* Got attentions\[0\] of shape \(2, 4, 11, 5\)"
    with pytest.raises(RecordingError, match=message), regard.watch(model):
        model(**inputs)
    assert not model._forward_hooks


@torch.no_grad()
def test_a_model_without_any_attention_is_named():
    config = hf.FNetConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, intermediate_size=37)
    model = hf.FNetModel(config).eval()
    with pytest.raises(RecordingError, match=r"FNetModel"), regard.watch(model):
        model(input_ids=torch.ones(1, 5, dtype=torch.long))


@torch.no_grad()
def test_falcon_is_seen_through_torch(inputs):
    """Off the registry, but it calls torch's function: Q and K, nothing dense."""
    model = hf.FalconForCausalLM(hf.FalconConfig(**SMALL)).eval()
    plain = model(**inputs).logits
    with regard.watch(model) as seen:
        watched = model(**inputs).logits
    rows = inputs["attention_mask"].bool()
    assert (plain[rows] - watched[rows]).abs().max() < 1e-5
    assert [(call.name, call.dense) for call in seen] == [
        ("transformer.h.0.self_attention", False),
        ("transformer.h.1.self_attention", False),
    ]
