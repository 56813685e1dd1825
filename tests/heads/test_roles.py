"""Roles: heads made to play them, the definitions spelled out on dense weights, and what cannot be told."""

import math

import numpy as np
import pytest
import torch

import regard
from heads.synthetic_heads import SURE, call_with, looking, recording_of
from recording.families import FAMILIES, all_weights, inputs_of
from regard import heads, masks, nn
from regard.errors import ArgumentError, DtypeError, RecordingError, ShapeError
from regard.heads.head_roles import REACH
from regard.heads.role_results import ROLES, TIERS
from regard.heads.separators import is_separator
from regard.recording import DenseCall, Recording, ScoredCall

TEXT = ["[CLS]", "a", "b", ",", "c", "d", "a", "b", "e", "c", "[SEP]"]
LENGTH = len(TEXT)

WORDS = [f"w{i}" for i in range(24)]
LONG = ["[CLS]", *WORDS[:12], ",", *WORDS[12:], ".", *WORDS, "[SEP]"]
"""Long enough for a role to be more than chance: every word twice, three separators."""


def scores_of(scores, kind="encoder", tokens=TEXT, **options):
    """The roles of one head with these scores between its positions."""
    return heads.roles(recording_of(scores, kind=kind, **options), tokens)[0]


def made(choose, **options):
    return scores_of(looking(LENGTH, LENGTH, choose), **options)


def made_long(choose, **options):
    return scores_of(looking(len(LONG), len(LONG), choose), tokens=LONG, **options)


def value(head, role):
    return head.scores[role].value


# ---- heads made to play a role ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_previous(kind):
    head = made(lambda i: [i - 1], kind=kind)
    assert value(head, "previous") == pytest.approx(1)
    assert value(head, "self") == pytest.approx((1 if kind == "decoder" else 1 / LENGTH) / LENGTH)
    assert value(head, "positional") > 0.9
    assert head.best == "previous"
    assert str(head) == "layer 0 head 0 attends to the previous token (1.00)"
    # Where more is to be seen, a weight says more: a decoder sees most at the end.
    shown = (2, 1, "b", "a") if kind == "encoder" else (10, 9, "[SEP]", "c")
    assert head.example == heads.Example(0, *shown[:2], pytest.approx(1), *shown[2:])


def test_next():
    head = made(lambda i: [i + 1])
    assert (value(head, "next"), head.best) == (pytest.approx(1), "next")
    # A decoder sees no next token, so there is nothing to say.
    assert "next" not in made(lambda i: [i + 1], kind="decoder").scores


def test_own_token_and_equal_tokens():
    own = made(lambda i: [i])
    assert (value(own, "self"), value(own, "same"), own.best) == (pytest.approx(1), pytest.approx(1), "self")
    assert value(own, "duplicate") == pytest.approx(0)
    words = ["a", "b", "c"] * 3
    same = scores_of(looking(9, 9, lambda i: [j for j in range(9) if j % 3 == i % 3]), tokens=words)
    assert value(same, "same") == pytest.approx(1, abs=1e-5)
    assert not same.scores["same"].clear  # three words, each in its place: that may be chance
    often = WORDS * 3
    longer = looking(72, 72, lambda i: [j for j, word in enumerate(often) if word == often[i]])
    assert scores_of(longer, tokens=often).best == "same"
    assert value(same, "self") == pytest.approx(1 / 3, abs=1e-5)
    assert value(same, "duplicate") == pytest.approx(
        (1 + 2) / 2 / 3, abs=1e-5
    )  # one or two of three came before


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_duplicate(kind):
    back = made(lambda i: [j for j in range(i) if TEXT[j] == TEXT[i]] or [0], kind=kind)
    assert value(back, "duplicate") == pytest.approx(1)
    # Three of eleven tokens came before; with the first token, which looks at itself, four.
    assert value(back, "same") == pytest.approx(4 / 11)
    assert back.best is None  # three rows are too few to tell it from chance
    longer = made_long(lambda i: [j for j in range(i) if LONG[j] == LONG[i]] or [0], kind=kind)
    assert longer.best == "duplicate"
    shown = back.scores["duplicate"].example
    assert (shown.query, shown.key, shown.query_token, shown.key_token) == (
        (6, 1, "a", "a") if kind == "encoder" else (9, 4, "c", "c")
    )


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_induction(kind):
    after = made(lambda i: [j + 1 for j in range(i - 1) if TEXT[j] == TEXT[i]] or [0], kind=kind)
    assert value(after, "induction") == pytest.approx(1)
    assert value(after, "duplicate") == pytest.approx(0)
    longer = made_long(lambda i: [j + 1 for j in range(i - 1) if LONG[j] == LONG[i]] or [0], kind=kind)
    assert longer.best == "induction"
    example = after.scores["induction"].example
    shown = (example.query_token, example.key_token)
    assert shown == (("a", "b") if kind == "encoder" else ("c", "d"))


def test_a_token_twice_in_a_row_is_no_induction():
    twice = ["x", "x", "y"]
    head = scores_of(looking(3, 3, lambda i: [i]), tokens=twice)
    assert "induction" not in head.scores  # what follows the first x is the query itself
    assert value(head, "duplicate") == pytest.approx(0)


def test_first_and_separators():
    rest = made(lambda i: [0])
    assert (value(rest, "first"), value(rest, "separator")) == (pytest.approx(1), pytest.approx(0))
    assert rest.scores["first"].p == pytest.approx(1 / 11)  # it could have been any of eleven keys
    assert made_long(lambda i: [0]).scores["first"].p == pytest.approx(1 / len(LONG))
    marks = made_long(lambda i: [13, 26, 51])
    assert (value(marks, "separator"), marks.best) == (pytest.approx(1), "separator")
    assert marks.example.key_token in (",", ".", "[SEP]")
    chosen = heads.roles(recording_of(looking(LENGTH, LENGTH, lambda i: [4])), TEXT, separators={"c", "d"})
    assert value(chosen[0], "separator") == pytest.approx(1)


def test_the_first_token_behind_left_padding():
    kept = [False, False] + [True] * (LENGTH - 2)
    head = made(lambda i: [2], mask=masks.padding(kept))
    assert value(head, "first") == pytest.approx(1)
    assert head.scores["first"].example.key == 2


def test_distance_alone():
    gaps = torch.arange(40)[None] - torch.arange(40)[:, None]
    by_distance = -(gaps + 3).abs() * 1.0
    words = [f"w{i}" for i in range(40)]
    near = scores_of(by_distance, tokens=words)
    assert value(near, "positional") > 0.9
    assert near.best == "positional"
    # The same weights, but which way they go is decided by chance.
    sign = torch.where(torch.rand(40, 1) > 0.5, 1, -1)
    torn = scores_of(-(sign * gaps + 3).abs() * 1.0, tokens=words)
    assert value(torn, "positional") < 0.7
    assert torn.best is None


def test_even_weights_are_broad_and_nothing_else():
    head = scores_of(torch.zeros(LENGTH, LENGTH))
    assert (value(head, "broad"), head.best) == (pytest.approx(1), "broad")
    for role, score in head.scores.items():
        assert score.value == pytest.approx(score.chance if role != "broad" else 1, abs=1e-6), role
    half = scores_of(looking(LENGTH, LENGTH, lambda i: range(6)))
    assert value(half, "broad") == pytest.approx(5 / 10, abs=1e-5)


def test_alignment_counts_each_source_word_once():
    source, target = [f"s{i}" for i in range(7)], [f"t{i}" for i in range(5)]
    order = [3, 1, 0, 6, 5]
    one_to_one = looking(5, 7, lambda i: [order[i]])
    at_the_end = looking(5, 7, lambda i: [6])
    in_pairs = looking(5, 7, lambda i: [i // 2])
    seen = recording_of(one_to_one, at_the_end, in_pairs, torch.zeros(5, 7), kind="cross")
    found = heads.roles(seen, target, source_tokens=source)
    assert [value(head, "alignment") for head in found] == [
        pytest.approx(x, abs=1e-5) for x in (1, 1 / 5, 3 / 5, 1 / 35)
    ]
    assert str(found[0].scores["alignment"].example) == "'t1' → 's3' (1.00)"  # t0 is read, t1 written
    assert found[0].best is None  # five words on five others: by lot in one of six cases
    assert found[3].scores["alignment"].excess == pytest.approx(0, abs=1e-5)
    assert set(found[0].scores) == {"first", "alignment", "broad"}  # no separator among these words
    with_marks = heads.roles(seen, target, source_tokens=[*source[:6], "</s>"])
    assert value(with_marks[1], "separator") == pytest.approx(1)


# ---- the definitions, spelled out on the matrix ----------------------------------------------


def spelled_out(weights, allowed, real, tokens, reach=REACH):
    """Scores and chances of one head from (batch, query, key) arrays, by loops."""
    got = {role: [] for role in ROLES}
    band = {}
    for b, (w, a) in enumerate(zip(weights, allowed)):
        queries, keys = w.shape
        shown = a.any(0)
        first = int(np.argmax(shown))
        t = tokens[b]
        for i in range(queries):
            p = i + keys - queries
            visible = a[i].sum()
            if not real[b][i] or not visible:
                continue
            entropy = -sum(x * math.log(x) for x in w[i] if x > 0)
            if visible > 1:
                got["broad"].append(((math.exp(entropy) - 1) / (visible - 1), 0))
            groups = {
                "previous": [p - 1], "next": [p + 1], "self": [p],
                "first": [first] if p > first else [],
                "separator": [j for j in range(keys) if is_separator(t[j]) and j != first]
                if not is_separator(t[p]) else [],
                "same": [j for j in range(keys) if t[j] == t[p]],
                "duplicate": [j for j in range(p) if t[j] == t[p]],
                "induction": [j + 1 for j in range(p - 1) if t[j] == t[p]],
            }  # fmt: skip
            for role, chosen in groups.items():
                chosen = [j for j in chosen if 0 <= j < keys and a[i, j]]
                if chosen:
                    got[role].append((sum(w[i, j] for j in chosen), len(chosen) / visible))
            band[b, i] = (
                {d: w[i, p + d] for d in range(-reach, reach + 1) if 0 <= p + d < keys and a[i, p + d]},
                visible,
            )
    profile = {
        d: np.mean([row[d] for row, _ in band.values() if d in row])
        for d in range(-reach, reach + 1)
        if any(d in row for row, _ in band.values())
    }
    mass = min(1, sum(profile.values()))
    for row, visible in band.values():
        whole = sum(profile[d] for d in row) or 1
        explained = sum(min(x, profile[d] * mass / whole) for d, x in row.items())
        got["positional"].append((explained, sum(min(x, 1 / visible) for x in row.values())))
    return {role: np.mean(pairs, 0) for role, pairs in got.items() if pairs}


@pytest.mark.parametrize(
    ("name", "side"),
    [("bert", "right"), ("llama", "left"), ("mistral", "right"), ("gemma2", "left"), ("gpt_oss", "right")],
)
@pytest.mark.parametrize("reach", [2, REACH])
def test_models_against_the_definitions(name, side, reach):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, side)
    with torch.no_grad(), regard.watch(model) as seen:
        model(**inputs)
    letters = "abc.d"
    tokens = [[letters[int(x) % 5] for x in row] for row in inputs["input_ids"]]
    found = heads.roles(seen, tokens, reach=reach)
    assert seen.tokens is None  # the user's own recording stays as it is
    real = inputs["attention_mask"].bool().numpy()
    for head in found:
        call = seen[head.call]
        weights = all_weights(call).double().numpy()[:, head.head]
        allowed = np.broadcast_to(call.mask.dense(*call.extent).numpy(), call.shape)[:, head.head]
        wanted = spelled_out(weights, allowed, real, tokens, reach)
        assert set(head.scores) == set(wanted)
        for role, (score, chance) in wanted.items():
            assert value(head, role) == pytest.approx(score, abs=1e-5), role
            assert head.scores[role].chance == pytest.approx(chance, abs=1e-5), role
            shown = head.scores[role].example
            if shown is not None:
                exact = weights[shown.batch, shown.query, shown.key]
                assert shown.weight == pytest.approx(exact, abs=1e-5)
                assert shown.key_token == tokens[shown.batch][shown.key]


def test_one_sequence_of_a_batch():
    scores = torch.stack([looking(5, 5, lambda i: [i - 1]), looking(5, 5, lambda i: [i + 1])])[:, None]
    seen = Recording("made", [call_with(scores)])
    together, alone = heads.roles(seen)[0], heads.roles(seen, batch=1)[0]
    assert value(together, "next") == pytest.approx(0.5, abs=0.03)
    assert value(alone, "next") == pytest.approx(1)
    assert alone.example.batch == 1
    assert "same" not in alone.scores  # nobody said what the tokens are


def test_dense_weights_give_the_same_scores():
    family = FAMILIES["llama"]
    model, inputs = family.build(), inputs_of(family, "right")
    with torch.no_grad(), regard.watch(model) as seen:
        model(**inputs)
    tokens = [[str(int(x) % 5) for x in row] for row in inputs["input_ids"]]
    dense = Recording("m", [DenseCall(c.name, c.kind, c.layer, all_weights(c)) for c in seen])
    for ours, theirs in zip(heads.roles(seen, tokens), heads.roles(dense, tokens)):
        assert set(ours.scores) == set(theirs.scores)
        for role in ours.scores:
            assert value(theirs, role) == pytest.approx(value(ours, role), abs=1e-5), role


def test_statistics_alone_tell_some_roles():
    full = recording_of(looking(LENGTH, LENGTH, lambda i: [i - 1]), kind="decoder")
    kept = Recording("m", [full[0].summary(0)])
    found = heads.roles(kept, TEXT)[0]
    assert set(found.scores) == {"previous", "self", "first", "broad"}
    for role, score in found.scores.items():
        assert score.value == pytest.approx(value(heads.roles(full, TEXT)[0], role))
    with pytest.raises(RecordingError, match=r"The role 'induction' needs Q and K, but made has only stat"):
        heads.roles(kept, TEXT, names="induction")
    padded = recording_of(torch.zeros(LENGTH, LENGTH), mask=masks.padding([False] + [True] * (LENGTH - 1)))
    late = Recording("m", [padded[0].summary(0)])
    assert "first" not in heads.roles(late)[0].scores  # key 0, which was counted, is padding
    with pytest.raises(RecordingError, match=r"The role 'first' needs Q and K"):
        heads.roles(late, names=["first", "broad"])


def test_rows_that_see_nothing_never_make_nan():
    q = torch.randn(1, 2, 5, 3)
    blind = ScoredCall("x", "encoder", 0, q, q, torch.full((1, 2, 5), -torch.inf), mask=masks.nothing())
    found = heads.roles(Recording("m", [blind]), list("abcab"))
    assert [head.scores for head in found] == [{}, {}]
    assert found[0].best is None
    assert found[0].in_words() == "has no clear role"
    assert "NaN" not in found.to_json()


# ---- repeated random tokens --------------------------------------------------------------------


def test_repeated_tokens_repeat_and_are_random():
    ids = heads.repeated_tokens(50, length=7, repeats=3, batch=5, start=2, avoid=[0, 1])
    assert ids.shape == (5, 22)
    assert set(ids[:, 0].tolist()) == {2}
    once = ids[:, 1:8]
    assert torch.equal(ids[:, 1:], once.repeat(1, 3))
    assert all(len(set(row)) == 7 and min(row) > 2 for row in once.tolist())
    assert not torch.equal(once[0], once[1])
    assert torch.equal(ids, heads.repeated_tokens(50, length=7, repeats=3, batch=5, start=2, avoid=[0, 1]))
    assert not torch.equal(ids, heads.repeated_tokens(50, length=7, repeats=3, batch=5, start=2, seed=1))


class Inductive(torch.nn.Module):
    """A circuit by hand: a head that looks back one, then one that looks for its own token there."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, vocabulary)
        self.embedding.weight.data = torch.eye(vocabulary)

    def forward(self, ids):
        x = self.embedding(ids)[:, None]  # (batch, one head, length, channel)
        n = x.shape[2]
        place = torch.eye(n).expand(len(x), 1, n, n) * SURE
        previous = torch.nn.functional.scaled_dot_product_attention(
            # Key j stands where query j + 1 looks.
            place, place.roll(1, 3), x, is_causal=True, scale=1.0,
        )  # fmt: skip
        return torch.nn.functional.scaled_dot_product_attention(
            SURE * x, previous, x, is_causal=True, scale=1.0
        )


def test_a_circuit_of_two_heads_is_found():
    found = heads.induction(Inductive(40), length=9)
    assert [head.best for head in found] == ["previous", "induction"]
    # The very first token sees nothing before it but itself, so it is found as its own successor too.
    assert value(found[1], "induction") == pytest.approx(1 - 0.5 / 9, abs=1e-5)
    assert set(found[1].scores) == {"previous", "first", "induction", "duplicate"}


def test_models_say_their_vocabulary_and_special_tokens():
    model = FAMILIES["llama"].build().train()
    found = heads.induction(model, length=5, batch=3)
    assert len(found) == 8
    assert model.training
    example = found[0].scores["first"].example
    assert example.key_token == "1"  # bos_token_id
    with pytest.raises(ArgumentError, match=r"read one text. Got the encoder-decoder BartFor"):
        heads.induction(FAMILIES["bart"].build())
    with pytest.raises(ArgumentError, match=r"the size of its vocabulary. Got no embedding in Linear"):
        heads.induction(torch.nn.Linear(2, 2))
    with pytest.raises(DtypeError, match=r"needs a PyTorch module. Got str"):
        heads.induction("gpt2")
    with pytest.raises(ArgumentError, match=r"usable tokens = 17\). Got length = 30. Choose a shorter"):
        heads.induction(model, length=30, vocabulary=20, avoid=[0, 3])
    with pytest.raises(ArgumentError, match=r"repeats must be a whole number, 2 or more. Got repeats = 1"):
        heads.repeated_tokens(9, length=3, repeats=1)


# ---- the result, and what is refused -----------------------------------------------------------


@pytest.fixture
def three():
    choices = (lambda i: [i - 1], lambda i: [i + 1], lambda i: [0, 3 * i % LENGTH, (5 * i + 2) % LENGTH])
    return heads.roles(recording_of(*(looking(LENGTH, LENGTH, choose) for choose in choices)), TEXT)


def test_the_result(three):
    assert repr(three) == "<Roles of 3 heads, 2 of them clear>"
    assert [head.head for head in three.strongest("previous", 1)] == [0]
    assert [head.head for head in three.clearest(1)] in ([0], [1])
    rows = three.table
    assert rows.column("best") == ["previous", "next", None]
    assert rows[0]["query_token"] == "b"
    assert rows[2]["example_key"] is None
    assert rows.columns[6 : 6 + len(ROLES)] == ROLES
    assert three.to_pandas()["head"].tolist() == three.to_polars()["head"].to_list() == [0, 1, 2]
    assert three.to_arrow().num_rows == 3
    assert three.to_csv().count("\n") == 4
    assert three.to_json() == three.table.to_json()
    assert str(heads.Example(0, 3, 2, 0.5)) == "3 → 2 (0.50)"


def test_a_clear_particular_role_goes_before_a_general_one():
    def best(**values):
        scores = {role: heads.Score(x) for role, x in values.items()}
        return heads.Head(0, "", "encoder", 0, 0, 0, scores).best

    assert best(induction=0.55, first=0.8) == "induction"
    assert best(induction=0.45, first=0.8) == "first"
    assert best(first=0.4, broad=0.6) == "broad"
    assert best(first=0.4) is None
    assert heads.Score(0.9, 1.0).excess == 0.0
    assert {role for tier in TIERS for role in tier} == set(ROLES)


def test_tokens_may_stand_in_the_recording(three):
    seen = recording_of(looking(LENGTH, LENGTH, lambda i: [i - 1]))
    seen.tokens = TEXT
    mine, theirs = heads.roles(seen)[0].scores, three[0].scores
    assert set(mine) == set(theirs)
    assert all(mine[role].value == theirs[role].value and mine[role].p == theirs[role].p for role in mine)


def test_what_is_refused():
    seen = recording_of(torch.zeros(LENGTH, LENGTH))
    with pytest.raises(ArgumentError, match=r"role must be one of previous, next, .*broad. Got 'verb'. Cho"):
        heads.roles(seen, TEXT, names=["self", "verb"])
    with pytest.raises(ArgumentError, match=r"A role must be one of .* Got 'verb'"):
        heads.roles(seen, TEXT).strongest("verb")
    with pytest.raises(RecordingError, match=r"'same' needs the tokens. Got no tokens for made"):
        heads.roles(seen, names="same")
    with pytest.raises(ArgumentError, match=r"reach must be a whole number, 1 or more. Got reach = 0"):
        heads.roles(seen, reach=0)
    with pytest.raises(ArgumentError, match=r"sequences \(0 … 0\), or None for all. Got batch = 1"):
        heads.roles(seen, batch=1)
    with pytest.raises(ShapeError, match=r"tokens must have a token for every position"):
        heads.roles(seen, ["a"])
    with pytest.raises(ArgumentError, match=r"come from a recording. Got str"):
        heads.roles("seen")


def test_regards_own_models():
    model = nn.Seq2Seq(20, 30, width=16, heads=2, hidden=16, encoder_layers=1, decoder_layers=1).eval()
    with torch.no_grad(), regard.watch(model) as seen:
        model(torch.randint(1, 20, (1, 7)), torch.randint(1, 30, (1, 5)))
    kinds = {head.kind: set(head.scores) for head in heads.roles(seen)}
    assert "alignment" in kinds["cross"]
    assert "previous" in kinds["decoder"]
    assert "next" in kinds["encoder"]
