"""Eviction: kept attention against dense weights, the policies by their definitions, and the edited model."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from recording.families import FAMILIES, all_weights
from regard import edits, heads, masks, metrics
from regard.errors import ArgumentError, RecordingError
from regard.heads.cache_eviction import POLICIES

LENGTH, CUT = 47, 29


@pytest.fixture(scope="module")
def read():
    """A model with grouped heads, the text, and its recording."""
    model = FAMILIES["llama"].build()
    ids = torch.randint(3, 61, (1, LENGTH), generator=torch.Generator().manual_seed(2))
    with torch.no_grad(), regard.watch(model) as seen:
        model(ids)
    return model, ids, seen


def test_numpy_numbers_are_numbers(read):
    _, _, seen = read
    found = heads.eviction(seen, budgets=np.array([0.2, 0.6]), start=np.int64(CUT), policies="recent")
    plain = heads.eviction(seen, budgets=(0.2, 0.6), start=CUT, policies="recent")
    assert found.table.cells == plain.table.cells
    assert type(found.table[0]["budget"]) is float


def test_kept_attention_is_that_of_the_dense_weights(read):
    _, _, seen = read
    found = heads.eviction(seen, budgets=(0.2, 0.6), start=CUT)
    assert repr(found) == "<Eviction at 29 of 47 keys: recent, received, observed, norm, oracle>"
    assert len(found.table) == 2 * 4 * 5 * 2
    for row in found.table:
        kept = found.kept[0, row["layer"], row["policy"], row["budget"]][0, row["head"]]
        assert kept.sum() == round(row["budget"] * CUT)
        later = all_weights(seen[row["layer"]])[0, row["head"], CUT:]
        wanted = (later[:, :CUT] * kept).sum(-1) + later[:, CUT:].sum(-1)
        assert row["kept"] == pytest.approx(wanted.mean().item(), abs=1e-5)


def test_no_policy_keeps_more_than_the_oracle(read):
    _, _, seen = read
    found = heads.eviction(seen, start=CUT)
    best = {row["budget"]: row["kept"] for row in found.means if row["policy"] == "oracle"}
    assert all(row["kept"] <= best[row["budget"]] + 1e-9 for row in found.means)
    assert best[0.1] < best[0.25] < best[0.5]


def test_the_policies_keep_what_they_say(read):
    _, _, seen = read
    found = heads.eviction(seen, budgets=0.5, start=CUT)  # 14 of 29 keys
    call = seen[1]
    weights = all_weights(call)[0].double()
    grouped = weights.unflatten(0, (2, 2)).sum(1)  # (key head, query, key)

    def kept(policy, head):
        return set(found.kept[0, 1, policy, 0.5][0, head].nonzero()[:, 0].tolist())

    for head in range(4):
        group = head // 2
        assert kept("recent", head) == {0, 1, 2, 3, *range(19, 29)}
        norms = call.k[0, group, :CUT].norm(dim=-1)
        assert kept("norm", head) == set(norms.argsort()[:14].tolist())
        so_far = grouped[group, :CUT, :CUT].sum(0)
        so_far[22:] = torch.inf  # half of them are recent
        assert kept("received", head) == set(so_far.argsort(descending=True)[:14].tolist())
        ahead = grouped[group, CUT:, :CUT].sum(0)
        assert kept("oracle", head) == set(ahead.argsort(descending=True)[:14].tolist())
        assert kept("recent", head) == kept("recent", 0)


def test_the_last_queries_are_observed_with_their_neighbours():
    model = FAMILIES["gpt2"].build()
    ids = torch.randint(3, 61, (1, 61), generator=torch.Generator().manual_seed(3))
    with torch.no_grad(), regard.watch(model) as seen:
        model(ids)
    found = heads.eviction(seen, budgets=0.8, policies="observed", start=50)  # 40 keys: 32 and 8 more
    seen_by_last = all_weights(seen[0])[0, 1, 18:50, :50].double().sum(0)
    pooled = F.avg_pool1d(seen_by_last[None], 5, 1, 2, count_include_pad=False)[0]
    wanted = {*range(18, 50), *pooled[:18].argsort(descending=True)[:8].tolist()}
    assert set(found.kept[0, 0, "observed", 0.8][0, 1].nonzero()[:, 0].tolist()) == wanted


def test_an_edited_model_reads_with_the_smaller_cache(read):
    model, ids, seen = read
    found = heads.eviction(seen, budgets=(0.3, 1.0), policies=("recent", "oracle"), start=CUT)
    with torch.no_grad(), regard.edit(model, found.edit("oracle", 0.3)), regard.watch(model) as cut:
        model(ids)
    for call in cut:
        kept = found.kept[0, call.layer, "oracle", 0.3][0]
        weights = all_weights(call)[0]
        assert (weights[:, CUT:, :CUT] * ~kept[:, None]).abs().max() == 0
        assert torch.allclose(weights.sum(-1), torch.ones(4, LENGTH), atol=1e-5)
    assert torch.allclose(all_weights(cut[0])[:, :, :CUT], all_weights(seen[0])[:, :, :CUT], atol=1e-5)
    inputs = {"input_ids": ids, "labels": found.labels(ids)}
    tried = [found.edit("oracle", 0.3), found.edit("recent", 1.0)]
    effects = regard.effects(model, inputs, tried, metrics.loss)
    with torch.no_grad():
        logits = model(ids).logits[0]
    assert effects[0]["before"] == pytest.approx(
        F.cross_entropy(logits[CUT:-1], ids[0, CUT + 1 :]).item(), rel=1e-4
    )
    assert effects[1]["difference"] == pytest.approx(0, abs=1e-5)  # everything stays
    assert abs(effects[0]["difference"]) > 1e-4


def test_the_mask_can_be_written_and_read(read):
    _, _, seen = read
    mask = heads.eviction(seen, budgets=0.3, start=CUT).mask(0, "norm", 0.3)
    again = masks.parse(repr(mask))
    assert torch.equal(again.dense(LENGTH), mask.dense(LENGTH))


def test_dense_recordings_have_everything_but_norms():
    from transformers import BloomConfig, BloomForCausalLM

    model = BloomForCausalLM(BloomConfig(vocab_size=31, hidden_size=12, n_layer=1, n_head=3)).eval()
    with torch.no_grad(), regard.watch(model) as seen:
        model(torch.arange(20)[None])
    if seen[0].kind != "decoder":
        pytest.skip("recorded as an encoder")
    found = heads.eviction(seen, policies=("recent", "oracle"))
    assert len(found.table) == 3 * 2 * 3
    with pytest.raises(RecordingError, match="The policy norm needs the keys"):
        heads.eviction(seen)


def test_what_is_refused(read):
    _, ids, seen = read
    for budgets in (0, 1.5, "half", True, (0.1, -1)):
        with pytest.raises(ArgumentError, match="A budget must be a share of the keys"):
            heads.eviction(seen, budgets)
    with pytest.raises(ArgumentError, match=f"one of {', '.join(POLICIES)}. Got 'best'"):
        heads.eviction(seen, policies=("best",))
    for start in (0, 47, "middle", True):
        with pytest.raises(ArgumentError, match=r"1 … 46\). Got start = "):
            heads.eviction(seen, start=start)
    found = heads.eviction(seen, 0.5, "recent")
    with pytest.raises(ArgumentError, match=r"policies are recent, the budgets 0.5. Got .*policy = 'norm'"):
        found.edit("norm", 0.5)
    with pytest.raises(ArgumentError, match=r"tokens = 47\). Got 46"):
        found.labels(ids[:, 1:])
    encoder = FAMILIES["bert"].build()
    with torch.no_grad(), regard.watch(encoder) as other:
        encoder(ids)
    with pytest.raises(RecordingError, match=r"a decoder that read one text. Got no such call"):
        heads.eviction(other)
    model = FAMILIES["llama"].build()
    with torch.no_grad(), regard.watch(model, statistics=True) as short:
        model(ids)
    with pytest.raises(RecordingError, match="Eviction needs Q and K"):
        heads.eviction(short)
    assert isinstance(found.edit("recent", 0.5), edits.Edit)
