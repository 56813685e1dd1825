"""Shares of words and heads in an answer: what they sum to, what they equal, and what is refused."""

import pytest
import torch

import regard
from recording.dense_gradients import dense_transformers
from recording.families import FAMILIES, inputs_of
from regard.errors import ArgumentError, RecordingError
from regard.heads import answer_shares as module
from regard.heads.answer_shares import METHODS, Question, answer_shares
from regard.heads.head_importance import gate_gradients, key_importance

IDS = torch.randint(3, 60, (1, 11), generator=torch.Generator().manual_seed(2))


def llama():
    return FAMILIES["llama"].build()


def bart():
    """A model and one text, of 11 tokens, with 7 tokens of the decoder."""
    inputs = {name: x[:1] for name, x in inputs_of(FAMILIES["bart"], "none").items()}
    return FAMILIES["bart"].build(), inputs


@pytest.mark.parametrize("method", METHODS)
def test_shares_of_the_most_likely_token(method):
    model = llama()
    found = answer_shares(model, IDS, method=method)
    answer = found.answers[0]
    with torch.no_grad():
        logits = model(IDS).logits[0, -1]
    assert answer.target == int(logits.argmax())
    assert answer.logit == pytest.approx(float(logits.max()), rel=1e-5)
    assert answer.probability == pytest.approx(float(logits.softmax(-1).max()), rel=1e-4)
    assert float(answer.own.abs().sum()) == pytest.approx(1)
    assert sum(abs(share) for share in found.heads.column("share")) == pytest.approx(1)
    assert len(found.heads) == sum(call.heads for call in found.recording)
    assert (answer.own >= 0).all() == (method == "relevance")
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


def test_words_and_heads_are_two_sums_of_one_table():
    """Σ over keys of what they gave = Σ over heads of their gates."""
    found = answer_shares(llama(), IDS, method="gradient")
    by_key = sum(key_importance(call.scored()).sum() for call in found.recording)
    by_head = sum(gate_gradients(call.scored()).sum() for call in found.recording)
    assert float(by_key) == pytest.approx(float(by_head), rel=1e-4)


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_the_importance_of_keys_is_that_of_dense_weights(family, monkeypatch):
    monkeypatch.setattr("regard.heads.head_importance.MAX_SCORES", 30)  # several pieces
    model, inputs = FAMILIES[family].build(), inputs_of(FAMILIES[family], "right")
    with dense_transformers(model) as dense:
        model(**inputs)[0][1].square().sum().backward()
    with regard.watch(model, gradients=True) as seen:
        model(**inputs)[0][1].square().sum().backward()
    for call, weights in zip(seen, dense.weights, strict=True):
        wanted = (weights * weights.grad)[1].sum((0, 1)).detach().double()
        torch.testing.assert_close(key_importance(call, 1), wanted, rtol=1e-4, atol=1e-4)


def test_relevance_leaves_out_the_position_itself():
    model = llama()
    found = answer_shares(model, IDS, [Question(row=4, target=7)])
    with regard.watch(model, gradients=True) as seen:
        model(IDS).logits[0, 4, 7].backward()
    wanted = regard.relevance(seen, row=4).own
    wanted[4] -= 1
    torch.testing.assert_close(found.answers[0].own, wanted / wanted.sum(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_against_another(method):
    model = llama()
    found = answer_shares(model, {"input_ids": IDS}, [Question(5, 7, 9)], method=method).answers[0]
    with torch.no_grad():
        logits = model(IDS).logits[0, 5]
    assert found.logit == pytest.approx(float(logits[7] - logits[9]), rel=1e-4)
    assert not found.own[6:].any()


def test_attribution_is_that_of_regard_attribution():
    model = llama()
    found, parts = (
        answer_shares(model, IDS, [Question(3, 7)], method="attribution"),
        regard.attribution(model, IDS, 7, position=3),
    )
    torch.testing.assert_close(found.answers[0].own, parts.by_token() / parts.by_token().abs().sum())
    assert found.heads.column("value") == pytest.approx(parts.by_head().flatten().tolist())


@pytest.mark.parametrize("method", ["relevance", "gradient"])
def test_several_answers_of_an_encoder_decoder(method):
    model, inputs = bart()
    seen = []
    questions = [Question(row, 5 + row) for row in range(3)]
    found = answer_shares(model, inputs, questions, method=method, progress=lambda *at: seen.append(at))
    assert [(answer.row, answer.target) for answer in found.answers] == [(0, 5), (1, 6), (2, 7)]
    for answer in found.answers:
        assert answer.source is not None
        assert float(answer.own.abs().sum() + answer.source.abs().sum()) == pytest.approx(1)
    alone = answer_shares(model, inputs, questions[1:2], method=method).answers[0]
    torch.testing.assert_close(found.answers[1].source, alone.source)
    assert seen == [(1, 4), (2, 4), (3, 4)]
    with regard.watch(model, gradients=True) as both:
        logits = model(**inputs).logits[0]
        (logits[0, 5] + logits[1, 6] + logits[2, 7]).backward()
    torch.testing.assert_close(found.recording[2].gradient(1), both[2].gradient(1))
    means = [sum(row) / 3 for row in zip(*(answer.heads.column("share") for answer in found.answers))]
    assert found.heads.column("share") == pytest.approx(means)
    table = found.tokens(["a", "b", "c"], list("1234567"), list("abcdefghijk"))
    assert len(table) == 3 * (7 + 11)
    assert table[0]["side"] == "source"


@pytest.mark.parametrize("family", ["llama", "gpt2", "bart"])
def test_a_long_text_is_computed_twice_and_the_same(family, monkeypatch):
    inputs = {name: x[:1] for name, x in inputs_of(FAMILIES[family], "none").items()}
    plain = answer_shares(FAMILIES[family].build(), inputs, method="gradient")
    monkeypatch.setattr(module, "LONG", 4)
    model = FAMILIES[family].build()
    again = answer_shares(model, inputs, method="gradient")
    torch.testing.assert_close(again.answers[0].own, plain.answers[0].own)
    assert len(again.recording) == len(plain.recording)
    assert not any("forward" in vars(part) for part in model.modules())


def test_a_class():
    import transformers as hf

    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=61, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=8,
        num_labels=3,
    )  # fmt: skip
    model = hf.BertForSequenceClassification(config).eval()
    found = answer_shares(model, {"input_ids": IDS}).answers[0]
    assert found.row == 0
    assert found.target == int(model(IDS).logits.argmax())
    with pytest.raises(ArgumentError, match=r"answers that the model can give \(0 … 2\). Got target = 3"):
        answer_shares(model, {"input_ids": IDS}, [Question(target=3)])


@pytest.mark.parametrize(
    ("build", "inputs", "options", "error", "says"),
    [
        (llama, IDS, {"method": "magic"}, ArgumentError, "method"),
        (llama, IDS.repeat(2, 1), {}, ArgumentError, "needs exactly one text. Got a batch of 2"),
        (llama, IDS, {"questions": []}, ArgumentError, "at least one question"),
        (
            llama,
            IDS,
            {"questions": [Question(11)]},
            ArgumentError,
            r"row must be a position in the text \(0 … 10\)",
        ),
        (llama, IDS, {"questions": [Question(target=61)]}, ArgumentError, "Got target = 61"),
        (llama, IDS, {"questions": [Question(against=-1)]}, ArgumentError, "Got against = -1"),
        (FAMILIES["bert"].build, IDS, {}, RecordingError, "Got BertModel, which has no language head and no"),
        (FAMILIES["gemma2"].build, IDS, {"method": "attribution"}, RecordingError, "Got Gemma2ForCausalLM"),
    ],
)
def test_bad_input(build, inputs, options, error, says):
    with pytest.raises(error, match=says):
        answer_shares(build(), inputs, **options)


def test_a_model_that_gives_no_number():
    model = llama()
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)
    with pytest.raises(RecordingError, match="NaN or infinity"):
        answer_shares(model, IDS)
