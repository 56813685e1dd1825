"""Beam search: the recording is that of the texts it returns, as if each had been read at once."""

import pytest
import torch
import transformers as hf

import regard
from recording.families import FAMILIES, LENGTH, SMALL, all_weights, inputs_of, padded
from regard.errors import RecordingError

CLOSE = 1e-5
ENDS = [5, 9, 17, 30, 31, 44]
"""Many tokens end a text, so that beams end at different steps."""


def prompts(family):
    return {key: x for key, x in inputs_of(family, "left").items() if not key.startswith("decoder")}


def searched(model, inputs, **options):
    return model.generate(**inputs, max_new_tokens=9, num_beams=4, do_sample=False, pad_token_id=0, **options)


def lengths_of(texts, before):
    """How many tokens of each text were read: all but the last, and nothing behind an end token."""
    ends = torch.isin(texts[:, before:], torch.tensor(ENDS))
    first = torch.where(ends.any(1), ends.int().argmax(1) + 1, texts.shape[1] - before)
    return (before + first - 1).tolist()


def read_at_once(model, family, inputs, texts, times):
    """The same texts through the model in one pass."""
    read = texts[:, :-1]
    again = {key: x.repeat_interleave(times, 0) for key, x in inputs.items()}
    with regard.watch(model) as seen:
        if family.shape == "two-sided":
            model(**again, decoder_input_ids=read)
        else:
            keep = torch.nn.functional.pad(again["attention_mask"], (0, read.shape[1] - LENGTH), value=1)
            positions = (keep.cumsum(-1) - 1).clamp(min=0)
            model(input_ids=read, attention_mask=keep, position_ids=positions)
    return seen


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2", "gemma2", "gpt_oss", "t5", "bart"])
@torch.no_grad()
def test_the_winning_beams_are_recorded(name, times):
    family = FAMILIES[name]
    model, inputs = family.build(), prompts(family)
    plain = searched(model, inputs, num_return_sequences=times, eos_token_id=ENDS)
    with regard.watch(model) as seen:
        texts = searched(model, inputs, num_return_sequences=times, eos_token_id=ENDS)
    assert torch.equal(plain, texts)
    before = 1 if family.shape == "two-sided" else LENGTH
    lengths = lengths_of(texts, before)
    compared = 0
    for mine, whole in zip(seen, read_at_once(model, family, inputs, texts, times), strict=True):
        if mine.kind == "encoder":
            assert mine.batch == 2  # each prompt is read once
            continue
        found, wanted = all_weights(mine), all_weights(whole)
        assert found.shape == wanted.shape
        for text, length in enumerate(lengths):
            assert (found[text, :, :length] - wanted[text, :, :length]).abs().max() < CLOSE
            assert not found[text, :, length:].any()
            compared += length
        assert (mine.statistics().entropy - whole.statistics().entropy)[
            :, :, : min(lengths)
        ].abs().max() < CLOSE
    assert compared
    seen.tokens = texts[:, :-1]


@pytest.mark.parametrize(
    "options", [{"statistics": True, "top": 2}, {"dtype": torch.bfloat16}, {"heads": [3, 1]}]
)
@torch.no_grad()
def test_with_every_option_of_watch(options):
    family = FAMILIES["llama"]
    model, inputs = family.build(), prompts(family)
    with regard.watch(model, **options) as seen:
        texts = searched(model, inputs)
    wanted = read_at_once(model, family, inputs, texts, 1)
    for mine, whole in zip(seen, wanted, strict=True):
        if "statistics" in options:
            assert isinstance(mine, regard.recording.SummaryCall)
            assert (mine.statistics().received - whole.statistics().received).abs().max() < CLOSE
            assert (mine.statistics().top_weights - whole.statistics(top=2).top_weights).abs().max() < CLOSE
        else:
            heads = options.get("heads", [0, 1, 2, 3])
            bound = CLOSE if "heads" in options else 0.05
            for head in heads:
                assert (mine.weights(head, batch=1) - whole.weights(head, batch=1)).abs().max() < bound


@torch.no_grad()
def test_what_the_caller_asked_for_is_what_they_get():
    family = FAMILIES["llama"]
    model, inputs = family.build(), prompts(family)
    plain = searched(model, inputs, return_dict_in_generate=True, output_scores=True)
    original = hf.GenerationMixin.generate
    with regard.watch(model), regard.watch(model) as seen:
        watched = searched(model, inputs, return_dict_in_generate=True, output_scores=True)
        settings = hf.GenerationConfig(num_beams=4, max_new_tokens=9, do_sample=False, pad_token_id=0)
        assert torch.equal(model.generate(**inputs, generation_config=settings), plain.sequences)
    assert hf.GenerationMixin.generate is original
    assert torch.equal(plain.beam_indices, watched.beam_indices)
    assert torch.allclose(plain.sequences_scores, watched.sequences_scores, atol=1e-4)
    assert [(call.run, call.queries) for call in seen] == [(0, LENGTH + 8)] * 2 + [(1, LENGTH + 8)] * 2
    assert torch.equal(seen[1].q, seen[3].q)


@torch.no_grad()
def test_a_part_of_the_model_that_searches():
    family = FAMILIES["llama"]
    model, inputs = family.build(), prompts(family)
    with regard.watch(model.model, layers=[1]) as seen:
        texts = searched(model, inputs)
    wanted = read_at_once(model, family, inputs, texts, 1)
    assert (all_weights(seen[0]) - all_weights(wanted[1])).abs().max() < CLOSE


@torch.no_grad()
def test_a_model_that_gives_its_own_weights():
    torch.manual_seed(2)
    config = hf.BloomConfig(vocab_size=61, hidden_size=24, n_layer=2, n_head=4, eos_token_id=None)
    model = hf.BloomForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.3)
    ids, _ = padded(2, LENGTH, "none")
    with regard.watch(model) as seen:
        texts = searched(model, {"input_ids": ids})
    with regard.watch(model) as wanted:
        model(input_ids=texts[:, :-1])
    for mine, whole in zip(seen, wanted, strict=True):
        assert mine.dense
        assert (all_weights(mine) - all_weights(whole)).abs().max() < CLOSE


@torch.no_grad()
def test_a_model_with_a_mask_of_its_own_at_every_step():
    torch.manual_seed(1)
    model = hf.FalconForCausalLM(hf.FalconConfig(**{**SMALL, "num_kv_heads": 2})).eval()
    ids, keep = padded(2, LENGTH, "left")
    with regard.watch(model) as seen:
        texts = searched(model, {"input_ids": ids, "attention_mask": keep})
    wanted = read_at_once(model, FAMILIES["llama"], {"input_ids": ids, "attention_mask": keep}, texts, 1)
    for mine, whole in zip(seen, wanted, strict=True):
        assert (all_weights(mine) - all_weights(whole)).abs().max() < CLOSE


@torch.no_grad()
def test_without_a_cache_every_step_stays_a_run():
    family = FAMILIES["llama"]
    model, inputs = family.build(), prompts(family)
    with regard.watch(model, layers=[0]) as seen:
        model.generate(**inputs, max_new_tokens=3, num_beams=2, do_sample=False, use_cache=False)
    assert [(call.batch, call.queries) for call in seen] == [(4, LENGTH), (4, LENGTH + 1), (4, LENGTH + 2)]


@torch.no_grad()
def test_a_search_of_ones_own_is_refused_when_it_reorders():
    model = FAMILIES["llama"].build()
    text = torch.randint(3, 61, (2, 20), generator=torch.Generator().manual_seed(5))
    message = r"generate\(\) runs is being watched. .* reordered at position 8 of model.layers.0.self_attn"
    with regard.watch(model):
        cache = model(input_ids=text[:, :8]).past_key_values
        cache.reorder_cache(torch.tensor([1, 0]))
        with pytest.raises(RecordingError, match=message):
            model(input_ids=text[:, 8:9], past_key_values=cache)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("end", [None, 7])
@torch.no_grad()
def test_the_search_of_regard_nn(end):
    torch.manual_seed(11)
    model = regard.nn.Seq2Seq(50, 20, width=16, heads=2, encoder_layers=1, decoder_layers=2, hidden=24)
    sources = torch.tensor([[4, 5, 6, 9], [7, 8, 3, 0]])
    options = {"start": 1, "end": end, "maximum": 7, "beams": 3}
    plain = regard.nn.generate(model, sources, **options)
    with regard.watch(model) as seen:
        found = regard.nn.generate(model, sources, **options)
    assert torch.equal(plain.tokens, found.tokens)
    read = torch.cat([torch.ones(2, 1, dtype=torch.long), found.tokens[:, :-1]], 1)
    with regard.watch(model.eval()) as wanted:
        model(sources, read)
    mine = {(call.kind, call.layer): call for call in seen}
    for whole in wanted:
        call = mine[whole.kind, whole.layer]
        assert call.shape == whole.shape
        for text, length in enumerate(found.lengths.tolist()):
            rows = slice(None) if call.kind == "encoder" else slice(0, length)
            weights = call.weights(None, rows=rows, batch=text)
            assert (weights - whole.weights(None, rows=rows, batch=text)).abs().max() < CLOSE


@torch.no_grad()
def test_the_search_of_a_language_model_with_padded_prompts():
    torch.manual_seed(12)
    model = regard.nn.LanguageModel(30, width=16, heads=2, layers=2).eval()
    ids, keep = padded(2, LENGTH, "left")
    ids = ids % 29 + 1
    with regard.watch(model) as seen:
        found = regard.nn.generate(model, ids, maximum=6, beams=4, keep=keep.bool())
    read = torch.cat([ids, found.tokens[:, :-1]], 1)
    with regard.watch(model) as wanted:
        model(read, keep=torch.nn.functional.pad(keep.bool(), (0, 5), value=True))
    for mine, whole in zip(seen, wanted, strict=True):
        assert (all_weights(mine) - all_weights(whole)).abs().max() < CLOSE


@torch.no_grad()
def test_a_saved_search_is_the_same(tmp_path):
    family = FAMILIES["llama"]
    model, inputs = family.build(), prompts(family)
    with regard.watch(model) as seen:
        searched(model, inputs, num_return_sequences=2, eos_token_id=ENDS)
    seen.save(tmp_path / "x.safetensors")
    for mine, other in zip(seen, regard.load(tmp_path / "x.safetensors"), strict=True):
        assert mine.mask == other.mask
        assert (all_weights(mine) - all_weights(other)).abs().max() < 1e-6
