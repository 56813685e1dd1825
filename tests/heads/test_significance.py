"""Roles against chance: random heads have none, made ones have theirs with tiny p-values."""

import numpy as np
import pytest
import torch

import regard
from heads.synthetic_heads import call_with, looking, recording_of
from recording.families import all_weights
from regard import heads, masks
from regard.errors import ArgumentError, RecordingError
from regard.heads.key_sets import looks_back
from regard.heads.significance import ReceivedWeights, RowPeaks, adjusted, of_columns, of_distinct, tail
from regard.recording import Recording, ScoredCall

WORDS = [f"w{i}" for i in range(30)]


def random_heads(seed, length, count=24, sharp=2.0, kind="decoder"):
    """Random Q and K: a score of mean 0 and this deviation for every pair."""
    made = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(1, count, length, 16, generator=made) for _ in range(2))
    mask = masks.causal() if kind == "decoder" else masks.everything()
    scale = sharp / 4
    _, lse = regard.kernels.attention_with_lse(q, k, k, mask=mask, scale=scale)
    return Recording("random", [ScoredCall("x", kind, 0, q, k, lse, mask=mask, scale=scale)])


def text_of(seed, length):
    """Words of which some come often, with a comma now and then."""
    chance = np.random.default_rng(seed)
    return [["the", ",", "."][one] if one < 3 else f"w{one}" for one in chance.geometric(0.08, length) - 1]


@pytest.mark.parametrize("length", [3, 9, 40, 200])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_random_heads_play_no_role(length, kind):
    clear = tried = 0
    for seed, sharp in enumerate([0.5, 2.0, 6.0]):
        found = heads.roles(random_heads(seed, length, sharp=sharp, kind=kind), text_of(seed, length))
        # Broad is what shuffling cannot change: even weights are broad.
        clear += sum(head.best not in (None, "broad") for head in found)
        tried += len(found)
    assert clear <= tried * 0.05


def test_p_values_of_random_heads_are_not_too_small():
    p = [
        score.p
        for seed in range(4)
        for head in heads.roles(random_heads(seed, 60, sharp=3.0), text_of(seed, 60))
        for score in head.scores.values()
        if score.p is not None
    ]
    assert len(p) > 500
    for level in (0.1, 0.01, 0.001):
        assert np.mean(np.array(p) <= level) <= 1.5 * level


ROLES = {
    "previous": lambda i, n: [i - 1],
    "next": lambda i, n: [i + 1],
    "self": lambda i, n: [i],
    "duplicate": lambda i, n: [i - 30] if i >= 30 else [0],
    "induction": lambda i, n: [i - 29] if i >= 30 else [0],
}


@pytest.mark.parametrize("role", ROLES)
def test_made_heads_play_theirs(role):
    tokens = WORDS * 2
    seen = recording_of(looking(60, 60, lambda i: ROLES[role](i, 60)))
    head = heads.roles(seen, tokens)[0]
    assert head.best == role
    assert head.scores[role].p < 1e-9
    assert head.scores[role].adjusted <= 0.05


def test_a_key_of_a_text_is_one_of_so_many():
    seen = recording_of(looking(60, 60, lambda i: [0]))
    score = heads.roles(seen, WORDS * 2)[0].scores["first"]
    assert score.p == pytest.approx(1 / 60)
    # Three texts in which it is the first key each time are more than one.
    three = Recording("made", [call_with(looking(60, 60, lambda i: [0]).expand(3, 1, 60, 60).contiguous())])
    again = heads.roles(three, WORDS * 2)[0].scores["first"]
    assert again.p < 1e-4
    other = recording_of(looking(60, 60, lambda i: [7]))
    assert heads.roles(other, WORDS * 2)[0].scores["first"].p > 0.5


def test_short_texts_say_so():
    assert heads.roles(random_heads(0, 9), text_of(0, 9)).short
    assert not heads.roles(random_heads(0, 32), text_of(0, 32)).short
    twice = Recording("made", [call_with(torch.zeros(4, 1, 9, 9))])
    assert not heads.roles(twice).short  # four texts of nine tokens


# ---- the formulas ------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [None, 0.3, 3.0])
def test_the_bound_is_above_what_shuffling_gives(spread):
    chance = np.random.default_rng(0)
    # Ten rows over twelve keys.
    weights = np.eye(12)[:10] if spread is None else chance.dirichlet(np.full(12, spread), 10)
    drawn = np.stack([chance.permuted(weights, axis=1)[:, 0] for _ in range(5000)]).mean(1)
    for score in np.quantile(drawn, [0.5, 0.9, 0.99, 0.999]):
        exact = (drawn >= score).mean()
        bound = tail(*(np.array([x]) for x in (score, 1 / 12, 10.0, weights.max())))[0]
        assert exact <= bound + 1e-9
        if spread is None and score > 0.1:  # rows with one key each: the formula is nearly sharp
            assert bound <= 8 * exact


def test_columns_by_counting():
    received = torch.tensor([[5.0, 1.0, 1.0, 1.0, 0.5], [1.0, 2.0, 3.0, 4.0, 5.0]])
    assert of_columns([ReceivedWeights(received, np.array([0]))]) == pytest.approx([1 / 5, 1.0])
    # Two of five keys: the first two are one of ten pairs.
    found = of_columns([ReceivedWeights(received, np.array([0, 1]))])
    assert found[0] == pytest.approx(0.3, abs=0.05)  # three pairs of those with key 0 have 6
    assert found[1] == pytest.approx(1.0)


def test_distinct_keys_by_counting():
    weights = torch.ones(1, 4)
    peaks = [RowPeaks(weights, 4, torch.tensor([4.0]))]
    assert of_distinct(np.array([1.0]), peaks)[0] == pytest.approx(24 / 256, abs=0.03)  # 4! of 4^4
    assert of_distinct(np.array([0.25]), peaks)[0] == 1.0


def test_corrected_p_values():
    assert adjusted([]) == []
    assert adjusted([0.001, 1.0]) == [0.002, 1.0]
    assert adjusted([0.5, 0.5]) == [0.5, 0.5]


# ---- frequent tokens, and selections -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_frequent_tokens_are_measured_as_rare_ones(kind, monkeypatch):
    seen = random_heads(1, 70, count=3, kind=kind)
    tokens = text_of(5, 70)
    names = ["same", "duplicate", "induction"]
    one_by_one = heads.roles(seen, tokens, names=names)
    monkeypatch.setattr("regard.heads.key_sets.FREQUENT", 2)
    by_channels = heads.roles(seen, tokens, names=names)
    assert looks_back(seen[0].mask) == (kind == "decoder")
    for mine, theirs in zip(by_channels, one_by_one):
        for name in names:
            assert mine.scores[name].value == pytest.approx(theirs.scores[name].value, abs=1e-5)
            assert mine.scores[name].chance == pytest.approx(theirs.scores[name].chance, abs=1e-6)
            example = mine.scores[name].example
            exact = all_weights(seen[0])[0, mine.head, example.query, example.key]
            assert example.weight == pytest.approx(float(exact), abs=1e-5)


def test_roles_of_ones_own():
    pairs = [(3, 17), (17, 3), (5, 40), (40, 5), (9, 22), (22, 9)]
    partner = dict(pairs)
    seen = recording_of(looking(60, 60, lambda i: [partner.get(i, i)]), torch.zeros(60, 60))
    found = heads.roles(seen, {"disulfide": pairs})
    score = found[0].scores["disulfide"]
    assert (score.value, score.chance) == (pytest.approx(1), pytest.approx(1 / 60))
    assert score.p < 1e-8
    assert found[0].best == "disulfide"
    assert str(found[0]) == "layer 0 head 0 attends to disulfide (1.00)"
    assert found[1].scores["disulfide"].p == pytest.approx(1, abs=1e-3)
    table = masks.dense(torch.tensor([[partner.get(i) == j for j in range(60)] for i in range(60)]))
    by_mask = heads.roles(seen, own={"disulfide": table})
    assert by_mask[0].scores["disulfide"].value == pytest.approx(1)
    assert by_mask[0].scores["disulfide"].p == pytest.approx(score.p, rel=1e-3)
    assert by_mask[0].example.key == partner[by_mask[0].example.query]
    assert found.table.column("disulfide") == [pytest.approx(1), pytest.approx(1 / 60)]
    assert found.strongest("disulfide", 1)[0].head == 0
    alone = heads.roles(seen, {"disulfide": pairs}, names="disulfide")
    assert set(alone[0].scores) == {"disulfide"}


def test_own_roles_that_are_refused():
    seen = recording_of(torch.zeros(6, 6))
    for wrong in ("a", [1, 2], [(1, 2, 3)], [(0.5, 1)], []):
        with pytest.raises(ArgumentError, match=r"list of pairs of positions \(query, key\), or a mask"):
            heads.roles(seen, {"x": wrong})
    with pytest.raises(
        ArgumentError, match=r"\(queries = 6, keys = 6\). Got 'x' with queries up to 2 and keys up"
    ):
        heads.roles(seen, {"x": [(2, 6)]})
    with pytest.raises(ArgumentError, match=r"a name that is not taken. Got 'self'"):
        heads.roles(seen, {"self": [(1, 2)]})


def test_layers_and_heads_are_chosen():
    q = torch.randn(1, 4, 7, 8)
    k = torch.randn(1, 2, 7, 8)  # two query heads share a key head
    _, lse = regard.kernels.attention_with_lse(q, k, k, mask=masks.causal())
    scale = 8**-0.5
    calls = [
        ScoredCall(f"l{i}", "decoder", i, q + i, k, lse, mask=masks.causal(), scale=scale) for i in range(3)
    ]
    calls = [
        call if i == 0 else ScoredCall(**{**vars(call), "lse": call.statistics().lse})
        for i, call in enumerate(calls)
    ]
    seen = Recording("m", calls)
    tokens = list("abcabca")
    everything = {(head.layer, head.head): head for head in heads.roles(seen, tokens)}
    some = heads.roles(seen, tokens, layers=[0, 2], heads=3)
    assert [(head.call, head.layer, head.head) for head in some] == [(0, 0, 3), (2, 2, 3)]
    for head in some:
        for role, score in head.scores.items():
            assert score.value == pytest.approx(
                everything[head.layer, head.head].scores[role].value, abs=1e-6
            )
    table = heads.table(seen)
    chosen = heads.table(seen, layers=1, heads=[1, 2])
    assert [row["head"] for row in chosen] == [1, 2]
    wanted = table.filter(lambda row: row["layer"] == 1 and row["head"] in (1, 2))
    assert chosen.column("entropy") == pytest.approx(wanted.column("entropy"))
    flow = heads.rollout(seen, layers=1, heads=2).own
    by_hand = 0.5 * torch.eye(7) + 0.5 * seen[1].weights(2)
    torch.testing.assert_close(flow, by_hand.double(), atol=1e-5, rtol=0)
    for wrong in (3, [], [0, 9], True):
        with pytest.raises(ArgumentError, match=r"layers must be among 0, 1, 2\. Got layers = "):
            heads.roles(seen, layers=wrong)


def test_the_role_that_was_asked_for_is_shown():
    seen = recording_of(looking(40, 40, lambda i: [i - 1]))
    head = heads.roles(seen, WORDS + WORDS[:10]).strongest("same", 1)[0]
    assert str(head) == f"layer 0 head 0 attends to equal tokens ({head.scores['same'].value:.2f}, not clear)"
    assert head.example == head.scores["same"].example
    assert head.best == "previous"


def test_heads_beside_other_kinds_say_theirs():
    scores = torch.zeros(1, 1, 4, 4)
    both = Recording("m", [call_with(scores), call_with(scores, kind="cross")])
    assert [str(head).split(" layer")[0] for head in heads.roles(both)] == ["encoder", "cross"]


def test_alignment_needs_cross_attention():
    with pytest.raises(
        RecordingError, match=r"needs cross-attention between two texts. Got only heads of the encoder"
    ):
        heads.roles(recording_of(torch.zeros(4, 4)), names="alignment")


def test_weight_by_distance():
    seen = random_heads(3, 11, count=2)
    found = heads.table(seen, distances=True)
    weights = all_weights(seen[0])[0].double()
    gaps = (torch.arange(11)[:, None] - torch.arange(11)).abs()
    for head in range(2):
        for first, last in ((0, 0), (1, 1), (2, 3), (4, 7), (8, 15)):
            wanted = (weights[head] * ((gaps >= first) & (gaps <= last))).sum() / 11
            assert found[head][f"distance_{first}"] == pytest.approx(float(wanted), abs=1e-5)
    kept = Recording("m", [seen[0].summary(0)])
    assert heads.table(kept, distances=True).column("distance_1") == [None, None]


def test_progress_is_told():
    told = []
    seen = Recording("m", [call_with(torch.zeros(1, 1, 4, 4)), call_with(torch.zeros(1, 1, 4, 4))])
    heads.roles(seen, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


# ---- few positions, and weights that lie elsewhere -------------------------------------------------


def test_induction_on_a_model_with_few_positions():
    from transformers import GPT2Config, GPT2LMHeadModel

    def small(positions):
        return GPT2LMHeadModel(
            GPT2Config(n_embd=12, n_layer=1, n_head=2, n_positions=positions, vocab_size=60, bos_token_id=1)
        )

    found = heads.induction(small(13))
    assert found.tokens == 4 * 13  # six tokens twice behind the first, in four sequences
    with pytest.raises(
        ArgumentError, match=r"positions = 13\). Got length = 9, 2 times, and a first token. Choose a len"
    ):
        heads.induction(small(13), length=9)
    with pytest.raises(ArgumentError, match="Choose a model with more positions"):
        heads.induction(small(4))


def test_the_projection_of_an_offloaded_layer():
    accelerate = pytest.importorskip("accelerate")
    torch.manual_seed(0)
    layer = torch.nn.Linear(16, 16)
    call = random_heads(0, 6, count=2)[0]
    call = ScoredCall(**{**vars(call), "v": torch.randn(1, 2, 6, 8)})
    wanted = heads.value_weighted(call, layer).norms
    accelerate.cpu_offload(layer, execution_device=torch.device("cpu"))
    assert layer.weight.is_meta
    torch.testing.assert_close(heads.value_weighted(call, layer).norms, wanted)
    bare = torch.nn.Linear(16, 16, device="meta")
    with pytest.raises(RecordingError, match="weight on the device meta"):
        heads.value_weighted(call, bare)
