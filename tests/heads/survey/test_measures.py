"""What a survey finds in a few texts, against the table and the roles of a recording of the same texts."""

import pytest
import torch

import regard
from heads.survey.conftest import sentences
from regard.heads.survey import Corpus, measures, survey
from regard.heads.survey.measures import MEASURES
from regard.heads.survey.survey_results import ROLES
from regard.kernels.compiled_pass import SWITCH

TEXTS = sentences(7, seed=5)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("\n".join(TEXTS))
    return path


def recording_of(reader, model):
    """All texts in one batch, padded, as a plain recording."""
    inputs = reader.tokenizer(TEXTS, return_tensors="pt", padding=True, padding_side="right")
    with torch.no_grad(), regard.watch(model) as seen:
        model(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask)
    seen.tokens = [reader.tokenizer.convert_ids_to_tokens(row) for row in inputs.input_ids.tolist()]
    return seen


@pytest.fixture(autouse=True, params=["compiled", "torch"])
def row_pass(request, monkeypatch):
    """With the compiled pass, where it is built, and without."""
    if request.param == "torch":
        monkeypatch.setenv(SWITCH, "0")


@pytest.mark.parametrize("name", ["bert", "llama", "bart"])
def test_means_are_those_of_the_table_and_of_the_roles(readers, path, tmp_path, name, monkeypatch):
    reader = readers[name]
    model = reader.model.get_encoder() if name == "bart" else reader.model.base_model
    seen = recording_of(reader, model)
    table, roles = regard.heads.table(seen), regard.heads.roles(seen)
    assert len(table) == sum(call.heads for call in seen)
    for at_once in (1 << 22, 300):  # all weights at once, or a few rows at a time
        monkeypatch.setattr(measures, "MAX_WEIGHTS", at_once)
        assert_means(survey(reader, Corpus.open(path), tmp_path / str(at_once)), table, roles)


def assert_means(found, table, roles):
    assert found.counts["documents"] == 7
    assert len(found.places) == len(table)
    own = found.table
    for row, wanted in enumerate(table):
        assert (own[row]["layer"], own[row]["head"]) == (wanted["layer"], wanted["head"])
        assert own[row]["queries"] == wanted["queries"]
        for column in ("entropy", "relative_entropy", "peak", "distance"):
            assert own[row][f"{column}_mean"] == pytest.approx(wanted[column], abs=2e-6), column
    for row, wanted in enumerate(roles):
        for role in ROLES:
            score = found.heads[row].scores.get(role)
            assert (score is None) == (role not in wanted.scores), role
            if score is not None:
                assert score.value == pytest.approx(wanted.scores[role].value, abs=2e-6), role
                assert score.chance == pytest.approx(wanted.scores[role].chance, abs=2e-6), role


def test_variances_quantiles_and_distances_against_the_weights(readers, path, tmp_path):
    reader = readers["llama"]
    seen = recording_of(reader, reader.model.base_model)
    found = survey(reader, Corpus.open(path), tmp_path / "out")
    row = 7  # layer 1, head 1
    lengths = [len(reader.tokenizer(text).input_ids) for text in TEXTS]
    weights = [seen[1].weights(1, batch=b)[:n, :n].double() for b, n in enumerate(lengths)]
    previous = torch.cat([w.diagonal(-1) for w in weights])
    place = found.table[row]
    assert place["previous_variance"] == pytest.approx(float(previous.var(unbiased=False)), abs=1e-6)
    assert place["previous_min"] == pytest.approx(float(previous.min()), abs=1e-6)
    assert place["previous_max"] == pytest.approx(float(previous.max()), abs=1e-6)
    for percent in (5, 50, 95):
        exact = float(previous.quantile(percent / 100, interpolation="lower"))
        assert place[f"previous_p{percent:02d}"] == pytest.approx(exact, rel=0.0225, abs=1e-6)
    for one in found.distances.filter(layer=1, head=1):
        pairs = [
            w.diagonal(d) for w in weights for d in range(one["first"], one["last"] + 1) if abs(d) < len(w)
        ]
        assert one["pairs"] == sum(map(len, pairs))
        assert one["mean_weight"] == pytest.approx(float(torch.cat(pairs).mean()), abs=1e-6)
    assert min(found.distances.column("first")) == 1 - max(lengths)
    assert max(found.distances.column("last")) == 0  # a decoder looks back
    # η² by its definition, over all pairs that may attend; all distances here have a bin of their own.
    seen_pairs = [(w[i, j], i - j) for w in weights for i in range(len(w)) for j in range(i + 1)]
    level = sum(w for w, _ in seen_pairs) / len(seen_pairs)
    by_gap = {}
    for w, gap in seen_pairs:
        by_gap.setdefault(gap, []).append(w)
    between = sum(len(ws) * (sum(ws) / len(ws) - level) ** 2 for ws in by_gap.values())
    total = sum((w - level) ** 2 for w, _ in seen_pairs)
    assert place["positional"] == pytest.approx(float(between / total), abs=1e-6)


def test_examples_are_those_of_the_definition(readers, path, tmp_path):
    reader = readers["bert"]
    seen = recording_of(reader, reader.model)
    found = survey(reader, Corpus.open(path), tmp_path / "out")
    ids = [reader.tokenizer(text).input_ids for text in TEXTS]
    for layer, head in ((0, 0), (1, 2)):
        scores = {}
        for number, tokens in enumerate(ids):
            inside = range(1, len(tokens) - 1)  # neither [CLS] nor [SEP]
            if len(inside) < 5:
                continue
            w = seen[layer].weights(head, batch=number)
            highest = {i: max((float(w[i, j]), -j) for j in inside if j != i) for i in inside}
            scores[number] = (sum(x for x, _ in highest.values()) / len(inside), max(highest.values()))
        wanted = sorted(scores, key=lambda number: -scores[number][0])[:3]
        mine = [one for one in found.examples() if (one["layer"], one["head"]) == (layer, head)]
        assert [one["document"] for one in mine] == wanted
        for one in mine:
            score, (weight, _) = scores[one["document"]]
            assert one["score"] == pytest.approx(score, abs=1e-6)
            assert one["weight"] == pytest.approx(weight, abs=1e-6)
            assert one["ids"] == ids[one["document"]]
            assert one["pair"] == [one["ids"][one["query"]], one["ids"][one["key"]]]
            assert one["weights"][one["key"]] == one["weight"]


def test_induction_on_repeats_is_told_of_decoders(readers, path, tmp_path):
    reader = readers["llama"]
    found = survey(reader, Corpus.open(path), tmp_path / "llama")
    wanted = regard.heads.induction(
        reader.model.base_model, length=11, vocabulary=24, start=None, avoid=reader.tokenizer.all_special_ids
    )
    exact = [head.scores["induction"].value for head in wanted]
    assert found.table.column("induction_on_repeats") == pytest.approx(exact)
    found = survey(readers["bert"], Corpus.open(path), tmp_path / "bert")
    assert set(found.table.column("induction_on_repeats")) == {None}


def test_every_measure_has_a_column(readers, path, tmp_path):
    found = survey(readers["bert"], Corpus.open(path), tmp_path / "out", layers=[1])
    assert {place[2] for place in found.places} == {1}
    for measure in MEASURES:
        assert f"{measure}_p95" in found.table.columns
