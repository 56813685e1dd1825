"""Every family: the recorded weights are those that the model itself gives, and it computes what it did."""

import pytest
import torch

import regard
from recording.families import FAMILIES, LENGTH, all_weights, inputs_of
from regard.errors import RecordingError

CLOSE = 1e-5
NO_SDPA = ("gemma2", "gpt_oss")
FIELDS = {"encoder_attentions": "encoder", "decoder_attentions": "decoder", "cross_attentions": "cross"}


def real(call, keep, rows):
    """Which rows belong to real tokens: a padded row sees nothing here and everything in eager."""
    where = torch.ones(call.batch, call.queries, dtype=torch.bool)
    if keep is not None and rows == keep.shape[1]:
        where = keep.bool()
    return where


def eager_weights(model, inputs):
    """The model's own matrices by kind, and its output."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    output = model(**inputs, output_attentions=True)
    model.set_attn_implementation(before)
    two_sided = "encoder_attentions" in output
    fields = FIELDS if two_sided else {"attentions": None}
    return {kind: output[field] for field, kind in fields.items()}, output


def compare(seen, own, keeps):
    for kind, layers in own.items():
        calls = [call for call in seen if kind in (None, call.kind)]
        assert [call.layer for call in calls] == list(range(len(layers)))
        for call, wanted in zip(calls, layers):
            keep = keeps["source" if call.kind == "encoder" and kind else "target"]
            rows = real(call, keep, call.queries)
            found = all_weights(call)
            assert found.shape == wanted.shape == call.shape
            error = (found - wanted).abs().amax((1, 3))  # (batch, query)
            assert error[rows].max() < CLOSE, f"{call}: {error[rows].max():.1e}"


@pytest.mark.parametrize("side", ["left", "right", "none"])
@pytest.mark.parametrize(
    ("name", "implementation"),
    [(name, "eager") for name in FAMILIES] + [(name, "sdpa") for name in FAMILIES if name not in NO_SDPA],
)
@torch.no_grad()
def test_weights_are_those_of_the_model(name, implementation, side):
    family = FAMILIES[name]
    model = family.build()
    assert name in NO_SDPA or model._supports_sdpa
    model.set_attn_implementation(implementation)
    inputs = inputs_of(family, side)
    plain = model(**inputs)
    own, _ = eager_weights(model, inputs)
    with regard.watch(model) as seen:
        watched = model(**inputs)
    assert model.config._attn_implementation == implementation
    keeps = {"source": inputs.get("attention_mask")}
    keeps["target"] = inputs.get("decoder_attention_mask", keeps["source"])
    compare(seen, own, keeps)
    rows = keeps["target"]
    chosen = slice(None) if rows is None else rows.bool()
    assert (plain[0][chosen] - watched[0][chosen]).abs().max() < CLOSE
    assert watched.keys() == plain.keys()


@pytest.mark.parametrize("side", ["left", "none"])
@pytest.mark.parametrize(
    "name", [name for name, family in FAMILIES.items() if family.shape not in ("image", "encoder")]
)
@torch.no_grad()
def test_generated_text_is_one_map(name, side):
    family = FAMILIES[name]
    model = family.build()
    inputs = inputs_of(family, side if family.shape == "decoder" else "right")
    inputs = {key: value for key, value in inputs.items() if not key.startswith("decoder")}
    options = {"max_new_tokens": 9, "do_sample": False}
    plain = model.generate(**inputs, **options)
    with regard.watch(model) as seen:
        watched = model.generate(**inputs, **options)
    assert torch.equal(plain, watched)
    whole, keep = _whole(family, inputs, watched)
    own, _ = eager_weights(model, whole)
    compare(seen, own, {"source": inputs.get("attention_mask"), "target": keep})


def _whole(family, inputs, generated):
    """The inputs of one forward pass over everything that was read: all but the last token."""
    if family.shape == "speech":  # its generate() gives back no start token
        start = torch.full_like(generated[:, :1], 2)
        generated = torch.cat([start, generated], 1)
    text = generated[:, :-1]
    if family.shape != "decoder":
        return {**inputs, "decoder_input_ids": text}, None
    keep = torch.nn.functional.pad(inputs["attention_mask"], (0, text.shape[1] - LENGTH), value=1)
    positions = (keep.cumsum(-1) - 1).clamp(min=0)
    return {"input_ids": text, "attention_mask": keep, "position_ids": positions}, keep


@torch.no_grad()
def test_a_softcap_that_the_attention_leaves_out_is_refused(monkeypatch):
    """transformers before 5.22 runs Gemma 2 under sdpa as if it had no softcap; later ones refuse."""
    family = FAMILIES["gemma2"]
    model = family.build()
    monkeypatch.setattr(model.config, "_attn_implementation_internal", "sdpa")
    says = r'applies it. Got sdpa, which does not. Load the model with attn_implementation="eager"'
    with pytest.raises(RecordingError, match=says), regard.watch(model):
        model(**inputs_of(family, "none"))
    assert model.config._attn_implementation == "sdpa"
