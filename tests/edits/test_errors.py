"""What is refused, in words that name what was given; and the model is restored."""

import math

import numpy as np
import pytest
import torch
import transformers as hf
from torch import nn

import regard
from recording.families import FAMILIES, LENGTH, inputs_of
from regard import edits, masks
from regard.errors import ArgumentError, DtypeError, EditError, MaskError, RecordingError, ShapeError

SPECIAL = {"vocab_size": 61, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}


@pytest.fixture(scope="module")
def llama():
    return FAMILIES["llama"].build()


@pytest.fixture(scope="module")
def inputs():
    return inputs_of(FAMILIES["llama"], "none")


@pytest.fixture
def refused(llama, inputs):
    """An edit of the model raises this, and the model is as it was."""

    @torch.no_grad()
    def check(edit, error, says, **more):
        before, plain = llama.config._attn_implementation, llama(**inputs).logits
        with pytest.raises(error) as raised, regard.edit(llama, edit):
            llama(**(inputs | more))
        assert says in str(raised.value)
        assert raised.value.in_words("zh") != str(raised.value)
        assert llama.config._attn_implementation == before
        assert torch.equal(llama(**inputs).logits, plain)

    return check


def test_unknown_layers_and_heads(refused):
    refused(
        edits.remove(layers=[0, 2]),
        ArgumentError,
        "layers= must name layers of the model (0 … 1). Got remove",
    )
    refused(
        edits.remove(heads=4),
        ArgumentError,
        "heads= must name heads of the model (0 … 3). Got remove(heads=[4])",
    )


def test_an_edit_that_changes_nothing(refused):
    says = "Each edit must change something in at least one call. Got "
    refused(
        edits.remove(kind="cross"), EditError, says + "remove(kind='cross'), which changed nothing in decoder"
    )
    refused(edits.block(masks.span(40, 50)), EditError, says + "block(span(40, 50))")
    refused(edits.scale(2.0, rows=LENGTH), EditError, says + "scale(2.0, rows=11)")
    refused(edits.remove(heads=1) + edits.uniform(rows=99), EditError, says + "uniform(rows=99)")


def test_a_mask_that_does_not_fit(refused):
    table = masks.padding(torch.ones(2, 5, dtype=torch.bool))
    refused(
        edits.only(table), MaskError, "The mask of an edit must fit every call that it changes. Got padding("
    )
    wide = masks.padding(torch.rand(3, LENGTH) > 0.5)
    refused(edits.only(wide), MaskError, "(batch = 2, heads = 4, queries = 11, keys = 11)")
    with pytest.raises(MaskError, match="A mask must be a regard mask"):
        edits.block("span(2, 4)")


def test_each_of_the_wrong_length(refused):
    three = edits.each([edits.remove(heads=head) for head in range(3)])
    refused(
        three, ShapeError, "each must have one edit per element of the batch (batch = 2). Got 3 edits for"
    )
    with pytest.raises(ArgumentError, match="Got each within each"):
        edits.each([three])
    with pytest.raises(ArgumentError, match="Got an empty list"):
        edits.each([])
    with pytest.raises(DtypeError, match="each needs a list of edits"):
        edits.each([masks.causal()])


def recorded(model, ids, **options):
    with torch.no_grad(), regard.watch(model, **options) as seen:
        model(input_ids=ids)
    return seen


def test_a_recording_of_another_length_or_model(refused, llama, inputs):
    ids = inputs["input_ids"]
    short = recorded(llama, ids[:, :7], values=True)
    says = "Got batch = 2, queries = 7, keys = 7 in the recording of model.layers.0.self_attn"
    refused(edits.pattern(short), EditError, says)
    refused(edits.output(short), EditError, says)
    three = recorded(llama, ids[:1].expand(3, -1))
    refused(edits.pattern(three), EditError, "Got batch = 3")
    other = recorded(FAMILIES["gpt2"].build(), ids)
    refused(edits.pattern(other), EditError, "Got transformer.h.0.attn where the model calls model.layers.0")
    encoder = recorded(FAMILIES["bert"].build(), ids)
    refused(edits.pattern(encoder), EditError, "Got 0 calls of decoder layer 0 in <Recording of BertModel")


def test_a_recording_without_what_is_needed(refused, llama, inputs):
    ids = inputs["input_ids"]
    refused(edits.output(recorded(llama, ids)), RecordingError, "watch(model, values=True)")
    refused(edits.pattern(recorded(llama, ids, statistics=True)), RecordingError, "model.layers.0.self_attn")
    one = recorded(llama, ids, heads=[1])
    refused(edits.pattern(one), EditError, "Got no head 0, 2, 3 in the recording of")
    first = recorded(llama, ids, layers=[0])
    refused(edits.pattern(first), EditError, "Got 0 calls of decoder layer 1")
    with torch.no_grad(), regard.watch(llama) as twice:
        llama(input_ids=ids)
        llama(input_ids=ids)
    refused(edits.pattern(twice), EditError, "Got 2 calls of decoder layer 0")
    for make in (edits.pattern, edits.output):
        with pytest.raises(DtypeError, match=r"needs a recording. Got str."):
            make("recording")


def test_nan(refused, llama, inputs):
    seen = recorded(llama, inputs["input_ids"], values=True)
    seen[0].q[0, 0, 0, 0] = math.nan
    refused(edits.pattern(seen), RecordingError, "Got NaN or infinity in Q of model.layers.0.self_attn")
    refused(edits.output(seen), RecordingError, "Got NaN or infinity in Q of model.layers.0.self_attn")
    seen[0].q[0, 0, 0, 0] = 0.0
    seen[0].v[0, 0, 3, 0] = math.inf
    refused(edits.output(seen), RecordingError, "Got NaN or infinity in V of model.layers.0.self_attn")
    for factor in (math.nan, math.inf, "2", True):
        with pytest.raises(ArgumentError, match="factor must be a finite number"):
            edits.scale(factor)
    for t in (math.nan, 0.0, -1, math.inf, "2"):
        with pytest.raises(ArgumentError, match="t must be a finite number above 0"):
            edits.temperature(t)
    assert edits.scale(np.float32(0.5)) == edits.scale(0.5)
    assert repr(edits.temperature(np.int64(2))) == "temperature(2.0)"
    refused(edits.temperature(1e-12), ArgumentError, "must be at most 1e8. Got t = 1e-12.")


def test_means_of_another_model(refused, llama, inputs):
    with pytest.raises(DtypeError, match=r"needs the mean outputs of a model. Got float"):
        edits.average(0.0)
    bert = FAMILIES["bert"].build()
    mean = regard.heads.mean_outputs(bert, [inputs])
    refused(
        edits.average(mean),
        EditError,
        "Got <mean outputs of BertModel over 22 tokens> without decoder layer 0",
    )
    with pytest.raises(EditError, match="A mean needs at least one text"):
        regard.heads.mean_outputs(llama, [])
    with pytest.raises(ArgumentError, match=r"Strings need a tokenizer. Got 'A text'"):
        regard.heads.mean_outputs(llama, ["A text"])
    with pytest.raises(DtypeError, match="needs a PyTorch module"):
        regard.heads.mean_outputs("llama", ["A text"])


def test_options(llama):
    for options, says in (
        ({"layers": -1}, "layers must be whole numbers, 0 or more. Got -1."),
        ({"heads": []}, "heads must name at least one. Got an empty list."),
        ({"heads": 1.5}, "heads must be whole numbers, 0 or more. Got 1.5."),
        ({"kind": "both"}, "kind must be encoder, decoder or cross. Got kind = 'both'."),
        ({"rows": -1}, "rows must be whole numbers, 0 or more. Got -1."),
        ({"rows": slice(4, 4)}, "rows must name at least one position. Got rows = slice(4, 4, None)."),
        (
            {"rows": slice(0, 9, 2)},
            "a slice without a step, or a list of positions. Got rows = slice(0, 9, 2).",
        ),
    ):
        with pytest.raises(ArgumentError) as raised:
            edits.remove(**options)
        assert says in str(raised.value)
    with pytest.raises(DtypeError, match=r"needs a PyTorch module. Got str."):
        regard.edit("llama", edits.remove())
    with pytest.raises(DtypeError, match=r"needs an edit. Got NoneType."):
        regard.edit(llama, None)


@pytest.mark.parametrize(
    "build",
    [
        lambda: hf.BloomForCausalLM(hf.BloomConfig(hidden_size=24, n_layer=2, n_head=4, **SPECIAL)),
        lambda: hf.MptForCausalLM(hf.MptConfig(d_model=32, n_layers=2, n_heads=4, max_seq_len=64, **SPECIAL)),
    ],
    ids=["BloomForCausalLM", "MptForCausalLM"],
)
def test_a_model_that_hides_its_attention_is_refused_by_name(build, request):
    model = build().eval()
    name = request.node.callspec.id
    says = f"Got {name}, which computes its attention itself"
    for edited in (model, nn.Sequential(model)):
        with pytest.raises(EditError, match=says), regard.edit(edited, edits.remove()):
            pass
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_everything_is_restored_after_an_error(llama, inputs):
    fast = torch.backends.mha.get_fastpath_enabled()
    before = llama.config._attn_implementation
    inside = regard.edit(nn.Sequential(llama), edits.scale(2.0))
    with pytest.raises(ZeroDivisionError), regard.edit(llama, edits.remove()), inside:
        raise ZeroDivisionError(llama(**inputs))
    assert llama.config._attn_implementation == before
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in llama.modules())


# ---- values ------------------------------------------------------------------------------------


def test_edits_are_values():
    one = edits.block(masks.span(5, 9), layers=range(10, 20), heads=3, kind="decoder", rows=[1, 2, 3, 8])
    assert repr(one) == (
        "block(span(5, 9), layers=range(10, 20), heads=[3], kind='decoder', rows=[1, 2, 3, 8])"
    )
    same = edits.block(
        masks.span(5, 9), layers=list(range(10, 20)), heads=[3], kind="decoder", rows=[8, 3, 2, 1]
    )
    assert one == same
    assert hash(one) == hash(same)
    assert one != edits.only(
        masks.span(5, 9), layers=range(10, 20), heads=3, kind="decoder", rows=[1, 2, 3, 8]
    )
    assert one + edits.remove() + edits.uniform() == one + (edits.remove() + edits.uniform())
    assert one + edits.remove() != edits.remove() + one
    both = edits.each([one, None, edits.remove() + edits.scale(2)])
    assert repr(both).endswith("None, remove() + scale(2.0)])")
    assert both == edits.each((one, None, edits.remove() + edits.scale(2.0)))
    assert {edits.remove(): 1}[edits.remove()] == 1
    with pytest.raises(AttributeError):
        one.mask = masks.causal()
    with pytest.raises(TypeError):
        _ = one + masks.causal()
