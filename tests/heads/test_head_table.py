"""The table of heads: its numbers against dense weights, what is left out, and the way to other tools."""

import json
import math

import numpy as np
import pytest
import torch

import regard
from parity import tensors
from recording.families import FAMILIES, all_weights, inputs_of
from regard import heads, masks
from regard.errors import ArgumentError, PackageError, RecordingError
from regard.heads.head_table import COLUMNS
from regard.kernels import attention_with_lse
from regard.recording import DenseCall, Recording, ScoredCall


def recorded(name, side="right", **options):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, side)
    with torch.no_grad(), regard.watch(model, **options) as seen:
        model(**inputs)
    return seen, inputs


def call_of(q, k, kind="encoder", **options):
    _, lse = attention_with_lse(q, k, k, **options)
    options["mask"] = options.get("mask", masks.everything())
    options.setdefault("scale", q.shape[-1] ** -0.5)
    return ScoredCall("made", kind, 0, q, k, lse, **options)


def expected(weights, real, visible):
    """The definitions in docs/statistics.md, query by query. weights: (batch, head, query, key)."""
    batch, heads_, queries, keys = weights.shape
    rows = []
    for h in range(heads_):
        got = {name: [] for name in heads.head_table.MEANS}
        shares = []
        for b in range(batch):
            received, counted = np.zeros(keys), 0
            for i in range(queries):
                w, p = weights[b, h, i], i + keys - queries
                if not real[b, i] or not visible[b, h, i]:
                    continue
                counted += 1
                received += w
                entropy = -sum(x * math.log(x) for x in w if x > 0)
                got["entropy"].append(entropy)
                if visible[b, h, i] > 1:
                    got["relative_entropy"].append(entropy / math.log(visible[b, h, i]))
                got["self_weight"].append(w[p] if p >= 0 else 0)
                got["previous_weight"].append(w[p - 1] if p >= 1 else 0)
                got["first_weight"].append(w[0])
                got["distance"].append(sum(x * abs(p - j) for j, x in enumerate(w)) / w.sum())
                got["peak"].append(w.max())
                got["visible"].append(visible[b, h, i])
            if counted:
                shares.append(received.max() / counted)
        count = len(got["entropy"])
        mean = {name: sum(values) / len(values) if values else None for name, values in got.items()}
        rows.append(
            {"queries": count, **mean, "received_peak": sum(shares) / len(shares) if shares else None}
        )
    return rows


def assert_rows(found, wanted, skip=()):
    assert len(found) == len(wanted)
    for row, want in zip(found, wanted):
        for name, value in want.items():
            if name in skip:
                continue
            assert row[name] == (None if value is None else pytest.approx(value, abs=2e-5)), name


@pytest.mark.parametrize(
    ("name", "side"),
    [("bert", "right"), ("llama", "left"), ("llama", "right"), ("gemma2", "right"), ("gpt_oss", "left"),
     ("t5", "right"), ("bart", "left")],
)  # fmt: skip
@pytest.mark.parametrize("batch", [None, 1])
def test_it_is_what_the_dense_weights_say(name, side, batch):
    seen, inputs = recorded(name, side)
    found = heads.table(seen, batch)
    assert found.columns == COLUMNS
    for number, call in enumerate(seen):
        weights = all_weights(call).double().numpy()
        decoder = "decoder_attention_mask" in inputs and call.kind != "encoder"
        real = inputs["decoder_attention_mask" if decoder else "attention_mask"].bool().numpy()
        visible = call.statistics().visible.numpy()
        chosen = slice(None) if batch is None else slice(batch, batch + 1)
        rows = found.filter(call=number)
        assert rows.column("head") == list(call.head_numbers)
        assert {(row["name"], row["layer"], row["kind"], row["run"]) for row in rows} == {
            (call.name, call.layer, call.kind, call.run)
        }
        assert_rows(rows, expected(weights[chosen], real[chosen], visible[chosen]))


@pytest.mark.parametrize("side", ["none", "right"])
def test_recordings_of_statistics_and_of_weights_give_the_same(side):
    full, _ = recorded("bert", side)
    wanted = heads.table(full)
    kept, _ = recorded("bert", side, statistics=True)
    found = heads.table(kept)
    padded = side != "none"
    assert_rows(found, list(wanted), skip=("received_peak",) if padded else ())
    # What padding received cannot be taken out of a sum any more.
    assert (found.column("received_peak") == [None] * len(found)) is padded
    dense = Recording("model", [DenseCall(c.name, c.kind, c.layer, all_weights(c)) for c in full])
    assert_rows(heads.table(dense), list(wanted))
    summed = Recording("model", [call.summary(0) for call in dense])
    assert_rows(heads.table(summed), list(wanted), skip=("received_peak",) if padded else ())


def test_some_heads_keep_their_numbers_and_bfloat16_is_widened():
    seen, _ = recorded("llama", heads=[1, 3], dtype=torch.bfloat16)
    found = heads.table(seen)
    assert found.column("head") == [1, 3, 1, 3]
    assert all(0 < row["entropy"] < math.log(11) for row in found)


def test_queries_that_see_nothing_are_left_out_and_nan_never_appears():
    q, k, _ = tensors(2, heads=3, queries=5, dtype=torch.float32)
    call = call_of(q, k, mask=masks.padding([[True] * 5, [False] * 5]))
    seen = Recording("model", [call])
    assert set(heads.table(seen).column("queries")) == {5}
    alone = heads.table(seen, batch=1)
    assert set(alone.column("queries")) == {0}
    assert all(row[name] is None for row in alone for name in heads.head_table.MEANS)
    assert json.loads(alone.to_json())[0]["entropy"] is None


def test_a_key_that_nobody_chooses_is_not_padding():
    # One head that looks at the key before, at scores so large that all other weights are 0.
    q, k = 100 * torch.eye(5)[None, None], 100 * torch.eye(5).roll(-1, 1)[None, None]
    seen = Recording("model", [call_of(q, k)])
    assert heads.table(seen)[0]["queries"] == 5
    assert heads.table(Recording("model", [seen[0].summary(0)]))[0]["queries"] == 5


def test_generation_with_left_padding():
    model = FAMILIES["llama"].build()
    ids = torch.tensor([[5, 6, 7, 8], [0, 0, 9, 3]])
    with torch.no_grad(), regard.watch(model) as seen:
        model.generate(
            input_ids=ids,
            attention_mask=(ids > 0).long(),
            max_new_tokens=3,
            min_new_tokens=3,
            do_sample=False,
        )
    assert heads.table(seen, batch=0)[0]["queries"] == 6
    assert heads.table(seen, batch=1)[0]["queries"] == 4


# ---- the type ------------------------------------------------------------------------------------


@pytest.fixture
def small():
    return heads.Table(("name", "x"), [("b, 注意", 2.5), ("a", math.nan), ('"c"', -1)])


def test_csv_and_json_need_nothing(small, tmp_path):
    assert small.to_csv() == 'name,x\n"b, 注意",2.5\na,\n"""c""",-1\n'
    assert json.loads(small.to_json()) == [
        {"name": "b, 注意", "x": 2.5}, {"name": "a", "x": None}, {"name": '"c"', "x": -1},
    ]  # fmt: skip
    assert small.to_json(tmp_path / "x.json") == (tmp_path / "x.json").read_text(encoding="utf-8")
    assert small.to_csv(str(tmp_path / "x.csv")) == (tmp_path / "x.csv").read_text(encoding="utf-8")
    assert heads.Table(("a",), []).to_json() == "[]\n"


def test_pandas_polars_and_arrow():
    seen, _ = recorded("bert")
    found = heads.table(seen)
    frames = found.to_pandas().to_dict("list"), found.to_polars().to_dict(as_series=False)
    arrow = found.to_arrow().to_pydict()
    for name in found.columns:
        assert frames[0][name] == frames[1][name] == arrow[name] == found.column(name)


def test_a_package_that_is_missing_is_named(small, monkeypatch):
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
        message = rf"to_{name.removeprefix('py')}\(\) needs the package {name}. .* pip install {name}, or use"
        with pytest.raises(PackageError, match=message) as caught:
            getattr(small, f"to_{name.removeprefix('py')}")()
        assert isinstance(caught.value, ImportError)


def test_sorting_and_parts(small):
    assert small.sort("x").column("x") == [-1, 2.5, None]
    assert small.sort("x", descending=True).column("x") == [2.5, -1, None]
    assert small[1:].column("name") == ["a", '"c"']
    assert small[-1] == {"name": '"c"', "x": -1}
    assert len(small.filter(lambda row: row["x"] is not None)) == 2
    assert small == heads.Table(small.columns, small.cells) != small[1:]


def test_what_is_refused(small):
    with pytest.raises(ArgumentError, match=r"A column must be one of name, x. Got 'y'. Choose one of them"):
        small.sort("y")
    with pytest.raises(ArgumentError, match=r"one cell per column \(columns = 2\). Got 1"):
        heads.Table(("a", "b"), [(1,)])
    with pytest.raises(ArgumentError, match=r"come from a recording. Got list. Make one"):
        heads.table([])
    with pytest.raises(RecordingError, match=r"at least one call. Got none"):
        heads.table(Recording("model"))
    seen, _ = recorded("bert")
    for batch in (2, -1, True, "0"):
        with pytest.raises(ArgumentError, match=r"sequences \(0 … 1\), or None for all. Got batch = "):
            heads.table(seen, batch)
