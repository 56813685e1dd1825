"""The collection: by number, by name, with tokens; and everything that it refuses."""

import numpy as np
import pytest
import torch
from torch import nn

import regard
from recording.families import FAMILIES, LENGTH, TARGET, inputs_of, padded
from regard.errors import ArgumentError, DtypeError, RecordingError, ShapeError


def recorded(name, **options):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, "right")
    with torch.no_grad(), regard.watch(model, **options) as seen:
        model(**inputs)
    return seen


@pytest.fixture(scope="module")
def llama():
    return recorded("llama")


@pytest.fixture
def bart():
    return recorded("bart")


def words(count, letter="t"):
    return [f"{letter}{i}" for i in range(count)]


# ---- by number and by name ---------------------------------------------------------------------


def test_it_is_a_sequence(llama):
    assert len(llama) == 2
    assert [call.layer for call in llama] == [0, 1]
    assert llama[-1].name == llama[1].name == "model.layers.1.self_attn"
    assert llama["model.layers.0.self_attn"].layer == 0
    assert repr(llama) == "<Recording of LlamaForCausalLM: 2 calls>"
    assert llama.nbytes == sum(call.nbytes for call in llama) > 0


def test_one_module_may_serve_several_layers():
    seen = recorded("albert")
    assert [call.layer for call in seen] == [0, 1, 2]
    assert [call.run for call in seen] == [0, 0, 0]
    assert len({call.name for call in seen}) == 1
    with pytest.raises(RecordingError, match=r"was called 3 times. Choose one of seen.named"):
        seen[seen[0].name]


@pytest.mark.parametrize("which", [2, -3, "nonsense", 1.5, True])
def test_no_such_call(llama, which):
    with pytest.raises(LookupError, match=r"List them") as caught:
        llama[which]
    assert isinstance(caught.value, RecordingError)
    assert repr(which) in str(caught.value)


def test_kinds_and_lengths_of_an_encoder_decoder(bart):
    assert {(call.kind, *call.extent) for call in bart} == {
        ("encoder", LENGTH, LENGTH),
        ("decoder", TARGET, TARGET),
        ("cross", TARGET, LENGTH),
    }


def test_by_layer_and_kind(bart, llama):
    assert llama.layer(1) is llama[1]
    assert bart.layer(2, kind="cross").name == "model.decoder.layers.2.encoder_attn"
    assert bart.layer(2, kind="decoder", run=0).name == "model.decoder.layers.2.self_attn"
    with pytest.raises(
        RecordingError,
        match=r"more than once \(by kind: encoder, decoder, cross\). Got layer = 1. Pass kind=.",
    ):
        bart.layer(1)
    there = r"encoder layers 0, 1; decoder layers 0 … 2; cross layers 0 … 2. Got layer = 2, kind = 'encoder'"
    with pytest.raises(LookupError, match=there):
        bart.layer(2, kind="encoder")
    with pytest.raises(LookupError, match=r"decoder layers 0, 1. Got layer = True"):
        llama.layer(True)


def test_by_layer_and_run():
    model = FAMILIES["llama"].build()
    ids, _ = padded(1, LENGTH, "none")
    with torch.no_grad(), regard.watch(model) as seen:
        model(input_ids=ids)
        model(input_ids=ids)
    assert seen.layer(1, run=1) is seen[3]
    with pytest.raises(RecordingError, match=r"more than once \(by run: 0, 1\). Got layer = 1. Pass run=."):
        seen.layer(1)
    with pytest.raises(LookupError, match=r"decoder layers 0, 1 in run 0; decoder layers 0, 1 in run 1"):
        seen.layer(1, run=2)


def test_all_heads_at_once(llama):
    found = llama[1].weights(None, rows=slice(2, 5), batch=1)
    assert found.shape == (4, 3, LENGTH)
    assert torch.equal(found[3], llama[1].weights(3, rows=slice(2, 5), batch=1))
    assert torch.equal(llama[1].weights(head=None, rows=-1)[2], llama[1].weights(2, rows=-1))


# ---- tokens --------------------------------------------------------------------------------------


def test_tokens_of_one_text(llama):
    llama.tokens = words(LENGTH)
    assert llama.tokens == [words(LENGTH)] * 2
    llama.tokens = [words(LENGTH, "a"), words(LENGTH, "b")]
    assert llama.query_tokens(llama[0], batch=1) == llama.key_tokens(llama[0], batch=1) == words(LENGTH, "b")
    llama.tokens = None
    assert llama.query_tokens(llama[0]) is None


def test_tokens_on_both_sides(bart):
    bart.tokens, bart.source_tokens = words(TARGET), words(LENGTH, "s")
    for call in bart:
        rows = words(LENGTH, "s") if call.kind == "encoder" else words(TARGET)
        columns = words(TARGET) if call.kind == "decoder" else words(LENGTH, "s")
        assert (bart.query_tokens(call), bart.key_tokens(call, batch=1)) == (rows, columns)


def test_tokens_of_the_rows_behind_a_cache():
    model = FAMILIES["llama"].build()
    ids, _ = padded(1, LENGTH, "none")
    with torch.no_grad():
        cache = model(input_ids=ids).past_key_values
        with regard.watch(model) as seen:
            model(input_ids=ids[:, :3], past_key_values=cache)
    seen.tokens = words(LENGTH + 3)
    assert seen.query_tokens(seen[0]) == words(LENGTH + 3)[-3:]
    assert seen.key_tokens(seen[0]) == words(LENGTH + 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (words(5), r"\(batch = 2, length = 11\). Got 1 list of 5. Pass one list of that length"),
        ([words(11)] * 3, "Got 3 lists of 11"),
        ([words(11), words(10)], "Got 2 lists of 10, 11"),
    ],
)
def test_tokens_of_the_wrong_length(llama, given, message):
    with pytest.raises(ShapeError, match=message):
        llama.tokens = given


def test_tokens_that_are_no_strings(llama):
    for given in ([[1.5] * LENGTH], "a text", 7, [[True] * LENGTH]):
        with pytest.raises(
            ArgumentError, match=r"tokens must be a list of strings or of token ids, or one such"
        ):
            llama.tokens = given


@pytest.mark.parametrize(
    "make", [torch.tensor, np.array, list, lambda ids: [torch.tensor(row) for row in ids]]
)
def test_ids_name_the_tokens(llama, make):
    ids = [list(range(LENGTH)), list(range(3, LENGTH + 3))]
    llama.tokens = make(ids)
    assert llama.tokens == [[str(one) for one in row] for row in ids]
    llama.tokens = make(ids)[0]
    assert llama.tokens == [[str(one) for one in ids[0]]] * 2


def test_the_last_token_of_a_generated_text_was_never_read():
    model = FAMILIES["llama"].build()
    ids, _ = padded(2, LENGTH, "none")
    with torch.no_grad(), regard.watch(model) as seen:
        written = model.generate(ids, max_new_tokens=4, do_sample=False)
    message = (
        r"\(batch = 2, length = 14\). Got 2 lists of 15. A model never reads the last token .* ids\[:, :-1\]"
    )
    with pytest.raises(ShapeError, match=message):
        seen.tokens = written
    seen.tokens = written[:, :-1]
    assert seen.tokens[1][-1] == str(int(written[1, -2]))


def test_only_two_sided_recordings_have_a_source(llama, bart):
    with pytest.raises(RecordingError, match=r"Only a recording with cross-attention has source tokens"):
        llama.source_tokens = words(LENGTH)
    with pytest.raises(
        ShapeError,
        match=r"source_tokens must have a token for every position .* length = 11.. Got 1 list of 7",
    ):
        bart.source_tokens = words(TARGET)
    bart.tokens = words(TARGET)
    with pytest.raises(ArgumentError, match=r"recorded sequences \(0 … 1\). Got batch = 2"):
        bart.query_tokens(bart[3], batch=2)


# ---- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": [0, 2]}, r"layers of the model \(0 … 1\). Got layers = \[2\]"),
        ({"layers": -1}, "layers must be whole numbers, 0 or more. Got -1"),
        ({"layers": []}, "layers must name at least one. Got an empty list"),
        ({"layers": [1.0]}, "layers must be whole numbers, 0 or more. Got 1.0"),
        ({"heads": [True]}, "heads must be whole numbers, 0 or more. Got True"),
        ({"top": 3}, "top needs watch.model, statistics=True.. Got top = 3"),
        ({"statistics": True, "top": -1}, "top must be a whole number, 0 or more. Got top = -1. Try 5"),
        ({"dtype": torch.int8}, "kept as float64, float32, float16 or bfloat16. Got dtype = torch.int8"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises((ArgumentError, DtypeError), match=message):
        regard.watch(FAMILIES["llama"].build(), **options)


def test_heads_are_known_when_they_are_seen():
    with pytest.raises(ArgumentError, match=r"heads of the model \(0 … 3\). Got heads = \[1, 4\]"):
        recorded("llama", heads=[1, 4])


def test_layers_of_a_model_that_says_nothing_are_known_at_the_end():
    model = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    with (
        pytest.raises(ArgumentError, match=r"\(0 … 0\). Got layers = \[3\]"),
        regard.watch(model, layers=[0, 3]),
    ):
        model(torch.randn(1, 3, 8))


def test_a_watch_is_entered_once():
    model = nn.MultiheadAttention(8, 2)
    x = torch.randn(3, 8)
    once = regard.watch(model)
    with once as seen:
        model(x, x, x)
    message = "entered only once; its recording is closed .* Got a second with block. Call watch"
    with pytest.raises(RecordingError, match=message), once:
        pass
    model(x, x, x)
    assert len(seen) == 1


@pytest.mark.parametrize("given", ["bert-base", None, nn.Linear])
def test_only_modules_are_watched(given):
    with pytest.raises(DtypeError, match=r"needs a PyTorch module. Got"):
        regard.watch(given)


def test_the_size_of_what_is_unknown():
    with pytest.raises(RecordingError, match=r"Got Linear. Make a short recording"):
        regard.recording.estimate(nn.Linear(2, 2), 8)
    with pytest.raises(ArgumentError, match=r"queries must be a whole number, 1 or more. Got queries = 0"):
        regard.recording.estimate(nn.MultiheadAttention(8, 2), 0)
