"""Everything that the figures refuse, and what they say."""

import numpy as np
import pytest
import torch

from regard import figures, masks
from regard.errors import (
    ArgumentError,
    DtypeError,
    FileError,
    MaskError,
    MaskSyntaxError,
    RecordingError,
    ShapeError,
)
from regard.recording import DenseCall, Recording, ScoredCall
from views.scenes import call_and_weights, recording, softmax, words


@pytest.fixture(scope="module")
def seen():
    return recording()[0]


# ---- which head ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw", [figures.heatmap, figures.grid, figures.lines, figures.bars, figures.distance]
)
def test_an_empty_recording(draw):
    with pytest.raises(
        RecordingError, match=r"at least one attention call. Got <Recording of M: 0 calls>. Run"
    ):
        draw(Recording("M"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": 0}, r"one call of the recording. Got 3 calls; layer is one of 0, 1, 2. Pass layer=0"),
        ({"layer": 3, "head": 0}, r"layer must be one of those recorded \(0, 1, 2\). Got layer = 3"),
        ({"layer": True, "head": 0}, "Got layer = True"),
        (
            {"layer": 0, "kind": "cross", "head": 0},
            r"kind must be one of those recorded \(decoder\). Got kind = 'cross'",
        ),
        ({"layer": 0, "run": 1, "head": 0}, r"run must be one of those recorded \(0\). Got run = 1"),
        ({"layer": 0, "head": 6}, r"head must be one of the recorded heads .* \(0 … 5\). Got head = 6"),
        ({"layer": 0}, r"This figure can show only one head. Got 6 heads \(0 … 5\). Pass head=0"),
        ({"layer": 0, "head": 0, "batch": 2}, r"recorded sequences \(0 … 1\). Got batch = 2"),
        (
            {"layer": 0, "head": 0, "queries": ["a"]},
            r"one label for each position \(queries = 7\). Got 1 labels",
        ),
        ({"layer": 0, "head": 0, "keys": words(7)}, r"\(keys = 11\). Got 7 labels"),
        ({"layer": 0, "head": 0, "keys": "a" * 11}, "keys must be labels, a list of strings"),
        ({"layer": 0, "head": 0, "keys": [1] * 11}, "keys must be labels, a list of strings"),
        ({"layer": 0, "head": 0, "scale": "cubic"}, "scale must be one of linear, log. Got scale = 'cubic'"),
        ({"layer": 0, "head": 0, "largest": 0}, "largest must be a finite number above 0. Got largest = 0"),
        ({"layer": 0, "head": 0, "size": 0}, "from 0.1 to 60. Got size = 0"),
    ],
)
def test_heat_maps_of_a_recording(seen, options, message):
    with pytest.raises((ArgumentError, ShapeError, DtypeError), match=message):
        figures.heatmap(seen, **options)


def test_calls_that_cannot_be_told_apart():
    kinds = [call_and_weights(kind=kind, queries=7, keys=7)[0] for kind in ("encoder", "decoder")]
    with pytest.raises(ArgumentError, match=r"kind is one of decoder, encoder. Pass kind='decoder'"):
        figures.heatmap(Recording("M", kinds), head=0)
    runs = [call_and_weights(run=run)[0] for run in (0, 1)]
    with pytest.raises(ArgumentError, match=r"run is one of 0, 1. Pass run=0"):
        figures.heatmap(Recording("M", runs), head=0)
    same = [call_and_weights()[0] for _ in range(2)]
    with pytest.raises(ArgumentError, match=r"layer, kind and run in common. Pass one of them: .*seen\[0\]"):
        figures.heatmap(Recording("M", same), head=0)
    with pytest.raises(ArgumentError, match=r"can show each layer only once. Got calls whose kind is one of"):
        figures.grid(Recording("M", kinds))


def test_statistics_have_no_weights(seen):
    with pytest.raises(RecordingError, match=r"only its statistics"):
        figures.heatmap(seen[0].summary(0), head=0)


def test_a_call_without_queries():
    call = DenseCall("empty", "encoder", 0, torch.zeros(1, 1, 0, 5))
    with pytest.raises(ShapeError, match=r"at least one query and one key. Got <encoder 'empty'"):
        figures.heatmap(call)


# ---- arrays --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (softmax(5), r"\(query, key\) or \(head, query, key\), and not empty. Got shape \(5,\)"),
        (softmax(1, 2, 3, 3), r"Got shape \(1, 2, 3, 3\). Choose one sequence"),
        (np.zeros((0, 3)), r"Got shape \(0, 3\)"),
        ("text", "Weights must be real numbers in an array, a tensor or lists of equal length. Got str"),
        ([[1.0], [1.0, 2.0]], "Weights must be real numbers .* Got list"),
        (np.zeros((2, 2), complex), "Got ndarray of complex128"),
    ],
)
def test_arrays_of_the_wrong_shape_or_kind(weights, message):
    with pytest.raises((ShapeError, DtypeError), match=message):
        figures.heatmap(weights)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("draw", [figures.heatmap, figures.grid, figures.lines, figures.distance])
def test_weights_that_are_no_numbers(draw, bad):
    weights = softmax(3, 5)
    weights[2, 4] = bad
    with pytest.raises(
        ArgumentError, match=rf"Weights must be finite numbers. Got {bad} at query 2, key 4. Check"
    ):
        draw(weights)


def test_a_recording_with_nan_names_the_head():
    q = torch.full((1, 1, 3, 2), torch.nan)
    call = ScoredCall("a", "encoder", 4, q, q, torch.zeros(1, 1, 3))
    with pytest.raises(ArgumentError, match=r"finite numbers \(layer 4, head 0\). Got nan at query 0, key 0"):
        figures.heatmap(call)


def test_heads_of_an_array():
    with pytest.raises(ArgumentError, match=r"one of the given heads \(0 … 2\). Got head = 3"):
        figures.lines(softmax(3, 5, 5), heads=[0, 3])
    with pytest.raises(ArgumentError, match=r"This figure can show only one head. Got 3 heads"):
        figures.heatmap(softmax(3, 5, 5))


def test_a_logarithm_of_negative_numbers():
    with pytest.raises(ArgumentError, match=r'numbers of 0 or more. Got -1. Use scale="linear"'):
        figures.heatmap([[-1.0, 1.0]], scale="log")


# ---- the others ----------------------------------------------------------------------------------


def test_grids(seen):
    with pytest.raises(ArgumentError, match=r"columns must be a whole number, 1 or more. Got columns = 0"):
        figures.grid(seen, layer=0, columns=0)
    with pytest.raises(ArgumentError, match=r"head must be one of the recorded heads"):
        figures.grid(seen, heads=[9])


def test_lines(seen):
    with pytest.raises(ArgumentError, match=r"least must be a number from 0 to 1. Got least = 2"):
        figures.lines(seen, layer=0, least=2)
    with pytest.raises(ArgumentError, match=r"query must be one of the rows \(0 … 6\). Got query = 7"):
        figures.lines(seen, layer=0, query=7)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (
            softmax(2, 3),
            {},
            r"weights of one query, \(key,\), at least one. Got shape \(2, 3\). Choose a row",
        ),
        ([], {}, r"Got shape \(0,\)"),
        ([0.5, np.nan], {}, "finite numbers. Got nan"),
        ([0.5, -np.inf], {}, "finite numbers. Got -inf"),
        ([0.5, 0.5], {"labels": ["a"]}, r"\(keys = 2\). Got 1 labels"),
        ([0.5, 0.5], {"values": [1.0]}, r"one for each weight \(keys = 2\). Got shape \(1,\)"),
        ([0.5, 0.5], {"values": np.zeros((2, 1, 1))}, r"Got shape \(2, 1, 1\)"),
        ([0.5, 0.5], {"most": 0}, "most must be a whole number, 1 or more. Got most = 0"),
    ],
)
def test_bars(given, options, message):
    with pytest.raises((ShapeError, ArgumentError), match=message):
        figures.bars(given, **options)


def test_bars_of_a_recording(seen):
    with pytest.raises(
        ArgumentError, match=r"Bars show one query, which must be given \(0 … 6\). Got none. Pass query=0"
    ):
        figures.bars(seen, layer=0, head=0)
    with pytest.raises(ArgumentError, match=r"Got query = -1"):
        figures.bars(seen, layer=0, head=0, query=-1)


def test_masks():
    with pytest.raises(MaskSyntaxError, match=r"No mask is called 'casual'. Did you mean causal"):
        figures.mask("casual", 5)
    with pytest.raises(MaskError, match=r"A mask must be a regard mask"):
        figures.mask(3, 5)
    with pytest.raises(ArgumentError, match=r"at least one query and one key. Got queries = 0, keys = 0"):
        figures.mask("causal", 0)
    with pytest.raises(ArgumentError, match=r"whole number from 0 to .* Got queries = -1"):
        figures.mask("causal", -1)
    padding = masks.padding(torch.ones(3, 5, dtype=torch.bool))
    with pytest.raises(MaskError, match=r"leading axes \(3, 1\). Got no index. Pass index=\(0, 0\)"):
        figures.mask(padding, 5)
    with pytest.raises(ArgumentError, match=r"leading axes \(3, 1\). Got index = \(3, 0\)"):
        figures.mask(padding, 5, index=(3, 0))
    with pytest.raises(DtypeError, match=r"queries must be labels, a list of strings"):
        figures.mask("causal", "text")


def test_geometry():
    with pytest.raises(ShapeError, match=r"same channels. Got query \(3,\), keys \(2, 4\)"):
        figures.geometry(np.ones(3), np.ones((2, 4)))
    with pytest.raises(ArgumentError, match=r"at most 40 keys, .* Got 41 keys"):
        figures.geometry(np.ones(3), np.ones((41, 3)))
    with pytest.raises(ArgumentError, match=r"finite numbers. Got NaN or infinity"):
        figures.geometry([np.nan], [[1.0]])
    with pytest.raises(ShapeError, match=r"\(keys = 2\). Got 1 labels"):
        figures.geometry(np.ones(3), np.ones((2, 3)), ["a"])


@pytest.mark.parametrize(
    ("lengths", "series", "message"),
    [
        ([1, 2], {}, "at least one series. Got neither operations nor bytes"),
        ([2, 1], {"bytes": {"a": [1, 2]}}, r"in ascending order. Got \[2, 1\]"),
        ([], {"bytes": {"a": []}}, "in ascending order"),
        ([1, 2], {"bytes": {"a": [1]}}, r"\(lengths = 2\). Got 'a' with 1"),
        ([1, 2], {"bytes": {"a": [0, 1]}}, "Costs must be above 0"),
        ([1, 2], {"bytes": {"a": [None, None]}}, "Costs must be above 0"),
    ],
)
def test_costs(lengths, series, message):
    with pytest.raises((ArgumentError, ShapeError), match=message):
        figures.cost(lengths, **series)


def test_saving(tmp_path):
    figure = figures.bars([1.0])
    with pytest.raises(ArgumentError, match=r"saved as .png, .svg or .pdf. Got x.jpg. Choose one"):
        figures.save(figure, tmp_path / "x.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"file/x.png must be writable"):
        figures.save(figure, tmp_path / "file" / "x.png")
    assert figures.save(figure, tmp_path / "new" / "x.png").is_file()
