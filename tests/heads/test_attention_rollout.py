"""Rollout: the product of matrices it is, on one text and on two."""

import numpy as np
import pytest
import torch

import regard
from heads.synthetic_heads import looking, recording_of
from recording.families import FAMILIES, TARGET, all_weights, inputs_of
from regard import heads, masks
from regard.errors import ArgumentError, RecordingError
from regard.heads import attention_rollout
from regard.recording import Recording, ScoredCall


def recorded(name, side="right", **options):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, side)
    with torch.no_grad(), regard.watch(model, **options) as seen:
        model(**inputs)
    return seen


def layer_matrix(call, batch, residual):
    mean = all_weights(call)[batch].double().numpy().mean(0)
    return residual * np.eye(len(mean)) + (1 - residual) * (mean + np.diag(1 - mean.sum(-1)))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["bert", "llama", "gpt_oss"])
@pytest.mark.parametrize("residual", [0, 0.5, 0.8])
def test_it_is_the_product_of_all_layers(name, side, residual, monkeypatch):
    monkeypatch.setattr(attention_rollout, "MAX_SCORES", 40)  # a few rows at a time
    seen = recorded(name, side)
    wanted = np.eye(seen[0].keys)
    for call in seen:
        wanted = layer_matrix(call, 1, residual) @ wanted
    found = heads.rollout(seen, batch=1, residual=residual)
    assert found.source is None
    assert np.abs(found.own.numpy() - wanted).max() < 1e-6
    assert np.abs(found.own.sum(-1).numpy() - 1).max() < 1e-12
    for rows in (3, [0, -1], slice(2, 9, 3)):
        part = heads.rollout(seen, batch=1, residual=residual, rows=rows).own
        assert np.abs(part.numpy() - np.atleast_2d(wanted[rows])).max() < 1e-6


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_two_texts_flow_into_the_decoder(name):
    seen, residual = recorded(name), 0.3
    kinds = {kind: [c for c in seen if c.kind == kind] for kind in ("encoder", "decoder", "cross")}
    source = np.eye(kinds["encoder"][0].keys)
    for call in kinds["encoder"]:
        source = layer_matrix(call, 0, residual) @ source
    own, other = np.eye(TARGET), np.zeros((TARGET, len(source)))
    for itself, cross in zip(kinds["decoder"], kinds["cross"]):
        mixed = layer_matrix(itself, 0, residual)
        own, other = mixed @ own, mixed @ other
        looks = all_weights(cross)[0].double().numpy().mean(0)
        own, other = residual * own, residual * other + (1 - residual) * looks @ source
    found = heads.rollout(seen, residual=residual)
    # Weights of float32 sum to 1 within rounding; the rest stays with the target.
    assert np.abs(found.own.numpy() - own).max() < 1e-6
    assert np.abs(found.source.numpy() - other).max() < 1e-6
    assert np.abs((found.own.sum(-1) + found.source.sum(-1)).numpy() - 1).max() < 1e-12


def test_known_answers():
    one_back = looking(4, 4, lambda i: [max(0, i - 1)])
    seen = recording_of(one_back)
    two = Recording("m", [seen[0], ScoredCall(**{**vars(seen[0]), "layer": 1})])
    # Two steps back, each taken with one half: binomial.
    assert heads.rollout(two, rows=3).own[0].tolist() == pytest.approx([0, 0.25, 0.5, 0.25])
    blind = recording_of(torch.zeros(4, 4), mask=masks.nothing())
    assert torch.equal(heads.rollout(blind).own, torch.eye(4, dtype=torch.float64))


def test_what_is_refused():
    seen = recorded("bert")
    for residual in (-0.1, 1.1, True, "half"):
        with pytest.raises(ArgumentError, match=r"residual must be a number from 0 to 1. Got residual = "):
            heads.rollout(seen, residual=residual)
    with pytest.raises(ArgumentError, match=r"rows must be a slice, or positions below 11. Got 11"):
        heads.rollout(seen, rows=11)
    with pytest.raises(ArgumentError, match=r"recorded passes \(0 … 0\). Got run = 1"):
        heads.rollout(seen, run=1)
    with pytest.raises(ArgumentError, match=r"Got batch = 7"):
        heads.rollout(seen, batch=7)
    with pytest.raises(RecordingError, match=r"layer, starting at 0. Got encoder layers \[1\]. Record all"):
        heads.rollout(recorded("bert", layers=[1]))
    bart = recorded("bart")
    some = Recording("m", [c for c in bart if c.kind != "decoder" or c.layer == 0])
    with pytest.raises(RecordingError, match=r"every layer of encoder and decoder. Got 2 encoder, 1 decoder"):
        heads.rollout(some)
    mixed = Recording("m", [c for c in bart if c.kind != "cross"])
    with pytest.raises(RecordingError, match=r"two texts joined by cross-attention. Got encoder and"):
        heads.rollout(mixed)
    q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    cached = Recording("m", [ScoredCall("x", "decoder", 0, q, k, torch.zeros(1, 2, 3))])
    with pytest.raises(RecordingError, match=r"as many queries as keys.*Got 3 queries × 5 keys. Watch one"):
        heads.rollout(cached)
    with pytest.raises(RecordingError, match=r"Weights need Q and K"):
        heads.rollout(recorded("bert", statistics=True))
