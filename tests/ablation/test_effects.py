"""Effects and sweeps against single edits by hand, metrics against their definitions, and what is refused."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from recording.families import FAMILIES, inputs_of
from regard import edits, masks, metrics
from regard.ablation.layer_cache import LayerCache
from regard.ablation.measured_effects import Experiment
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError
from small_models import tokenizer


def built(name, side="none"):
    return FAMILIES[name].build(), inputs_of(FAMILIES[name], side)


def one(inputs):
    """The first sequence alone."""
    return {name: tensor[:1] for name, tensor in inputs.items()}


def by_hand(model, inputs, edit):
    with torch.no_grad(), regard.edit(model, edit):
        return model(**inputs)


# ---- metrics -------------------------------------------------------------------------------------


def test_metrics_are_what_they_are_called():
    model, inputs = built("llama", "right")
    tried = [edits.remove(layers=1, heads=2), edits.scale(0.5, layers=0)]
    with torch.no_grad():
        before = model(**inputs).logits
    last = torch.tensor([10, 7])  # the second sequence ends with three tokens of padding
    rows = torch.arange(2)
    labels = torch.where(inputs["attention_mask"] > 0, inputs["input_ids"], -100)

    def of(logits):
        each = F.cross_entropy(logits[:, :-1].mT, labels[:, 1:], reduction="none")
        counts = labels[:, 1:] >= 0
        end = logits[rows, last]
        return {
            metrics.loss: ((each * counts).sum(1) / counts.sum(1)).mean(),
            metrics.logit(5): end[:, 5].mean(),
            metrics.difference(5, 7): (end[:, 5] - end[:, 7]).mean(),
            metrics.probability(5): end.softmax(-1)[:, 5].mean(),
            metrics.logit(5, position=3): logits[:, 3, 5].mean(),
        }

    for metric, wanted in of(before).items():
        found = regard.effects(model, inputs, tried, metric)
        assert found.columns == ("edit", "before", "after", "difference", "kl")
        assert found.column("before") == pytest.approx([wanted.item()] * 2, rel=1e-4, abs=1e-6)
        for edit, row in zip(tried, found):
            after = of(by_hand(model, inputs, edit).logits)[metric].item()
            assert row["edit"] == repr(edit)
            assert row["after"] == pytest.approx(after, rel=1e-4, abs=1e-6)
            assert row["difference"] == pytest.approx(after - wanted.item(), rel=1e-3, abs=1e-5)


def test_kl_is_that_of_the_changed_distribution():
    model, inputs = built("gpt2")
    edit = edits.remove(layers=0)
    with torch.no_grad():
        before = model(**inputs).logits.log_softmax(-1)
    after = by_hand(model, inputs, edit).logits.log_softmax(-1)
    each = (before.exp() * (before - after)).sum(-1)
    (row,) = regard.effects(model, inputs, edit, metrics.kl)
    assert row["before"] == pytest.approx(0, abs=1e-6)
    assert row["after"] == row["kl"] == pytest.approx(each.mean().item(), rel=1e-3)
    (row,) = regard.effects(model, inputs, edit, metrics.logit(3))
    assert row["kl"] == pytest.approx(each[:, -1].mean().item(), rel=1e-3)


def test_labels_choose_what_the_loss_counts():
    model, inputs = built("gpt2")
    labels = inputs["input_ids"].clone()
    labels[:, :6] = -100
    with torch.no_grad():
        logits = model(input_ids=inputs["input_ids"]).logits
    wanted = F.cross_entropy(logits[:, 5:-1].flatten(0, 1), inputs["input_ids"][:, 6:].flatten())
    found = regard.effects(model, {**inputs, "labels": labels}, edits.remove(layers=1), metrics.loss)
    assert found[0]["before"] == pytest.approx(wanted.item(), rel=1e-5)


def test_the_loss_of_an_encoder_decoder_is_on_its_own_side():
    model, inputs = built("bart")
    labels = torch.randint(3, 61, (2, 7))
    with torch.no_grad():
        wanted = model(**inputs, labels=labels).loss
    found = regard.effects(model, {**inputs, "labels": labels}, edits.remove(kind="cross"), metrics.loss)
    assert found[0]["before"] == pytest.approx(wanted.item(), rel=1e-5)
    ids = inputs["decoder_input_ids"]
    with torch.no_grad():
        logits = model(**inputs).logits
    wanted = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert regard.effects(model, inputs, edits.remove(), metrics.loss)[0]["before"] == pytest.approx(
        wanted.item(), rel=1e-5
    )


def test_encoders_are_compared_by_the_cosine_of_their_output():
    model, inputs = built("bert")
    edit = edits.remove(layers=1)
    with torch.no_grad():
        before = model(**inputs).last_hidden_state
    after = by_hand(model, inputs, edit).last_hidden_state
    (row,) = regard.effects(model, inputs, [edit], metrics.cosine)
    assert row["before"] == pytest.approx(1.0)
    assert row["after"] == pytest.approx(F.cosine_similarity(before, after, dim=-1).mean().item(), rel=1e-5)
    assert row["kl"] is None


def test_any_function_of_the_output_will_do():
    model, inputs = built("gpt2")

    def largest(output):
        return output.logits[:, -1].amax()

    tried = [edits.remove(layers=0, heads=head) for head in range(4)]
    found = regard.effects(model, inputs, tried, largest)
    for edit, row in zip(tried, found):
        assert row["after"] == pytest.approx(largest(by_hand(model, inputs, edit)).item(), rel=1e-5)
    # The loss that a model returns is one number for all sequences, so its edits run one by one.
    with_labels = {**inputs, "labels": inputs["input_ids"]}
    found = regard.effects(model, with_labels, tried, lambda output: output.loss)
    wanted = [by_hand(model, with_labels, edit).loss.item() for edit in tried]
    assert found.column("after") == pytest.approx(wanted, rel=1e-5)


def test_models_of_torch_and_of_regard():
    model = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 2, enable_nested_tensor=False
    )
    x = torch.randn(1, 5, 16)
    found = regard.ablate(model, x, metrics.cosine)
    assert found.grid().shape == (2, 2)
    assert model.training  # as it was
    assert found.table.column("kl") == [None] * 4  # an encoder's output is not logits
    text = regard.nn.Seq2Seq(20, 30, width=16, heads=2, hidden=8, encoder_layers=1, decoder_layers=2)
    pair = (torch.arange(3, 9)[None], torch.arange(3, 8)[None])
    found = regard.ablate(text, pair, metrics.loss)
    assert found.kinds == ("encoder", "decoder", "cross")
    assert found.grid("cross").shape == (2, 2)
    assert all(value > 0 for value in found.table.column("kl"))


# ---- sweeps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert", "bart", "t5", "albert"])
@pytest.mark.parametrize("by", ["head", "layer"])
def test_a_sweep_is_one_edit_after_another(name, by):
    model, inputs = built(name)
    metric = metrics.cosine if name in ("bert", "albert") else metrics.loss
    found = regard.ablate(model, inputs, metric, by=by)
    tried = [
        edits.remove(layers=row["layer"], heads=row.get("head"), kind=row["kind"]) for row in found.table
    ]
    alone = regard.effects(model, inputs, tried, metric, together=1)
    assert found.table.column("after") == pytest.approx(alone.column("after"), rel=1e-4, abs=1e-5)
    assert found.complete
    assert len(found.table) == len({tuple(row.values()) for row in found.table})


def test_layers_below_an_edit_are_not_computed_again():
    model, inputs = built("llama")
    runs = []
    for layer in model.model.layers:
        layer.mlp.register_forward_hook(lambda *_, layer=layer: runs.append(layer))
    regard.ablate(model, one(inputs), metrics.loss, together=4)
    first, second = model.model.layers
    assert runs.count(first) == 2  # once plain, once for its own four heads
    assert runs.count(second) == 3
    assert "forward" not in vars(first)  # restored


def test_blocks_that_run_twice_are_not_skipped():
    model, inputs = built("albert")  # all layers are one block
    cache = LayerCache(model)
    with torch.no_grad():
        experiment = Experiment.begin(model, one(inputs), metrics.cosine, cache.filled())
        assert not cache.usable(experiment.inputs, experiment.plain)


def test_an_edit_of_ones_own_and_a_part_of_the_model():
    model, inputs = built("llama")
    found = regard.ablate(model, inputs, metrics.loss, edit=edits.scale(0.5), layers=1, heads=[0, 3])
    assert [(row["layer"], row["head"]) for row in found.table] == [(1, 0), (1, 3)]
    wanted = regard.effects(model, inputs, [edits.scale(0.5, layers=1, heads=3)], metrics.loss)
    assert found.table[1]["after"] == pytest.approx(wanted[0]["after"], rel=1e-4)


def test_by_key_and_by_edge():
    model, inputs = built("gpt2")
    inputs = one(inputs)
    keys = regard.ablate(model, inputs, metrics.loss, by="key")
    assert keys.grid().shape == (1, 11)
    wanted = by_hand(model, inputs, edits.block(masks.span(4, 5)))
    ids = inputs["input_ids"]
    loss = F.cross_entropy(wanted.logits[0, :-1], ids[0, 1:]).item()
    assert keys.table[4]["after"] == pytest.approx(loss, rel=1e-4)
    edges = regard.ablate(model, inputs, metrics.logit(5), by="edge", rows=10)
    assert len(edges.table) == 11
    grid = edges.grid()
    assert np.isnan(grid[:10]).all()
    assert np.isfinite(grid[10]).all()
    wanted = by_hand(model, inputs, edits.block(masks.span(3, 4), rows=10)).logits[0, -1, 5].item()
    assert edges.table[3]["after"] == pytest.approx(wanted, rel=1e-4)
    everything = regard.ablate(model, inputs, metrics.logit(5), by="edge")
    assert len(everything.table) == 66  # what is not seen is not tried


def test_progress_and_stopping():
    model, inputs = built("gpt2")
    said = []
    found = regard.ablate(
        model,
        one(inputs),
        metrics.loss,
        together=3,
        progress=lambda *now: said.append(now),
        stop=lambda: len(said) > 1,
    )
    assert said == [(3, 8), (6, 8)]
    assert len(found.table) == 6
    assert not found.complete
    assert "stopped" in repr(found)
    whole = regard.ablate(model, one(inputs), metrics.loss, together=3)
    assert whole.complete
    assert whole.table.column("after")[:6] == pytest.approx(found.table.column("after"))


def test_the_strongest_come_first():
    model, inputs = built("gpt2")
    found = regard.ablate(model, inputs, metrics.loss)
    sizes = [abs(row["difference"]) for row in found.strongest(5)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == max(abs(value) for value in found.table.column("difference"))


# ---- what is refused -----------------------------------------------------------------------------


def wrong_calls():
    first = edits.remove(layers=0)
    return [
        (lambda m, x: regard.effects(m, x, [], metrics.loss), ArgumentError, "one or more. Got \\[\\]"),
        (
            lambda m, x: regard.effects(m, x, ["remove"], metrics.loss),
            ArgumentError,
            "effects needs edits",
        ),
        (
            lambda m, x: regard.effects(m, x, first, 3),
            DtypeError,
            "or a function of the model's output. Got int",
        ),
        (
            lambda m, x: regard.effects(m, x, first, lambda out: None),
            ArgumentError,
            "one finite number.*Got None for",
        ),
        (
            lambda m, x: regard.effects(m, x, first, lambda out: out.logits[0, -1]),
            ArgumentError,
            r"Got a tensor of shape \(61,\) for the model",
        ),
        (
            lambda m, x: regard.effects(m, x, first, lambda out: math.nan),
            ArgumentError,
            "Got nan for the model",
        ),
        (lambda m, x: regard.effects("m", x, first, metrics.loss), DtypeError, "PyTorch module. Got str"),
        (
            lambda m, x: regard.effects(m, "text", first, metrics.loss),
            DtypeError,
            "a tensor of ids.* Got str",
        ),
        (lambda m, x: regard.effects(m, x, first, metrics.loss, together=0), ArgumentError, "together = 0"),
        (lambda m, x: regard.effects(m, x, first, metrics.logit(99)), ArgumentError, r"\(0 … 60\). Got 99"),
        (
            lambda m, x: regard.effects(m, x, first, metrics.logit(3, position=40)),
            ArgumentError,
            r"0 … 10, or −1 for the last\). Got position = 40",
        ),
        (
            lambda m, x: regard.effects(m, {**x, "logits_to_keep": 1}, first, metrics.loss),
            ShapeError,
            "without logits_to_keep",
        ),
        (
            lambda m, x: regard.ablate(m, x, metrics.loss, by="word"),
            ArgumentError,
            "head, layer, key, edge. Got by = 'word'",
        ),
        (
            lambda m, x: regard.ablate(m, x, metrics.loss, layers=7),
            ArgumentError,
            r"layers must be among 0, 1\. Got layers = 7",
        ),
        (lambda m, x: regard.ablate(m, x, metrics.loss, heads=[4]), ArgumentError, r"Got heads = \[4\]"),
        (
            lambda m, x: regard.ablate(m, x, metrics.loss, kind="cross"),
            ArgumentError,
            r"\(decoder\). Got kind = 'cross'",
        ),
        (lambda m, x: regard.ablate(m, x, metrics.loss, by="key", edit=first), ArgumentError, "Omit edit"),
        (
            lambda m, x: regard.ablate(m, x, metrics.loss, edit=3),
            DtypeError,
            "edit must be one of regard.edits",
        ),
        (
            lambda m, x: regard.ablate(m, x, metrics.loss, edit=edits.each([first, first])),
            DtypeError,
            "the same for all sequences",
        ),
        (lambda m, x: regard.ablate("m", x, metrics.loss), DtypeError, "PyTorch module. Got str"),
        (lambda m, x: regard.ablate(m, x, metrics.loss).grid("cross"), ArgumentError, "Got kind = 'cross'"),
        (lambda m, x: regard.effects(m, x, edits.remove(layers=9), metrics.loss), RegardError, "remove"),
    ]


@pytest.mark.parametrize("case", wrong_calls(), ids=lambda case: case[2][:30])
def test_what_is_refused_names_what_was_given(case):
    call, error, says = case
    model, inputs = built("gpt2")
    with torch.no_grad():
        before = model(**inputs).logits
    with pytest.raises(error, match=says):
        call(model, inputs)
    with torch.no_grad():
        assert torch.equal(model(**inputs).logits, before)  # restored


def test_nan_of_an_edited_model_names_the_edit():
    model, inputs = built("gpt2")
    plain = []

    def broken(output):
        plain.append(output)
        return 1.0 if len(plain) == 1 else math.nan

    with pytest.raises(ArgumentError, match=r"finite number \(broken\). Got nan for remove\(layers=\[1\]\)"):
        regard.effects(model, inputs, edits.remove(layers=1), broken)


def test_a_model_without_logits_says_which_metric_fits():
    model, inputs = built("bert")
    with pytest.raises(ArgumentError, match=r"loss needs the logits .* Got BaseModelOutput.* metrics.cosine"):
        regard.effects(model, inputs, edits.remove(), metrics.loss)


def test_tokens_are_ids_or_single_tokens():
    known = tokenizer()
    assert metrics.logit("cat", tokenizer=known) == metrics.logit(5)
    assert repr(metrics.difference("cat", "dog", tokenizer=known)) == "difference('cat', 'dog')"
    assert repr(metrics.probability(5)) == "probability(5)"
    with pytest.raises(ArgumentError, match=r"Got 'the cat', which is 'the' \+ 'cat'"):
        metrics.logit("the cat", tokenizer=known)
    with pytest.raises(ArgumentError, match=r"Got 'zebra', which is '\[UNK\]'"):
        metrics.probability("zebra", tokenizer=known)
    with pytest.raises(ArgumentError, match="Got '', which is none"):
        metrics.logit("", tokenizer=known)
    with pytest.raises(ArgumentError, match="Got 'cat' without a tokenizer"):
        metrics.logit("cat")
    for wrong in (-1, 2.5, True, None):
        with pytest.raises(ArgumentError, match="A token must be an id"):
            metrics.logit(wrong)
    with pytest.raises(ArgumentError, match=r"position must be a whole number. Got position = 'end'"):
        metrics.logit(3, position="end")


def test_a_function_of_an_output_that_is_a_tensor():
    # A dense tensor has a method ``values`` too, which raises.
    torch.manual_seed(0)
    model = regard.nn.LanguageModel(50, width=16, heads=2, layers=2).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    tried = [edits.remove(layers=0), edits.remove(layers=1)]
    found = regard.effects(model, ids, tried, lambda output: output[0, -1, 3])
    assert found.column("after") == pytest.approx(
        regard.effects(model, ids, tried, metrics.logit(3)).column("after")
    )


def test_numpy_numbers_are_numbers():
    assert metrics.logit(np.int64(5), position=np.int64(-2)) == metrics.logit(5, position=-2)
    assert repr(metrics.difference(np.int32(5), np.uint8(7))) == "difference(5, 7)"
    model, inputs = built("llama")
    tried = [edits.remove(layers=0), edits.remove(layers=1)]
    found = regard.effects(
        model, inputs, tried, lambda out: out.logits[0, -1, 3].numpy(), together=np.int64(2)
    )
    plain = regard.effects(model, inputs, tried, lambda out: out.logits[0, -1, 3].item(), together=2)
    assert found.cells == plain.cells


def test_the_loss_of_an_encoder_needs_labels():
    from transformers import BertConfig, BertForMaskedLM

    from recording.families import SMALL

    model = BertForMaskedLM(BertConfig(**SMALL)).eval()
    ids = torch.arange(3, 10)[None]
    with pytest.raises(ArgumentError, match="The loss needs the expected tokens"):
        regard.effects(model, {"input_ids": ids}, edits.remove(), metrics.loss)
    labels = torch.full((1, 7), -100)
    labels[0, 3] = 8
    with torch.no_grad():
        wanted = model(input_ids=ids, labels=labels).loss.item()
    found = regard.effects(model, {"input_ids": ids, "labels": labels}, edits.remove(), metrics.loss)
    assert found[0]["before"] == pytest.approx(wanted, rel=1e-5)
