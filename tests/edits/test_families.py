"""Edited outputs are those of an eager model in which the same edit is made by hand."""

import pytest
import torch

import regard
from edits import by_hand
from edits.by_hand import edited_by_hand
from recording.families import FAMILIES, LENGTH, inputs_of
from regard import edits, masks
from turns import by_turns

CLOSE = 1e-5
NAMES = ["bert", "modernbert", "gpt2", "llama", "mistral", "gemma2", "gpt_oss", "t5", "bart"]
WHERE = {"layers": (1,), "heads": (0, 3)}


def in_span(i, j):
    return (j >= 5) & (j < 8)


def edge(i, j):
    return (i == 6) & (j >= 2) & (j < 4)


def not_near(i, j):
    return ~((j <= i) & (j >= i - 2) | (j < 5))


NEAR = masks.window(2, 0) | masks.prefix(5)
CASES = {
    "block": (edits.block(masks.span(5, 8)), by_hand.blocked(in_span)),
    "block some heads": (edits.block(masks.span(5, 8), **WHERE), by_hand.blocked(in_span, **WHERE)),
    "block edges": (edits.block(masks.span(6, 7).T & masks.span(2, 4)), by_hand.blocked(edge)),
    "block rows": (edits.block(masks.span(2, 4), rows=6), by_hand.blocked(edge)),
    "only": (edits.only(NEAR), by_hand.blocked(not_near)),
    "only some heads": (edits.only(NEAR, **WHERE), by_hand.blocked(not_near, **WHERE)),
    "only rows": (
        edits.only(NEAR, heads=2, rows=[9, 8]),
        by_hand.blocked(not_near, heads=(2,), rows=(8, 9)),
    ),
    "remove": (edits.remove(**WHERE), by_hand.scaled(0.0, **WHERE)),
    "remove rows": (edits.remove(rows=slice(4, None)), by_hand.scaled(0.0, rows=tuple(range(4, 99)))),
    "scale": (edits.scale(-1.7, heads=1), by_hand.scaled(-1.7, heads=(1,))),
    "uniform": (edits.uniform(), by_hand.uniform()),
    "uniform some heads": (edits.uniform(**WHERE), by_hand.uniform(**WHERE)),
    "uniform rows": (edits.uniform(heads=2, rows=range(3, 6)), by_hand.uniform(heads=(2,), rows=(3, 4, 5))),
    "temperature": (edits.temperature(2.5), by_hand.tempered(2.5)),
    "temperature some heads": (edits.temperature(0.4, **WHERE), by_hand.tempered(0.4, **WHERE)),
    "temperature rows": (edits.temperature(0.4, rows=5), by_hand.tempered(0.4, rows=(5,))),
    "temperature twice": (
        edits.temperature(0.4, heads=[0, 1]) + edits.temperature(3.0, rows=[5, 8]),
        by_hand.tempered(0.4, heads=(0, 1)),
        by_hand.tempered(3.0, rows=(5, 8)),
    ),
    "temperature and uniform": (
        edits.temperature(0.4, heads=[0, 1]) + edits.uniform(heads=1, rows=slice(4, None)),
        by_hand.tempered(0.4, heads=(0, 1)),
        by_hand.uniform(heads=(1,), rows=tuple(range(4, 99))),
    ),
}


def outputs(model, family, side):
    return model(**inputs_of(family, side))[0]


@pytest.mark.parametrize(("name", "case", "side"), by_turns(NAMES, CASES, ["left", "none"]))
@torch.no_grad()
def test_edited_outputs_are_those_of_the_model_edited_by_hand(name, case, side):
    family = FAMILIES[name]
    model = family.build()
    edit, *hand = CASES[case]
    plain = outputs(model, family, side)
    with edited_by_hand(model, *hand):
        wanted = outputs(model, family, side)
    before = model.config._attn_implementation
    with regard.edit(model, edit):
        found = outputs(model, family, side)
    assert model.config._attn_implementation == before
    assert torch.equal(outputs(model, family, side), plain)
    assert (found - wanted).abs().max() < CLOSE
    assert (plain - wanted).abs().max() > 5 * CLOSE, "the edit did nothing"


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("name", ["t5", "bart"])
@torch.no_grad()
def test_one_kind_of_call(name, kind):
    family = FAMILIES[name]
    model = family.build()
    edit = edits.block(masks.span(2, 5), kind=kind, heads=1) + edits.remove(kind=kind, heads=2, rows=4)
    with edited_by_hand(
        model,
        by_hand.blocked(lambda i, j: (j >= 2) & (j < 5), kind=kind, heads=(1,)),
        by_hand.scaled(0.0, kind=kind, heads=(2,), rows=(4,)),
    ):
        wanted = outputs(model, family, "right")
    with regard.edit(model, edit) as edited:
        found = outputs(model, family, "right")
    assert {place.kind for place in edited.calls} == {kind}
    assert (found - wanted).abs().max() < CLOSE


def runs(model, inputs):
    """One run recorded by regard, and the same with all matrices by hand."""
    with regard.watch(model, values=True) as seen:
        model(**inputs)
    with edited_by_hand(model, keep=True) as hand:
        model(**inputs)
    return seen, hand.calls


def of_another_text(inputs):
    """The same inputs with other tokens."""
    chance = torch.Generator().manual_seed(3)
    return {
        key: torch.randint(3, 60, value.shape, generator=chance) if key.endswith("ids") else value
        for key, value in inputs.items()
    }


@pytest.mark.parametrize(
    ("name", "where", "make"),
    by_turns(NAMES, [{}, WHERE, {"heads": (1,)}], ["pattern", "output"]),
    ids=str,
)
@torch.no_grad()
def test_weights_and_outputs_of_another_run(name, make, where):
    family = FAMILIES[name]
    model = family.build()
    inputs = inputs_of(family, "left")
    other = of_another_text(inputs)
    seen, calls = runs(model, other)
    edit = getattr(edits, make)(seen, **where)
    stage = {"pattern": "weights", "output": "output"}[make]
    with edited_by_hand(model, by_hand.swapped(calls, stage, **where)):
        wanted = model(**inputs)[0]
    with regard.edit(model, edit):
        found = model(**inputs)[0]
        same = model(**other)[0]
    assert (found - wanted).abs().max() < CLOSE
    # A run that gets its own weights or outputs is as it was. Padded rows of an eager model see everything.
    rows = other.get("decoder_attention_mask", other["attention_mask"]).bool()
    assert (same - model(**other)[0])[rows].abs().max() < CLOSE


@pytest.mark.parametrize(
    ("name", "where", "make"),
    by_turns(NAMES, [{"heads": (3,)}, {}, {"layers": (0,)}], ["output", "pattern"]),
    ids=str,
)
@torch.no_grad()
def test_rows_of_another_run(name, make, where):
    family = FAMILIES[name]
    model = family.build()
    inputs = inputs_of(family, "left")
    other = of_another_text(inputs)
    seen, calls = runs(model, other)
    stage = {"pattern": "weights", "output": "output"}[make]
    with edited_by_hand(model, by_hand.swapped(calls, stage, rows=(4, 6), **where)):
        wanted = model(**inputs)[0]
    with regard.edit(model, getattr(edits, make)(seen, rows=[4, 6], **where)):
        found = model(**inputs)[0]
        same = model(**other)[0]
    assert (found - wanted).abs().max() < CLOSE
    assert (model(**inputs)[0] - wanted).abs().max() > 5 * CLOSE, "the edit did nothing"
    rows = other.get("decoder_attention_mask", other["attention_mask"]).bool()
    assert (same - model(**other)[0])[rows].abs().max() < CLOSE


@pytest.mark.parametrize("name", ["bert", "llama", "bart"])
@torch.no_grad()
def test_mean_ablation(name):
    family = FAMILIES[name]
    model = family.build()
    texts = [inputs_of(family, side) for side in ("left", "right", "none")]
    sums, counts = {}, {}
    for inputs in texts:
        source = inputs["attention_mask"].bool()
        target = inputs.get("decoder_attention_mask", source).bool()
        with edited_by_hand(model, keep=True) as hand:
            model(**inputs)
        for call in hand.calls:
            rows = call.output.transpose(1, 2)[source if call.kind == "encoder" else target]
            place = call.kind, call.layer
            sums[place] = sums.get(place, 0) + rows.sum(0)
            counts[place] = counts.get(place, 0) + len(rows)
    mean = regard.heads.mean_outputs(model, texts)
    hand = by_hand.HandEdit(
        output=lambda call: (sums[call.kind, call.layer] / counts[call.kind, call.layer])[None, :, None]
        .expand_as(call.output),
        heads=(1, 2),
    )  # fmt: skip
    with edited_by_hand(model, hand):
        wanted = outputs(model, family, "left")
    with regard.edit(model, edits.average(mean, heads=[1, 2])):
        found = outputs(model, family, "left")
    assert (found - wanted).abs().max() < CLOSE
    assert mean.tokens == max(counts.values())


# ---- combinations ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_each_is_the_same_as_one_by_one(name):
    family = FAMILIES[name]
    model = family.build()
    inputs = {key: value[:1].expand(5, -1) for key, value in inputs_of(family, "none").items()}
    tried = [
        edits.remove(layers=0, heads=1),
        edits.block(masks.span(2, 4), heads=2) + edits.scale(0.5, layers=1, heads=0),
        None,
        edits.block(masks.span(2, 4), heads=2),
        edits.uniform(layers=1, heads=[1, 2]),
    ]
    with regard.edit(model, edits.each(tried)):
        together = model(**inputs)[0]
    for number, edit in enumerate(tried):
        one = {key: value[:1] for key, value in inputs.items()}
        if edit is None:
            wanted = model(**one)[0]
        else:
            with regard.edit(model, edit):
                wanted = model(**one)[0]
        assert (together[number] - wanted[0]).abs().max() < CLOSE


@torch.no_grad()
def test_edits_are_applied_in_order_and_nest():
    family = FAMILIES["gpt2"]
    model = family.build()
    mean = regard.heads.mean_outputs(model, [inputs_of(family, "none")])
    twice, averaged = edits.scale(2.0, heads=1), edits.average(mean, heads=1)

    def run(*entered):
        if not entered:
            return outputs(model, family, "none")
        with regard.edit(model, entered[0]):
            return run(*entered[1:])

    assert torch.equal(run(twice + averaged), run(averaged))
    assert not torch.allclose(run(averaged + twice), run(averaged))
    assert torch.equal(run(averaged, twice), run(averaged + twice))
    assert torch.equal(run(twice, averaged), run(averaged))


# ---- generation --------------------------------------------------------------------------------

GREEDY = {"do_sample": False, "output_logits": True, "return_dict_in_generate": True}
GENERATED = {
    "block": (edits.block(masks.span(5, 8), heads=(0, 3)), by_hand.blocked(in_span, heads=(0, 3))),
    "a row that is generated": (
        edits.block(masks.span(2, 6), rows=LENGTH + 3) + edits.remove(rows=[LENGTH + 1], layers=1),
        by_hand.blocked(lambda i, j: (i == LENGTH + 3) & (j >= 2) & (j < 6)),
        by_hand.scaled(0.0, rows=(LENGTH + 1,), layers=(1,)),
    ),
    "only": (edits.only(NEAR), by_hand.blocked(not_near)),
    "uniform": (edits.uniform(heads=1), by_hand.uniform(heads=(1,))),
    "temperature of a row that is generated": (
        edits.temperature(0.3, heads=(0, 1), rows=[LENGTH + 1, LENGTH + 2, 5]),
        by_hand.tempered(0.3, heads=(0, 1), rows=(LENGTH + 1, LENGTH + 2, 5)),
    ),
    "remove": (edits.remove(**WHERE), by_hand.scaled(0.0, **WHERE)),
}


@pytest.mark.parametrize(
    ("name", "case", "side"),
    by_turns(["gpt2", "llama", "gemma2", "gpt_oss", "bart", "t5"], GENERATED, ["left", "none"]),
)
@torch.no_grad()
def test_generation_with_a_cache(name, case, side):
    family = FAMILIES[name]
    if family.shape == "two-sided" and case.endswith("a row that is generated"):
        pytest.skip("its decoder begins at 0")
    model = family.build()
    inputs = inputs_of(family, side if family.shape == "decoder" else "right")
    inputs = {key: value for key, value in inputs.items() if not key.startswith("decoder")}
    options = {
        "max_new_tokens": 9,
        "do_sample": False,
        "output_logits": True,
        "return_dict_in_generate": True,
    }
    edit, *hand = GENERATED[case]
    with edited_by_hand(model, *hand):
        wanted = model.generate(**inputs, **options)
    with regard.edit(model, edit):
        found = model.generate(**inputs, **options)
    assert torch.equal(found.sequences, wanted.sequences)
    assert (torch.stack(found.logits) - torch.stack(wanted.logits)).abs().max() < CLOSE


@torch.no_grad()
def test_rows_of_cross_attention_are_those_of_the_generated_text():
    model = FAMILIES["bart"].build()
    inputs = {"input_ids": inputs_of(FAMILIES["bart"], "none")["input_ids"]}
    options = {
        "max_new_tokens": 7,
        "do_sample": False,
        "output_logits": True,
        "return_dict_in_generate": True,
    }
    edit = edits.block(masks.span(2, 9), kind="cross", rows=3) + edits.scale(3.0, kind="cross", rows=[2, 5])
    hand = (
        by_hand.blocked(lambda i, j: (i == 3) & (j >= 2) & (j < 9), kind="cross"),
        by_hand.scaled(3.0, kind="cross", rows=(2, 5)),
    )
    with edited_by_hand(model, *hand):
        wanted = model.generate(**inputs, **options)
    with regard.edit(model, edit):
        found = model.generate(**inputs, **options)
    assert (torch.stack(found.logits) - torch.stack(wanted.logits)).abs().max() < CLOSE


# ---- gradients ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    ["block some heads", "remove", "uniform rows", "temperature some heads", "temperature rows", "uniform"],
)
@pytest.mark.parametrize("name", ["bert", "llama", "t5", "gemma2", "gpt_oss"])
def test_gradients_are_those_of_the_model_edited_by_hand(name, case):
    family = FAMILIES[name]
    model = family.build()
    edit, hand = CASES[case]

    def gradients():
        model.zero_grad()
        outputs(model, family, "none").square().mean().backward()
        return {key: parameter.grad.clone() for key, parameter in model.named_parameters() if
                parameter.grad is not None}  # fmt: skip

    with edited_by_hand(model, hand):
        wanted = gradients()
    with regard.edit(model, edit):
        found = gradients()
    assert any(grad.abs().max() > CLOSE for grad in wanted.values())
    for key in found.keys() | wanted.keys():
        # Where nothing depends on the position bias, it has no gradient, or one of 0.
        one, other = (grads.get(key, torch.zeros(())) for grads in (found, wanted))
        assert (one - other).abs().max() < CLOSE * max(1.0, float(other.abs().max())), key
