"""Heads that align two texts, and the pairs that they give."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from heads.synthetic_heads import call_with, looking, recording_of
from regard import figures, heads, masks
from regard.errors import ArgumentError, DtypeError, RecordingError
from regard.heads import alignment_scores
from regard.heads.monotone_path import monotone_path
from regard.recording import Recording

ROWS, COLUMNS = 5, 7
PERMUTED = [4, 0, 6, 2, 5]


@pytest.fixture
def cross():
    """A head that aligns, one that looks at one key, and one that looks everywhere."""
    seen = recording_of(
        looking(ROWS, COLUMNS, lambda i: [3]),
        looking(ROWS, COLUMNS, lambda i: [PERMUTED[i]]),
        looking(ROWS, COLUMNS, lambda i: []),
        kind="cross",
    )
    seen.tokens = list("abcde")
    seen.source_tokens = list("ABCDEFG")
    return seen


def test_the_head_that_aligns_is_found(cross):
    first, second, third = heads.alignment(cross)
    assert first["head"] == 1
    assert first["score"] == pytest.approx(1)
    assert second["one_to_one"] == pytest.approx(1 / ROWS)
    assert third["sharpness"] == pytest.approx(0, abs=1e-6)


def test_scores_by_hand(cross):
    weights = torch.tensor([[0.5, 0.3, 0.1, 0.1], [0.1, 0.2, 0.4, 0.3], [0.2, 0.6, 0.1, 0.1]])
    row = heads.alignment(recording_of(weights.log(), kind="cross"))[0]
    entropies = -(weights * weights.log()).sum(1)
    assert row["mass"] == pytest.approx(1)
    assert row["sharpness"] == pytest.approx(float((1 - entropies / np.log(4)).mean()), abs=1e-6)
    assert row["one_to_one"] == pytest.approx(1)  # 0–0, 1–2, 2–1
    assert row["monotony"] == pytest.approx(0.5)  # ranks 1 2 3 against 1 3 2
    assert row["score"] == pytest.approx(row["mass"] * row["sharpness"] * row["one_to_one"])


def test_a_span_of_one_text_is_divided_by_its_own_weight():
    scores = torch.zeros(6, 6)
    scores[4, 1] = scores[5, 0] = torch.log(torch.tensor(5.0))  # 5 of 10 parts
    seen = recording_of(scores)
    row = heads.alignment(seen, queries=slice(4, 6), keys=slice(0, 3))[0]
    assert row["mass"] == pytest.approx(0.7)
    shares = torch.tensor([1 / 7, 5 / 7, 1 / 7])
    assert row["sharpness"] == pytest.approx(1 + float((shares * shares.log()).sum()) / np.log(3), abs=1e-6)
    assert (row["one_to_one"], row["monotony"]) == (1, pytest.approx(-1))


def test_agreement_by_hand():
    """Two heads with at least half of the best score; the third has no part in their mean."""
    weights = torch.tensor(
        [
            [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]],
            [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.8, 0.1, 0.1]],
            [[0.4, 0.3, 0.3], [0.4, 0.3, 0.3], [0.4, 0.3, 0.3]],
        ],
        dtype=torch.float64,
    )
    found = heads.alignment(recording_of(*weights.log(), kind="cross"))
    mean = weights[:2].mean(0)
    for row in found:
        overlap = torch.minimum(weights[int(row["head"])], mean).sum(1).mean()
        assert row["agreement"] == pytest.approx(float(overlap), abs=1e-6)
    assert [row["head"] for row in found] == [0, 1, 2]


def test_heads_at_the_word_come_before_sharper_ones_that_look_ahead():
    """The one that looks ahead is as one-to-one, and sharper: alone it has the best score."""
    ahead = looking(6, 7, lambda i: [i + 1])
    at_the_word = [looking(6, 7, lambda i: [i]) * scale for scale in (0.06, 0.07, 0.08)]
    found = heads.alignment(recording_of(ahead, *at_the_word, kind="cross"))
    scores = {row["head"]: row["score"] for row in found}
    assert max(scores, key=scores.get) == 0
    assert min(scores.values()) > 0.5 * scores[0]
    assert found[-1]["head"] == 0


def test_one_head_that_aligns_is_found_among_many_that_do_not():
    """Those that hardly align have no part in the mean, however many they are."""
    generator = torch.Generator().manual_seed(0)
    others = [torch.randn(8, 9, generator=generator) for _ in range(60)]
    found = heads.alignment(recording_of(*others, looking(8, 9, lambda i: [(3 * i) % 8]), kind="cross"))
    assert (found[0]["head"], found[0]["agreement"]) == (60, pytest.approx(1))


def test_agreement_is_between_heads_of_one_text():
    """Two runs of different lengths: heads are compared within each."""
    calls = []
    for run, length in enumerate((4, 6)):
        one = looking(length, length, lambda i: [i])
        other = looking(length, length, lambda i, last=length - 1: [last - i])
        call = call_with(torch.stack([one, one, other])[None], "cross")
        calls.append(type(call)(**{**call.__dict__, "run": run}))
    found = heads.alignment(Recording("made", calls))
    assert [row["agreement"] for row in found] == pytest.approx([2 / 3, 2 / 3, 1 / 3], abs=1e-6)
    assert [row["head"] for row in found] == [0, 1, 2]


def test_the_head_found_in_the_built_in_translator_gets_the_checked_words_right():
    """By score alone, the first place goes to a head that gets 16 of the 30 words right."""
    from dataclasses import replace

    from regard.translator import embedded, look
    from regard.translator.alignment import checked_sentences, measure_heads

    translator = embedded()
    recordings = [
        look(translator, one.english, translation=one.chinese).recording for one in checked_sentences()
    ]
    calls = [replace(call, run=run) for run, seen in enumerate(recordings) for call in seen]
    found = heads.alignment(Recording("translator", calls))
    right = {(one.layer, one.head): one.share for one in measure_heads(translator)}
    order = [right[row["layer"], row["head"]] for row in found]
    assert order[0] > 0.85
    assert np.mean(order[:3]) > np.mean(order)


def test_known_pairs(cross):
    pairs = [(i, PERMUTED[i]) for i in range(4)]
    found = heads.alignment(cross, pairs=pairs)
    assert found[0]["head"] == 1
    assert (found[0]["precision"], found[0]["auc"]) == (1, 1)
    even = found.filter(head=2)[0]
    assert even["auc"] == pytest.approx(0.5)
    one_key = found.filter(head=0)[0]
    assert one_key["precision"] == 0
    assert one_key["auc"] == pytest.approx(0.5 * 5 / 6)  # one key weighs more, the others as much


def test_chunks_change_nothing(cross, monkeypatch):
    whole = heads.alignment(cross, pairs=[(0, 4), (3, 2)])
    monkeypatch.setattr(alignment_scores, "CELLS", 2 * COLUMNS)
    assert heads.alignment(cross, pairs=[(0, 4), (3, 2)]) == whole


def test_padding_counts_on_neither_side():
    scores = looking(4, 6, lambda i: [i])[None, None]
    keep = torch.tensor([[True, True, True, False, False, False]])
    seen = Recording("made", [call_with(scores, "cross", mask=masks.padding(keep))])
    found = regard.align(seen, method="argmax")
    assert found.keys == (0, 1, 2)
    assert len(found.pairs) == 4


def test_texts_are_averaged_and_functions_find_the_spans():
    calls = []
    for run, length in enumerate((6, 9)):
        scores = looking(length, length, lambda i: [i - 3])
        call = call_with(scores[None, None])
        calls.append(type(call)(**{**call.__dict__, "run": run}))
    seen = Recording("made", calls)
    row = heads.alignment(seen, queries=slice(3, 6), keys=slice(0, 3))[0]
    assert (row["texts"], row["score"]) == (2, pytest.approx(1))
    with pytest.raises(RecordingError, match="tokens of the text"):
        heads.alignment(seen, queries=lambda tokens: slice(3, 6), keys=slice(0, 3))
    with pytest.raises(RecordingError, match="more than once"):
        regard.align(seen, [(0, 0)], queries=slice(3, 6), keys=slice(0, 3))
    found = regard.align(seen, [(0, 0)], run=1, queries=slice(3, 6), keys=slice(0, 3))
    assert [(pair.query, pair.key) for pair in found.pairs] == [(3, 0), (4, 1), (5, 2)]


# ---- pairs -------------------------------------------------------------------------------------


def test_methods(cross):
    strongest = regard.align(cross, method="argmax")
    assert [pair.key for pair in strongest.pairs] == PERMUTED
    assert strongest.heads == ((0, 1),)
    assert regard.align(cross, [(0, 0)], method="mutual").pairs[0].key == 3
    assert len(regard.align(cross, [(0, 0)], method="mutual").pairs) == 1
    path = regard.align(cross, [(0, 1)], method="dtw")
    assert path.pairs[0][:2] == (0, 0)
    assert path.pairs[-1][:2] == (ROWS - 1, COLUMNS - 1)


def test_rows_of_cross_attention_are_named_by_what_they_write(cross):
    table = regard.align(cross, method="argmax").table()
    assert table.column("query_token") == ["b", "c", "d", "e", "…"]
    assert table.column("key_token")[0] == "E"


def test_heads_are_averaged(cross):
    found = regard.align(cross, [(0, 0), (0, 2)], method="argmax")
    dense = [cross[0].weights(head).double().numpy() for head in (0, 2)]
    assert np.allclose(found.weights, (dense[0] + dense[1]) / 2)


def test_filters():
    random = torch.randn(4, 9, generator=torch.Generator().manual_seed(3))
    seen = recording_of(random, kind="cross")
    shares = seen[0].weights(0).double().numpy()
    plain = (shares - shares.mean(0)) / shares.std(0)
    found = regard.align(seen, [(0, 0)], median=3, standardize=True).weights
    for row in range(4):
        mirrored = [plain[row, 1], *plain[row], plain[row, -2]]
        assert np.allclose(found[row], [np.median(mirrored[j : j + 3]) for j in range(9)], atol=1e-5)


def test_files(cross, tmp_path):
    found = regard.align(cross, method="argmax")
    found.to_csv(tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text(encoding="utf-8").splitlines()[1].startswith("0,b,4,E,")
    assert '"key_token": "E"' in found.to_json()


def best_sum(gains):
    best = np.full(gains.shape, -np.inf)
    for i, j in np.ndindex(gains.shape):
        before = [best[i - a, j - b] for a, b in ((1, 1), (1, 0), (0, 1)) if i >= a and j >= b]
        best[i, j] = gains[i, j] + (max(before) if before else 0)
    return best[-1, -1]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10**6))
def test_the_path_is_monotone_and_collects_the_most(rows, columns, seed):
    gains = np.random.default_rng(seed).normal(size=(rows, columns))
    path = monotone_path(gains)
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [rows - 1, columns - 1]
    steps = np.diff(path, axis=0)
    assert ((steps >= 0) & (steps <= 1)).all()
    assert (steps.sum(1) > 0).all()
    assert gains[path[:, 0], path[:, 1]].sum() == pytest.approx(best_sum(gains))


# ---- figure and errors -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dtw", "argmax", "mutual"])
def test_the_figure_marks_the_pairs(cross, method):
    found = regard.align(cross, method=method)
    line = figures.alignment(found).axes[0].lines[0]
    marked = list(zip(line.get_ydata(), line.get_xdata()))
    assert marked == [(pair.query, pair.key) for pair in found.pairs]
    title = figures.alignment(found, lang="zh").axes[0].get_title(loc="left")
    assert "第 0 层" in (title or "第 0 层")


def test_what_is_refused(cross):
    text = recording_of(torch.zeros(4, 4))
    with pytest.raises(RecordingError, match="queries= and keys="):
        heads.alignment(text)
    with pytest.raises(ArgumentError, match="must not overlap"):
        heads.alignment(text, queries=slice(0, 3), keys=slice(2, 4))
    with pytest.raises(ArgumentError, match="at least one"):
        heads.alignment(text, queries=slice(4, 9), keys=slice(0, 2))
    for span in ([1.5], [True, False], [1, 1]):
        with pytest.raises(ArgumentError, match="at least one, each once"):
            heads.alignment(text, queries=span, keys=[3])
    with pytest.raises(RecordingError, match=r"of the kinds cross. Got kind = 'encoder'"):
        heads.alignment(cross, kind="encoder")
    with pytest.raises(ArgumentError, match="recorded passes"):
        regard.align(cross, run=3)
    with pytest.raises(ArgumentError, match="pairs of a layer and a head"):
        regard.align(cross, [(0.5, 1)])
    with pytest.raises(RecordingError, match="of the kinds"):
        heads.alignment(cross, kind="encoder", queries=[0], keys=[1])
    with pytest.raises(ArgumentError, match="at least one pair"):
        heads.alignment(cross, pairs=[])
    with pytest.raises(ArgumentError, match=r"at least one pair. Got \[\(0.7, 4.2\)\]"):
        heads.alignment(cross, pairs=[(0.7, 4.2)])
    with pytest.raises(ArgumentError, match="Every pair must have its query"):
        heads.alignment(cross, pairs=[(9, 0)])
    with pytest.raises(ArgumentError, match="method must be one of"):
        regard.align(cross, method="beam")
    with pytest.raises(ArgumentError, match="odd number"):
        regard.align(cross, median=4)
    with pytest.raises(ArgumentError, match="pairs of a layer and a head"):
        regard.align(cross, [3])
    with pytest.raises(RecordingError, match="recorded layer"):
        regard.align(cross, [(7, 0)])
    with pytest.raises(ArgumentError, match="recorded heads"):
        regard.align(cross, [(0, 9)])
    with pytest.raises(DtypeError, match=r"regard\.align"):
        figures.alignment([[1.0]])
    summary = Recording("made", [cross[0].summary(0)])
    with pytest.raises(RecordingError, match="needs weights"):
        heads.alignment(summary)
