"""An edited model that is watched: the recording holds what was computed."""

import pytest
import torch
from torch.nn.functional import pad

import regard
from edits import by_hand
from edits.by_hand import edited_by_hand
from recording.families import FAMILIES, LENGTH, all_weights, inputs_of
from regard import edits, masks
from turns import by_turns

CLOSE = 1e-5
NEAR = masks.window(2, 0) | masks.prefix(5)


def not_near(i, j):
    return ~((j <= i) & (j >= i - 2) | (j < 5))


CASES = {
    "block": (
        edits.block(masks.span(5, 8), heads=(0, 3)),
        by_hand.blocked(lambda i, j: (j >= 5) & (j < 8), heads=(0, 3)),
    ),
    "only": (edits.only(NEAR, rows=slice(8, None)), by_hand.blocked(not_near, rows=tuple(range(8, 99)))),
    "uniform": (edits.uniform(heads=1, layers=0), by_hand.uniform(heads=(1,), layers=(0,))),
    "uniform rows": (edits.uniform(heads=1, rows=[6, 9]), by_hand.uniform(heads=(1,), rows=(6, 9))),
    "temperature": (edits.temperature(1.7, heads=2), by_hand.tempered(1.7, heads=(2,))),
    "temperature rows": (edits.temperature(0.4, rows=[6, 9]), by_hand.tempered(0.4, rows=(6, 9))),
}


def watched(model, edit, run, *, outside):
    if outside:
        with regard.watch(model, values=True) as seen, regard.edit(model, edit):
            run()
    else:
        with regard.edit(model, edit), regard.watch(model, values=True) as seen:
            run()
    return seen


def compare(seen, calls):
    """The weights of every recorded call are those of the calls by hand, joined along the rows."""
    wanted = {}
    for call in calls:
        wanted.setdefault((call.kind, call.layer), []).append(call)
    assert {(call.kind, call.layer) for call in seen} == set(wanted)
    for call in seen:
        # A sliding cache has dropped its oldest keys.
        spans = [(part, part.first_key, part.weights.shape[-1]) for part in wanted[call.kind, call.layer]]
        whole = torch.cat(
            [pad(part.weights, (first, call.keys - first - keys)) for part, first, keys in spans], 2
        )
        assert (all_weights(call) - whole).abs().max() < CLOSE, call


@pytest.mark.parametrize(
    ("name", "case", "order"),
    by_turns(["bert", "llama", "t5", "gemma2", "gpt_oss"], CASES, ["watch outside", "watch inside"]),
)
@torch.no_grad()
def test_the_recording_holds_the_edited_weights(name, case, order, tmp_path):
    family = FAMILIES[name]
    model = family.build()
    inputs = inputs_of(family, "left")
    edit, hand = CASES[case]
    with edited_by_hand(model, hand, keep=True) as made:
        model(**inputs)
    seen = watched(model, edit, lambda: model(**inputs), outside=order == "watch outside")
    compare(seen, made.calls)
    seen.save(tmp_path / "edited.safetensors")
    compare(regard.load(tmp_path / "edited.safetensors"), made.calls)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "gpt_oss", "bart", "t5"])
@torch.no_grad()
def test_a_generated_text_is_one_call_with_the_edit_in_it(name, case, tmp_path):
    family = FAMILIES[name]
    model = family.build()
    inputs = inputs_of(family, "left" if family.shape == "decoder" else "right")
    inputs = {key: value for key, value in inputs.items() if not key.startswith("decoder")}
    edit, hand = CASES[case]

    def run():
        return model.generate(**inputs, max_new_tokens=9, do_sample=False)

    with edited_by_hand(model, hand, keep=True) as made:
        wanted = run()
    found = []
    seen = watched(model, edit, lambda: found.append(run()), outside=False)
    assert torch.equal(found[0], wanted)
    compare(seen, made.calls)
    seen.save(tmp_path / "edited.safetensors")
    compare(regard.load(tmp_path / "edited.safetensors"), made.calls)


@torch.no_grad()
def test_the_weights_of_another_run_are_recorded():
    family = FAMILIES["llama"]
    model = family.build()
    inputs = inputs_of(family, "none")
    with regard.watch(model) as other:
        model(input_ids=inputs["input_ids"].flip(1))
    seen = watched(model, edits.pattern(other, heads=[1, 2]), lambda: model(**inputs), outside=True)
    with regard.watch(model) as plain:
        model(**inputs)
    for layer in range(2):
        for head in (1, 2):
            assert torch.allclose(seen[layer].weights(head), other[layer].weights(head), atol=CLOSE)
    for head in (0, 3):
        assert torch.allclose(seen[0].weights(head), plain[0].weights(head), atol=CLOSE)


@torch.no_grad()
def test_statistics_and_some_heads_of_an_edited_model():
    family = FAMILIES["llama"]
    model = family.build()
    inputs = inputs_of(family, "none")
    edit = edits.block(masks.span(5, 8), heads=[0, 3])
    with regard.edit(model, edit), regard.watch(model) as whole:
        model(**inputs)
    with regard.edit(model, edit), regard.watch(model, statistics=True) as brief:
        model(**inputs)
    with regard.edit(model, edit), regard.watch(model, heads=[2, 3]) as some:
        model(**inputs)
    for one, other, part in zip(whole, brief, some):
        assert torch.allclose(one.statistics().entropy, other.statistics().entropy, atol=CLOSE)
        for head in (2, 3):
            assert torch.allclose(one.weights(head), part.weights(head), atol=CLOSE)
    assert "dense" not in repr(some[0].mask.select((0, 1)))


@torch.no_grad()
def test_attentions_that_the_model_returns_are_edited_too():
    model = FAMILIES["llama"].build()
    model.set_attn_implementation("eager")
    inputs = inputs_of(FAMILIES["llama"], "none")
    edit, hand = CASES["block"]
    with edited_by_hand(model, hand, keep=True) as made:
        model(**inputs)
    with regard.edit(model, edit):
        output = model(**inputs, output_attentions=True)
    for call, weights in zip(made.calls, output.attentions):
        assert (call.weights - weights).abs().max() < CLOSE


@torch.no_grad()
def test_the_prompt_is_patched_and_generation_goes_on():
    family = FAMILIES["gpt2"]
    model = family.build()
    inputs = inputs_of(family, "none")
    other = {**inputs, "input_ids": inputs["input_ids"].flip(1)}
    with regard.watch(model, values=True) as seen:
        model(**other)
    options = {"do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    with regard.edit(model, edits.output(seen, heads=[0, 1])) as edited:
        found = model.generate(**inputs, max_new_tokens=5, **options)
        first = model(**inputs).logits[:, -1]
    assert torch.allclose(found.logits[0], first, atol=CLOSE)
    assert len(edited.calls) == 4  # two layers of the prompt, twice
    assert found.sequences.shape[1] == LENGTH + 5


@torch.no_grad()
def test_a_beam_search_of_an_edited_model():
    model = FAMILIES["t5"].build()
    inputs = {key: value for key, value in inputs_of(FAMILIES["t5"], "right").items() if "decoder" not in key}
    with regard.edit(model, edits.uniform(heads=1, rows=2)), regard.watch(model) as seen:
        found = model.generate(**inputs, num_beams=3, max_new_tokens=5, do_sample=False)
    call = seen.layer(0, kind="decoder")
    even = torch.tensor([1 / 3, 1 / 3, 1 / 3])
    assert torch.allclose(call.weights(1, rows=2)[0, :3], even, atol=CLOSE)
    # Read again in one pass over the texts that were returned, the weights are the same.
    with regard.edit(model, edits.uniform(heads=1, rows=2)), regard.watch(model) as again:
        model(**inputs, decoder_input_ids=found[:, :-1])
    for head in range(4):
        assert torch.allclose(
            call.weights(head), again.layer(0, kind="decoder").weights(head)[: call.queries, : call.keys],
            atol=CLOSE,
        )  # fmt: skip


@pytest.mark.parametrize("case", ["block", "uniform rows"])
@torch.no_grad()
def test_a_page_of_an_edited_model(case, tmp_path):
    model = FAMILIES["t5"].build()
    with regard.edit(model, CASES[case][0]), regard.watch(model) as seen:
        model(**inputs_of(FAMILIES["t5"], "none"))
    regard.page(seen, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


@pytest.mark.parametrize("region", [masks.window(1, 1), masks.span(2, 4).T & masks.span(0, 5)], ids=str)
@pytest.mark.parametrize("kind", ["cross", "decoder"])
@torch.no_grad()
def test_edits_and_regions_mean_the_same_positions(kind, region):
    model = FAMILIES["bart"].build()
    inputs = inputs_of(FAMILIES["bart"], "none")
    with regard.watch(model, values=True) as plain:
        model(**inputs)
    with (
        regard.edit(model, edits.block(region, kind=kind, layers=0)),
        regard.watch(model, values=True) as seen,
    ):
        model(**inputs)
    before, after = plain.layer(0, kind=kind), seen.layer(0, kind=kind)
    assert before.queries != before.keys or kind != "cross"
    mass = before.mass(region)
    assert (mass > 0.01).any()
    assert (mass < 0.99).any()
    assert (after.mass(region) == 0).all()
    # Without the region the rest has all the weight, and what it gives is known before it is tried. The
    # calls that come before the first layer of this kind are the same in both runs.
    sees = after.mass(~region) > 0
    assert torch.allclose(after.mass(~region)[sees], torch.ones(()), atol=CLOSE)
    assert torch.allclose(before.without(region), after.output(), atol=CLOSE)
