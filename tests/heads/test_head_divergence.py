"""Jensen–Shannon divergence between heads, and clusters."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from heads.synthetic_heads import looking, recording_of
from recording.families import FAMILIES, all_weights, inputs_of
from regard import heads
from regard.errors import ArgumentError, RecordingError
from regard.heads import head_divergence
from regard.heads.head_divergence import linkage
from regard.recording import Recording, ScoredCall


def recorded(name, side="right"):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, side)
    with torch.no_grad(), regard.watch(model) as seen:
        model(**inputs)
    return seen, inputs


def js(p, q):
    p, q = p / p.sum(), q / q.sum()
    return sum(x * np.log2(2 * x / (a + b)) / 2 for a, b in zip(p, q) for x in (a, b) if x > 0)


@pytest.mark.parametrize(("name", "side"), [("bert", "right"), ("gpt_oss", "left")])
@pytest.mark.parametrize("batch", [None, 1])
def test_it_is_the_mean_over_queries(name, side, batch, monkeypatch):
    monkeypatch.setattr(head_divergence, "MAX_SCORES", 200)  # a row or two at a time
    seen, inputs = recorded(name, side)
    found = heads.divergence(seen, batch)
    whole = torch.cat([all_weights(call) for call in seen], 1).double().numpy()
    real = inputs["attention_mask"].bool().numpy()
    assert found.heads == tuple((layer, head) for layer in range(2) for head in range(4))
    for a in range(8):
        for b in range(8):
            rows = [
                js(whole[one, a, i], whole[one, b, i])
                for one in ((0, 1) if batch is None else (batch,))
                for i in range(whole.shape[2])
                if real[one, i] and whole[one, a, i].sum() and whole[one, b, i].sum()
            ]
            assert found.matrix[a, b] == pytest.approx(np.mean(rows), abs=1e-5)


def test_heads_that_never_meet_and_heads_that_are_alike():
    back, ahead = looking(6, 6, lambda i: [max(0, i - 1)]), looking(6, 6, lambda i: [min(5, i + 1)])
    found = heads.divergence(recording_of(back, ahead, back, ahead, back))
    assert found.matrix[0, 2] == found.matrix[1, 3] == 0
    assert found.matrix[0, 1] == pytest.approx(1)
    assert found.clusters(2) == [[(0, 0), (0, 2), (0, 4)], [(0, 1), (0, 3)]]
    assert found.labels[1] == "0.1"
    assert [found.heads[i] for i in found.order] == [head for group in found.clusters(2) for head in group]
    assert len(found.clusters(5)) == 5
    assert [len(group) for group in found.clusters(1)] == [5]
    rows = found.table.filter(head=0, other_head=1)
    assert rows.column("divergence") == [pytest.approx(1)]
    assert len(found.table) == 10
    assert repr(found) == "<Divergence between 5 heads>"


def test_one_head_is_a_cluster_of_its_own():
    found = heads.divergence(recording_of(torch.zeros(3, 3)))
    assert (found.order, found.clusters(1), len(found.table)) == ([0], [[(0, 0)]], 0)


@given(st.integers(2, 9), st.integers(0, 99))
def test_average_linkage_is_what_its_definition_says(count, seed):
    points = np.random.default_rng(seed).random((count, count))
    apart = points + points.T
    np.fill_diagonal(apart, 0)
    groups = {i: [i] for i in range(count)}
    for number, (left, right, height) in enumerate(linkage(apart)):
        means = {
            (a, b): np.mean([apart[x, y] for x in groups[a] for y in groups[b]])
            for a in groups
            for b in groups
            if a < b
        }
        assert height == pytest.approx(min(means.values()))
        assert means[min(left, right), max(left, right)] == pytest.approx(height)
        groups[count + number] = groups.pop(left) + groups.pop(right)
    assert len(groups) == 1


def test_what_is_refused():
    seen, _ = recorded("bart")
    with pytest.raises(ArgumentError, match=r"recorded: encoder, decoder, cross\). Got kind = None. Choose"):
        heads.divergence(seen)
    with pytest.raises(ArgumentError, match=r"Got kind = 'verb'"):
        heads.divergence(seen, kind="verb")
    assert len(heads.divergence(seen, kind="cross").heads) == 12
    with pytest.raises(ArgumentError, match=r"clusters must be between 1 and 12. Got count = 0"):
        heads.divergence(seen, kind="cross").clusters(0)
    with pytest.raises(RecordingError, match=r"the same queries and keys. Got no calls of run 3"):
        heads.divergence(seen, kind="cross", run=3)
    two = [
        ScoredCall("x", "encoder", n, *[torch.randn(1, 2, 3 + n, 4)] * 2, torch.zeros(1, 2, 3 + n))
        for n in (0, 1)
    ]
    with pytest.raises(RecordingError, match=r"Got queries = 3, keys = 3; queries = 4, keys = 4. Record"):
        heads.divergence(Recording("m", two))
    with pytest.raises(RecordingError, match=r"Weights need Q and K"):
        heads.divergence(Recording("m", [seen[0].summary(0)]))
