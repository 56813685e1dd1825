"""explain(): the steps are those of the reference, and a real model's row is the model's own."""

import json
import re

import numpy as np
import pytest
import torch

import regard
from recording.families import FAMILIES
from regard import biases, masks
from regard.errors import ArgumentError, DataError, MaskSyntaxError, RecordingError, TextError
from regard.kernels.reference import attention as reference
from regard.lessons import model_explanation
from regard.lessons.facts import TEXTS
from regard.lessons.model_explanation import SHOWN, explain_recording
from regard.lessons.sentence_explanation import PROJECTIONS, attend_sentence
from regard.masks.extent import Extent
from regard.recording import DenseCall, Recording, ScoredCall, load_reader
from regard.recording.attention_row import row_of
from regard.views.explanation import Explanation


def values(grid):
    return np.array(grid.values, dtype=float)


# ---- small vectors -------------------------------------------------------------------------------


def test_every_step_has_formula_shape_and_the_numbers_of_the_reference():
    found = regard.explain("I love AI", mask="causal", heads=2, width=6, seed=7)
    trace = attend_sentence("I love AI", mask=masks.causal(), heads=2, width=6, seed=7).trace
    names = [step.name for step in found.steps]
    assert names == ["x", "w_q", "queries", "w_k", "keys", "w_v", "values", "q", "k", "v", "dots", "scores",
                     "masked", "lse", "weights", "heads", "joined", "w_o", "output"]  # fmt: skip
    for step in found.steps:
        assert step.formula
        assert step.says
        assert step.shape == trace[step.name].shape
        stack = trace[step.name]
        stack = stack[..., None] if step.name == "lse" else stack
        stack = stack if stack.ndim == 3 else stack[None]
        assert len(step.grids) == len(stack)
        for grid, wanted in zip(step.grids, stack):
            assert np.array_equal(values(grid), wanted)
            of_words = step.name not in PROJECTIONS
            assert grid.rows == (("I", "love", "AI") if of_words else tuple("012345"))
    assert found["weights"].grids[1].columns == ("I", "love", "AI")
    assert found["scores"].formula == "s = q kᵀ / √3"
    assert "averaged over the heads" in found.looks_title


def test_one_head_is_not_cut():
    names = [step.name for step in regard.explain("I love AI").steps]
    assert not set(names) & {"q", "k", "v", "joined", "masked"}
    assert regard.explain("I love AI")["scores"].formula == "s = q kᵀ / √4"


def test_the_three_strongest_are_named_and_nothing_is_said_so():
    found = regard.explain("a b c d e", mask="causal & ~window(0, 0)")
    assert [len(look.strongest) for look in found.looks] == [0, 1, 2, 3, 3]
    for look in found.looks:
        shares = [weight for _, weight in look.strongest]
        assert shares == sorted(shares, reverse=True)
    assert "**a** → sees nothing" in str(found)
    assert "什么也看不见" in str(regard.explain("a b", mask="causal & ~window(0, 0)", lang="zh"))


def test_a_table_of_vectors():
    found = regard.explain("我 喜欢 学习 AI 技术", vectors="example")
    assert [step.name for step in found.steps] == ["x", "dots", "scores", "lse", "weights", "mixed"]
    x = values(found["x"].grids[0])
    wanted = reference(x, x, x)
    assert np.allclose(values(found["weights"].grids[0]), wanted["weights"])
    assert np.allclose(values(found["mixed"].grids[0]), wanted.output)
    own = regard.explain("b a", vectors={"a": (1.0, 2.0), "b": (0.5, 0.0)}, mask=masks.causal())
    assert values(own["weights"].grids[0])[0].tolist() == [1.0, 0.0]


def test_a_table_in_a_file(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"a": [1, 2], "b": [3, 4]}', encoding="utf-8")
    assert "mine.json" in regard.explain("a b a", vectors=path).about[0]
    with pytest.raises(TextError, match="Got unknown: c, d"):
        regard.explain("a c d", vectors=path)
    with pytest.raises(DataError, match="nowhere"):
        regard.explain("a", vectors=tmp_path / "nowhere.json")


def test_what_does_not_go_together():
    with pytest.raises(
        ArgumentError, match=r"A model has its own vectors, heads and masks. Got mask, heads. O"
    ):
        regard.explain("a", layer=0, mask="causal", heads=2)
    with pytest.raises(ArgumentError, match=r"A table has its own vectors, and one head. Got width. Omit"):
        regard.explain("a", vectors="example", width=8)
    with pytest.raises(ArgumentError, match="lang must be one of en, zh"):
        regard.explain("a", lang="fr")
    with pytest.raises(ArgumentError, match="at least one word"):
        regard.explain(" ")
    with pytest.raises(MaskSyntaxError, match="widow"):
        regard.explain("a", mask="widow(1)")


# ---- a row of a model ----------------------------------------------------------------------------


def recorded(*, heads=6, key_heads=2, queries=11, keys=17, channel=5, dtype=torch.float32, **options):
    """A recording of one call, every axis another size, with the lse of the reference."""
    q, k, v = (
        torch.randn(1, number, length, width, dtype=torch.float64).to(dtype)
        for number, length, width in (
            (heads, queries, channel),
            (key_heads, keys, channel),
            (key_heads, keys, 7),
        )
    )
    mask = options.get("mask")
    bias = options.get("bias")
    dense = None
    if bias is not None:
        at = torch.arange(keys - queries, keys), torch.arange(keys)
        dense = bias.tile(bias.tables, *at, Extent(queries, keys))[0].double().numpy()
    trace = reference(
        q[0].double().numpy(), k[0].double().numpy(), v[0].double().numpy(),
        mask=mask, bias=dense, scale=options.get("scale", channel**-0.5),
        softcap=options.get("softcap"),
        sinks=None if options.get("sinks") is None else options["sinks"].double().numpy(),
    )  # fmt: skip
    lse = torch.from_numpy(trace["lse"])[None].to(torch.float32)
    call = ScoredCall("layer", "cross", 3, q, k, lse, v, **{"scale": channel**-0.5, **options})
    return Recording("Model", [call]), trace


@pytest.mark.parametrize("query", [2, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_row_is_the_row_of_the_reference(query, dtype):
    seen, trace = recorded(
        dtype=dtype, mask=masks.window(8, 0), bias=biases.alibi(6), softcap=3.0, scale=0.37,
        sinks=torch.tensor([0.1, -0.4, 0.7, 1.1, 0.0, 2.0]),
    )  # fmt: skip
    found = explain_recording(seen, head=4, token=query)
    names = [step.name for step in found.steps]
    assert names == ["q", "k", "v", "dots", "scores", "capped", "biased", "masked", "lse", "weights",
                     "weighted", "output"]  # fmt: skip
    wanted = trace["weights"][4, query]
    grid = found["weights"].grids[0]
    shown = dict(zip(grid.rows, (row[0] for row in grid.values)))
    order = [int(re.search(r"\((\d+)\)", name)[1]) for name in grid.rows if "(" in name]
    assert order == [int(key) for key in np.argsort(-wanted, kind="stable")[: len(order)]]
    assert len(order) == 9  # the window sees no more
    assert shown["8 hidden"] == 0.0
    assert np.allclose([shown[name] for name in grid.rows[:9]], wanted[order], atol=1e-12)
    assert np.isclose(sum(shown.values()), 1.0)  # the sink takes its share
    assert np.allclose(values(found["output"].grids[0])[0], trace.output[4, query], atol=1e-12)
    assert found["scores"].formula == "s = q·k · 0.37"
    assert found["capped"].formula == "s = 3 · tanh(s / 3)"
    assert dict(zip(found["masked"].grids[0].rows, found["masked"].grids[0].values))["8 hidden"] == (-np.inf,)
    assert np.allclose(found["lse"].grids[0].values[-1], trace["lse"][4, query])
    assert found["k"].shape == (17, 5)
    assert found["v"].shape == (17, 7)


def test_many_keys_are_summed():
    seen, trace = recorded(queries=3, keys=41)
    found = explain_recording(seen, head=1, token=2)
    weights, weighted = found["weights"].grids[0], found["weighted"].grids[0]
    assert weights.rows[SHOWN] == f"{41 - SHOWN} others"
    wanted = np.sort(trace["weights"][1, 2])[::-1]
    assert np.isclose(weights.values[SHOWN][0], wanted[SHOWN:].sum())
    assert np.isclose(sum(row[0] for row in weights.values), 1)
    assert np.allclose(values(weighted).sum(axis=0), trace.output[1, 2])
    assert found["dots"].grids[0].values[SHOWN] == (None,)


def test_one_other_key_is_shown_itself():
    seen, _ = recorded(queries=3, keys=SHOWN + 1)
    rows = explain_recording(seen)["weights"].grids[0].rows
    assert len(rows) == SHOWN + 1
    assert not any("others" in name for name in rows)


def test_a_query_that_sees_nothing():
    seen, _ = recorded(mask=masks.nothing())
    found = explain_recording(seen)
    assert not values(found["output"].grids[0]).any()
    assert found["weights"].grids[0].rows == ("17 hidden",)
    assert found["lse"].grids[0].values == ((-np.inf,),)
    assert "NaN" not in found.to_json()
    assert json.loads(found.to_json())
    assert "sees nothing" in str(found)


def test_what_the_row_says_of_the_model_would_notice_a_wrong_lse():
    seen, _ = recorded()
    call = seen[0]
    assert np.abs(row_of(call, 0, 1).weights.sum() - 1) < 1e-5
    wrong = Recording(
        "Model", [ScoredCall("l", "cross", 3, call.q, call.k, call.lse + 1, call.v, scale=call.scale)]
    )
    said = explain_recording(wrong, token=1).about[-1]
    assert float(said.split()[-1]) > 0.01
    assert float(explain_recording(seen, token=1).about[-1].split()[-1]) < 1e-6


def test_tokens_by_text_and_position():
    seen, _ = recorded(queries=5, keys=5)
    call = seen[0]
    seen = Recording(
        "Model", [ScoredCall("l", "decoder", 0, call.q, call.k, call.lse, call.v, scale=call.scale)]
    )
    seen.tokens = ["<s>", "▁the", "▁cat", "▁the", "7"]
    assert explain_recording(seen, token="cat").about[1].startswith("query: ‘cat’, at position 2 of 5")
    assert "position 2 " in explain_recording(seen, token="▁cat").about[1]
    assert "position 4 " in explain_recording(seen, token=-1).about[1]
    assert "position 2 " in explain_recording(seen).about[1]
    with pytest.raises(
        ArgumentError,
        match=r"match exactly one token. Got 'the', which is at positions 1, 3. Pass its",
    ):
        explain_recording(seen, token="the")
    with pytest.raises(
        ArgumentError, match=r"text of one of the tokens \(<s> the cat the 7\). Got 'dog'. Choose"
    ):
        explain_recording(seen, token="dog")
    with pytest.raises(
        ArgumentError, match=r"position \(0 … 4\) or the text of a token. Got 7. Count from 0"
    ):
        explain_recording(seen, token="7")


def test_which_call():
    seen, _ = recorded()
    with pytest.raises(ArgumentError, match=r"one of the recorded kinds \(cross\). Got kind = 'encoder'"):
        explain_recording(seen, kind="encoder")
    with pytest.raises(ArgumentError, match=r"one of the recorded layers \(3\). Got layer = 0. Choose"):
        explain_recording(seen, layer=0)
    with pytest.raises(ArgumentError, match="head must be one of the recorded heads"):
        explain_recording(seen, head=6)
    with pytest.raises(
        RecordingError, match="An explanation needs a recording with at least one attention call"
    ):
        explain_recording(Recording("Model"))


def test_rows_refuse_what_they_cannot_have():
    seen, _ = recorded()
    call = seen[0]
    with pytest.raises(RecordingError, match=r"Q, K and V of l. Got a recording without them. Record with"):
        row_of(ScoredCall("l", "cross", 3, call.q, call.k, call.lse, scale=1.0), 0, 0)
    with pytest.raises(RecordingError, match="Got its weights alone"):
        row_of(DenseCall("l", "cross", 3, torch.ones(1, 1, 2, 2)), 0, 0)
    with pytest.raises(ArgumentError, match=r"A query must be a position \(0 … 10\). Got 11. Count from 0"):
        row_of(call, 0, 11)


# ---- the embedded translator, and models in folders ----------------------------------------------


def test_the_embedded_translator_by_default():
    found = regard.explain("The cat sat on the mat.", token=1)
    assert "the built-in translator: cross-attention" in found.about[0]
    assert "writes what follows" in found.about[2]
    assert float(found.about[-1].split()[-1]) < 1e-5
    assert found == regard.explain("The cat sat on the mat.", model="translator", token=1)
    encoder = regard.explain(
        "The cat sat on the mat.", kind="encoder", layer=1, head=0, token="cat", lang="zh"
    )
    assert "内置翻译模型：编码器自注意力，第 1 层，第 0 头" in encoder.about[0]


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart"])
def test_a_model_in_a_folder(model_folders, name):
    found = regard.explain("the cat sat on the mat", model=model_folders[name], layer=1, head=1)
    assert float(found.about[-1].split()[-1]) < 1e-5
    assert sum(row[0] for row in found["weights"].grids[0].values) == pytest.approx(1)


READS_THE_SUM = {
    "bert": "encoder.layer.1.attention.output.LayerNorm",
    "gpt2": "transformer.h.1.ln_2",
    "bart": "model.decoder.layers.1.encoder_attn_layer_norm",
}
"""The norm behind the attention of layer 1, which reads the residual stream."""


@pytest.mark.parametrize("name", READS_THE_SUM)
def test_a_model_is_explained_to_the_output_of_the_layer(model_folders, name):
    text, pair = "the cat sat on the mat", "the dog sat on" if name == "bart" else None
    found = regard.explain(text, model=model_folders[name], pair=pair, layer=1, head=1, token=3)
    assert [step.name for step in found.steps][-3:] == ["joined", "projected", "residual"]
    reader, read = load_reader(model_folders[name]), []
    norm = reader.model.get_submodule(READS_THE_SUM[name])
    norm.register_forward_pre_hook(lambda module, args: read.append(args[0][0, 3].double().numpy()))
    with torch.no_grad():
        reader.model(**reader.inputs(text, pair=pair))
    assert np.allclose(values(found["residual"].grids[0])[-1], read[-1], atol=1e-5)
    joined, lines = values(found["joined"].grids[0]), values(found["projected"].grids[0])
    assert joined.shape == (3, 4)
    assert np.allclose(joined[1], values(found["output"].grids[0])[0], atol=1e-6)
    assert lines.shape == (3, 12)  # this head, all heads, with the bias


def test_blocks_that_add_something_else_end_before_the_residual():
    """GPT-NeoX adds its feed-forward block in the same sum, Gemma 2 has a norm between: neither is x + y."""
    for family in ("gpt_neox", "gemma2"):
        model, ids = FAMILIES[family].build(), torch.tensor([[3, 4, 5, 6]])
        with torch.no_grad(), regard.watch(model, projections=True) as seen:
            model(ids)
        found = explain_recording(seen)
        assert [step.name for step in found.steps][-2:] == ["joined", "projected"], family
        assert found.about[-1].startswith("The last step, the residual, is missing")


def test_a_loaded_recording_needs_no_model(tmp_path):
    model = regard.nn.LanguageModel(50, width=16, heads=2, layers=2).eval()
    with torch.no_grad(), regard.watch(model, projections=True) as seen:
        model(torch.tensor([[3, 1, 4, 1, 5]]))
    seen.save(tmp_path / "seen.safetensors")
    again = regard.load(tmp_path / "seen.safetensors")
    found = explain_recording(again, layer=1, head=1, token=2)
    assert found.steps == explain_recording(seen, layer=1, head=1, token=2).steps
    assert [step.name for step in found.steps][-3:] == ["joined", "projected", "residual"]
    whole = regard.heads.value_weighted(again[1])
    assert torch.equal(whole.norms, regard.heads.value_weighted(seen[1], model).norms)
    wanted = (again[1].output()[0, :, 2].double()[:, None] @ again[1].projections.double()).sum((0, 1))
    assert np.allclose(values(found["projected"].grids[0])[1], wanted.numpy(), atol=1e-6)
    after = again[1].layer_output(2)[0].double().numpy()
    assert np.allclose(values(found["residual"].grids[0])[-1], after, atol=1e-6)


@pytest.mark.parametrize("heads", [[1, 3], [0, 1]])
def test_a_recording_of_some_heads_ends_with_the_head(heads):
    model = regard.nn.LanguageModel(50, width=16, heads=4, layers=1).eval()
    with torch.no_grad(), regard.watch(model, projections=True, heads=heads) as seen:
        model(torch.tensor([[3, 1, 4]]))
    assert explain_recording(seen, head=heads[1]).steps[-1].name == "output"


# ---- texts ---------------------------------------------------------------------------------------


def test_every_title_is_used():
    used = set()
    small = regard.explain("a b", heads=2, mask="causal")
    seen, _ = recorded(mask=masks.causal(), bias=biases.alibi(6), softcap=2.0, sinks=torch.zeros(6))
    row = explain_recording(seen)
    words = regard.explain("AI", vectors="example")
    whole = regard.explain("The cat sat on the mat.", model="translator")
    for found in (small, row, words, whole):
        used |= {step.title for step in found.steps}
    titles = {
        text
        for key, text in TEXTS.table("en").items()
        if key.startswith("explain.") and key.endswith(".title")
    }
    assert titles <= used


def test_a_chinese_explanation_has_no_english_sentence():
    seen, _ = recorded(mask=masks.causal(), bias=biases.alibi(6), softcap=2.0, sinks=torch.zeros(6))
    for found in (
        regard.explain("我 喜欢 AI", heads=2, mask="causal", lang="zh"),
        regard.explain("我 喜欢", vectors="example", lang="zh"),
        explain_recording(seen, lang="zh", name="模型"),
        regard.explain("a cat.", model="translator", kind="decoder", lang="zh"),
    ):
        assert isinstance(found, Explanation)
        said = [found.looks_title, *found.about]
        for step in found.steps:
            said += [step.title, step.says, *(name for grid in step.grids for name in grid.rows)]
        for sentence in said:
            bare = re.sub(
                r"\[START\]|softmax|float64|word_vectors\.json|causal\(\)|lse|W_o|AI|\b[a-z]\b",
                "",
                sentence,
            )
            assert not re.search(r"[A-Za-z]{2}", bare), sentence


def test_of_a_long_text_only_the_chosen_row_is_told():
    seen, trace = recorded(queries=71, keys=73, mask=masks.causal())
    found = explain_recording(seen, head=2, token=13)
    assert [look.word for look in found.looks] == ["13"]
    assert found.looks[0].strongest[0][1] == pytest.approx(trace["weights"][2, 13].max(), abs=1e-6)
    assert "57 hidden" in found["weights"].grids[0].rows


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("./my-bert", "./my-bert"),
        ("bert-base-uncased", "bert-base-uncased"),
        ("/models/bert", "/models/bert"),
        ("/home/someone/models/minilm/model", "…/minilm/model"),
    ],
)
def test_a_long_path_is_named_by_its_end(model, shown):
    assert model_explanation._short(model) == shown
