"""How far heads differ between two recordings, compared with dense weights and scipy's formula by hand."""

import numpy as np
import pytest
import torch

import regard
from regard import edits, heads, masks
from regard.errors import RecordingError
from regard.heads.head_changes import COLUMNS, paired_calls
from regard.recording import DenseCall, Recording

WORDS = ["the", "cat", "sat", "on", "the", "old", "mat"]


def softmaxed(*shape, seed=0):
    scores = 2 * np.random.default_rng(seed).normal(size=shape)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def recording_of(weights, tokens=None):
    """A recording of dense weights ``(layer, head, query, key)``."""
    calls = [
        DenseCall(f"layers.{layer}", "encoder", layer, torch.from_numpy(own)[None])
        for layer, own in enumerate(weights)
    ]
    seen = Recording("Toy", calls)
    seen.tokens = tokens
    return seen


def divergence(one, other):
    """The mean Jensen–Shannon divergence of rows, from Kullback–Leibler divergences."""
    mean = (one + other) / 2
    of = lambda rows: (rows * np.log2(rows / mean)).sum(-1)  # noqa: E731
    return ((of(one) + of(other)) / 2).mean(-1)


def test_every_head_against_the_formula():
    one, other = softmaxed(2, 3, 7, 7, seed=1), softmaxed(2, 3, 7, 7, seed=2)
    a, b = (recording_of(list(weights), tokens=WORDS) for weights in (one, other))
    found = heads.changes(a, b)
    assert found.columns == COLUMNS
    wanted = divergence(one, other)  # (layer, head)
    assert len(found) == 6
    for row in found:
        place = row["layer"], row["head"]
        assert row["divergence"] == pytest.approx(wanted[place], abs=1e-5)
        apart = other[place] - one[place]
        query, key = np.unravel_index(np.abs(apart).argmax(), apart.shape)
        assert (row["query"], row["key"]) == (query, key)
        assert row["difference"] == pytest.approx(apart[query, key], abs=1e-5)
    numbers = found.column("divergence")
    assert numbers == sorted(numbers, reverse=True)


def test_an_edit_changes_only_its_heads():
    model = regard.nn.LanguageModel(50, width=16, heads=4, layers=1).eval()
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    with torch.no_grad(), regard.watch(model) as plain:
        model(ids)
    with (
        torch.no_grad(),
        regard.edit(model, edits.block(masks.span(1, 2), heads=2)),
        regard.watch(model) as cut,
    ):
        model(ids)
    found = {row["head"]: row["divergence"] for row in heads.changes(plain, cut)}
    assert found[2] > 0.01
    assert [found[head] for head in (0, 1, 3)] == [0, 0, 0]


def test_two_layers_of_one_recording_are_paired_in_order():
    weights = softmaxed(3, 2, 7, 7, seed=3)
    seen = recording_of(list(weights), tokens=WORDS)
    found = heads.changes(seen, seen, layers=0, other_layers=2)
    assert {(row["layer"], row["other_layer"]) for row in found} == {(0, 2)}
    wanted = divergence(weights[0], weights[2])
    assert {row["head"]: row["divergence"] for row in found} == {
        head: pytest.approx(number, abs=1e-5) for head, number in enumerate(wanted)
    }
    assert heads.changes(seen, seen).column("divergence") == [0] * 6


def test_calls_are_paired_by_layer_and_kind():
    one, other = (recording_of(list(softmaxed(layers, 2, 7, 7))) for layers in (2, 4))
    assert [(a.layer, b.layer) for a, b in paired_calls(one.calls, other.calls)] == [(0, 0), (1, 1)]
    assert [(a.layer, b.layer) for a, b in paired_calls(one.calls[:1], other.calls[2:])] == [(0, 2)]


@pytest.mark.parametrize("words", ["a b c d e f g", "the cat sat"])
def test_other_tokens_are_not_compared(words):
    tokens = words.split()
    one = recording_of([softmaxed(2, 7, 7)], tokens=WORDS)
    other = recording_of([softmaxed(2, len(tokens), len(tokens))], tokens=tokens)
    with pytest.raises(RecordingError, match=r"same tokens. Got queries = 7.*Read one text twice"):
        heads.changes(one, other)


def test_a_few_other_tokens_are_compared_by_position():
    one = recording_of([softmaxed(2, 7, 7, seed=4)], tokens=WORDS)
    other = recording_of([softmaxed(2, 7, 7, seed=5)], tokens=[*WORDS[:-1], "rug"])
    assert len(heads.changes(one, other)) == 2
