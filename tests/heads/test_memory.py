"""Nothing of n×n elements exists while heads are read."""

import pytest
import torch
import transformers as hf

import regard
from recording.families import GROUPED, SMALL
from recording.test_memory import Largest
from regard import heads
from regard.heads import attention_rollout, head_divergence, pair_weights, token_roles

N = 1024


@pytest.fixture(autouse=True)
def _small_stretches(monkeypatch):
    # The usual stretch is as large as the matrix of one head here; a longer text would take longer.
    for module in (head_divergence, attention_rollout, pair_weights, token_roles):
        monkeypatch.setattr(module, "MAX_SCORES", N * N // 8)


@pytest.fixture(scope="module", params=["encoder", "decoder"])
def seen(request):
    torch.manual_seed(0)
    ids = torch.randint(3, 61, (1, N))
    if request.param == "encoder":
        model = hf.BertModel(hf.BertConfig(**{**SMALL, "max_position_embeddings": N})).eval()
    else:
        model = hf.LlamaModel(hf.LlamaConfig(**{**GROUPED, "max_position_embeddings": N})).eval()
    keep = torch.ones_like(ids)
    keep[:, -9:] = 0
    with torch.no_grad(), regard.watch(model, layers=[0]) as seen:
        model(input_ids=ids, attention_mask=keep)
    seen.tokens = [str(token) if token > 9 else "." for token in ids[0].tolist()]
    return seen


@torch.no_grad()
def test_no_matrix_is_made(seen):
    for read in (
        heads.table,
        heads.roles,
        lambda seen: heads.rollout(seen, rows=[0, -1]),
        heads.divergence,
    ):
        with Largest() as largest:
            read(seen)
        assert 0 < largest.size < N * N


@torch.no_grad()
def test_not_even_where_all_tokens_are_equal(seen):
    with Largest() as largest:
        found = heads.roles(seen, ["the"] * N, names="same")
    assert largest.size < N * N
    assert found[0].scores["same"].value == pytest.approx(1, abs=1e-4)
