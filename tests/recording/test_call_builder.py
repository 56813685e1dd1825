"""Which calls are one text, and which are not."""

import copy

import pytest
import torch
import transformers as hf

import regard
from recording.families import FAMILIES, GROUPED, LENGTH, SMALL, all_weights, inputs_of, padded
from regard.errors import RecordingError

CLOSE = 1e-5


@pytest.fixture
def llama():
    return FAMILIES["llama"].build()


@pytest.fixture
def text():
    return torch.randint(3, 61, (2, 20), generator=torch.Generator().manual_seed(5))


def at_once(model, text):
    with regard.watch(model) as seen:
        model(input_ids=text)
    return seen


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2", "gemma2"])
@torch.no_grad()
def test_a_text_read_in_pieces_is_one_map(name, text):
    model = FAMILIES[name].build()
    wanted = at_once(model, text)
    with regard.watch(model) as seen:
        cache = None
        for piece in text.split([7, 1, 5, 1, 6], dim=1):
            cache = model(input_ids=piece, past_key_values=cache, use_cache=True).past_key_values
    assert len(seen) == len(wanted)
    for mine, whole in zip(seen, wanted):
        assert mine.mask == whole.mask
        assert (all_weights(mine) - all_weights(whole)).abs().max() < CLOSE


@torch.no_grad()
def test_two_forward_passes_stay_two(llama, text):
    with regard.watch(llama) as seen:
        for _ in range(2):
            llama(input_ids=text)
        llama(input_ids=text[:, :9])
    assert [(call.run, call.queries) for call in seen] == [(0, 20)] * 2 + [(1, 20)] * 2 + [(2, 9)] * 2
    assert [call.layer for call in seen] == [0, 1] * 3
    with pytest.raises(RecordingError, match=r"model.layers.1.self_attn was called 3 times"):
        seen["model.layers.1.self_attn"]
    assert [call.run for call in seen.named("model.layers.1.self_attn")] == [0, 1, 2]


@torch.no_grad()
def test_two_generations_stay_two(llama, text):
    with regard.watch(llama) as seen:
        for _ in range(2):
            llama.generate(text[:, :5], max_new_tokens=4, do_sample=False)
    assert [(call.run, call.queries) for call in seen] == [(0, 8), (0, 8), (1, 8), (1, 8)]
    family = FAMILIES["bart"]
    model = family.build()
    inputs = {key: x for key, x in inputs_of(family, "right").items() if not key.startswith("decoder")}
    with regard.watch(model) as seen:
        for _ in range(2):
            model.generate(**inputs, max_new_tokens=4, do_sample=False)
    assert [call.layer for call in seen if call.kind == "encoder"] == [0, 1, 0, 1]
    assert {(call.run, call.queries) for call in seen if call.kind == "cross"} == {(0, 4), (1, 4)}


@torch.no_grad()
def test_two_continuations_of_one_cache_are_not_mixed(llama, text):
    with regard.watch(llama) as seen:
        cache = llama(input_ids=text[:, :8]).past_key_values
        other = copy.deepcopy(cache)
        llama(input_ids=text[:, 8:12], past_key_values=cache)
        llama(input_ids=text[:, 12:15], past_key_values=other)
    assert [call.extent for call in seen] == [(12, 12)] * 2 + [(3, 11)] * 2
    whole = at_once(llama, torch.cat([text[:, :8], text[:, 12:15]], 1))
    for mine, all_of_it in zip(list(seen)[2:], whole):
        assert (all_weights(mine) - all_weights(all_of_it)[:, :, 8:]).abs().max() < CLOSE


@pytest.mark.parametrize("name", ["llama", "mistral"])
@torch.no_grad()
def test_a_cache_from_before_the_watch(name, text):
    model = FAMILIES[name].build()
    cache = model(input_ids=text[:, :8]).past_key_values
    with regard.watch(model) as seen:
        for piece in (text[:, 8:11], text[:, 11:12]):
            model(input_ids=piece, past_key_values=cache)
    known = min(8, 3) if name == "mistral" else 8  # a window of 4 keeps 3 keys before the query
    whole = at_once(model, text[:, :12])
    for mine, all_of_it in zip(seen, whole):
        assert mine.extent == (4, known + 4)
        wanted = all_weights(all_of_it)[:, :, 8:, 8 - known :]
        assert (all_weights(mine) - wanted).abs().max() < CLOSE


@pytest.mark.parametrize("name", ["llama", "mistral"])
@torch.no_grad()
def test_a_static_cache_shows_no_empty_places(name, text):
    model = FAMILIES[name].build()
    ids, keep = padded(2, LENGTH, "left")
    options = {"max_new_tokens": 6, "do_sample": False, "attention_mask": keep}
    with regard.watch(model) as seen:
        found = model.generate(ids, **options, cache_implementation="static", disable_compile=True)
    with regard.watch(model) as wanted:
        assert torch.equal(found, model.generate(ids, **options))
    for mine, whole in zip(seen, wanted):
        assert mine.extent == whole.extent
        assert (all_weights(mine) - all_weights(whole)).abs().max() < CLOSE


@torch.no_grad()
def test_steps_that_look_the_same_in_their_last_key_are_compared_in_full(llama, text):
    """Two texts with one last token have one last key in the first layer."""
    other = text[:1, :8].clone()
    other[:, :3] = 7
    with regard.watch(llama) as seen:
        cache = llama(input_ids=text[:1, :8]).past_key_values
        llama(input_ids=other)
        llama(input_ids=text[:1, 8:9], past_key_values=cache)
    assert [call.extent for call in seen] == [(8, 8)] * 4 + [(1, 9)] * 2


@torch.no_grad()
def test_without_a_cache_every_step_is_a_run_and_the_last_is_the_whole(llama, text):
    with regard.watch(llama, layers=[0]) as seen:
        whole = llama.generate(text[:, :5], max_new_tokens=3, do_sample=False, use_cache=False)
    assert [call.queries for call in seen] == [5, 6, 7]
    wanted = at_once(llama, whole[:, :7])[0]
    assert (all_weights(seen[2]) - all_weights(wanted)).abs().max() < CLOSE


@torch.no_grad()
def test_a_recording_can_be_read_while_it_grows(llama, text):
    with regard.watch(llama) as seen:
        cache = llama(input_ids=text[:, :8]).past_key_values
        before = seen[0]
        assert not seen.closed
        weights = before.weights(1)
        llama(input_ids=text[:, 8:12], past_key_values=cache)
        assert (seen[0].queries, before.queries) == (12, 8)
        assert torch.equal(before.weights(1), weights)
    assert seen.closed
    assert torch.equal(seen[0].weights(1)[:8, :8], weights)
    llama(input_ids=text)
    assert len(seen) == 2


@torch.no_grad()
def test_generate_under_statistics_of_a_falcon_with_a_tensor_mask():
    """Off the registry, with its own dense mask at every step."""
    torch.manual_seed(1)
    model = hf.FalconForCausalLM(hf.FalconConfig(**{**SMALL, "num_kv_heads": 2})).eval()
    ids, keep = padded(2, LENGTH, "left")
    with regard.watch(model) as seen:
        found = model.generate(ids, attention_mask=keep, max_new_tokens=5, do_sample=False)
    with regard.watch(model) as wanted:
        whole = torch.nn.functional.pad(keep, (0, 4), value=1)
        positions = (whole.cumsum(-1) - 1).clamp(min=0)
        model(input_ids=found[:, :-1], attention_mask=whole, position_ids=positions)
    assert len(seen) == len(wanted) == 2
    for mine, other in zip(seen, wanted):
        assert mine.kind == other.kind == "decoder"
        assert (all_weights(mine) - all_weights(other)).abs().max() < CLOSE
        assert (mine.statistics().entropy - other.statistics().entropy).abs().max() < CLOSE


@torch.no_grad()
def test_packed_documents_see_only_themselves():
    model = FAMILIES["llama"].build()
    ids, _ = padded(1, LENGTH, "none")
    positions = torch.cat([torch.arange(4), torch.arange(7)])[None]
    with regard.watch(model) as seen:
        model(input_ids=ids, position_ids=positions, use_cache=False)
    assert "documents([[0, 0, 0, 0, 1*7]])" in repr(seen[0].mask)
    alone = at_once(model, ids[:, 4:])
    assert (seen[1].weights(2)[4:, 4:] - alone[1].weights(2)).abs().max() < CLOSE
    assert not seen[1].weights(2)[4:, :4].any()


@pytest.mark.parametrize("side", ["left", "right"])
@torch.no_grad()
def test_chunked_attention(side):
    """Llama 4 reads in chunks that start at the first real token."""
    torch.manual_seed(1)
    config = hf.Llama4TextConfig(
        **{**GROUPED, "hidden_size": 32, "head_dim": 8, "intermediate_size": 32, "num_hidden_layers": 3},
        intermediate_size_mlp=32, attention_chunk_size=4, num_local_experts=2, no_rope_layers=[1, 0, 1],
    )  # fmt: skip
    model = hf.Llama4ForCausalLM(config).eval()
    ids, keep = padded(2, LENGTH, side)
    model.set_attn_implementation("eager")
    own = model(input_ids=ids, attention_mask=keep, output_attentions=True).attentions
    with regard.watch(model) as seen:
        model(input_ids=ids, attention_mask=keep)
    assert "documents" in repr(seen[0].mask)
    for call, wanted in zip(seen, own):
        error = (all_weights(call) - wanted).abs().amax((1, 3))
        assert error[keep.bool()].max() < CLOSE
