"""What a watch does to a model: nothing that lasts; and what it keeps: what was asked for."""

import threading
from dataclasses import fields

import pytest
import torch
import transformers as hf

import regard
from recording.families import FAMILIES, GROUPED, LENGTH, all_weights, inputs_of, padded
from regard.errors import ArgumentError, RecordingError


@pytest.fixture
def llama():
    return FAMILIES["llama"].build()


@pytest.fixture
def inputs():
    ids, keep = padded(2, LENGTH, "left")
    return {"input_ids": ids, "attention_mask": keep}


def state(model):
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    return model.config._attn_implementation, hooks, torch.backends.mha.get_fastpath_enabled()


# ---- leaving no trace --------------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_the_model_is_as_before_also_after_an_error(llama, inputs, implementation):
    llama.set_attn_implementation(implementation)
    before = state(llama)
    with regard.watch(llama):
        llama(**inputs)
        assert state(llama) != before
    assert state(llama) == before
    with pytest.raises(ZeroDivisionError), regard.watch(llama):
        raise ZeroDivisionError
    assert state(llama) == before
    with pytest.raises(IndexError), regard.watch(llama) as seen:
        llama(input_ids=torch.tensor([[10_000]]))  # no such token: the model fails in the middle
    assert state(llama) == before
    assert seen.closed


def test_sub_models_get_back_what_each_had():
    small = {"hidden_size": 24, "intermediate_size": 37, "num_attention_heads": 4}
    special = {"vocab_size": 61, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2}
    config = hf.CLIPConfig(
        text_config={**small, **special, "num_hidden_layers": 2},
        vision_config={**small, "num_hidden_layers": 3, "image_size": 12, "patch_size": 4},
    )
    model = hf.CLIPModel(config).eval()
    model.set_attn_implementation({"": "sdpa", "text_config": "eager", "vision_config": "sdpa"})
    ids, keep = padded(2, LENGTH, "right")
    with regard.watch(model) as seen:
        model(input_ids=ids, attention_mask=keep, pixel_values=torch.randn(2, 3, 12, 12))
    assert config.text_config._attn_implementation == "eager"
    assert config.vision_config._attn_implementation == "sdpa"
    assert [(call.kind, call.layer) for call in seen if "text" in call.name] == [
        ("decoder", 0),
        ("decoder", 1),
    ]
    assert [call.layer for call in seen if "vision" in call.name] == [0, 1, 2]


@torch.no_grad()
def test_nested_and_repeated(llama, inputs):
    before = state(llama)
    with regard.watch(llama) as outer:
        llama(**inputs)
        with regard.watch(llama, layers=[1], heads=[2]) as inner:
            llama(**inputs)
    assert state(llama) == before
    assert [call.run for call in outer] == [0, 0, 1, 1]
    assert [(call.layer, call.head_numbers) for call in inner] == [(1, (2,))]
    assert torch.equal(inner[0].weights(2), outer[3].weights(2))
    with regard.watch(llama) as again:
        llama(**inputs)
    assert torch.equal(again[1].weights(3), outer[1].weights(3))


def test_gradients_are_those_of_the_model(llama, inputs):
    def gradient():
        llama.zero_grad()
        llama(**inputs, labels=inputs["input_ids"]).loss.backward()
        return torch.cat([p.grad.flatten() for p in llama.parameters()])

    plain = gradient()
    with regard.watch(llama) as seen:
        watched = gradient()
    assert (plain - watched).abs().max() < 1e-5 * plain.abs().max()
    assert not seen[0].q.requires_grad
    with regard.watch(llama, statistics=True):
        with_statistics = gradient()
    assert (plain - with_statistics).abs().max() < 1e-5 * plain.abs().max()


@torch.no_grad()
def test_output_attentions_still_gives_them(llama, inputs):
    llama.set_attn_implementation("eager")
    wanted = llama(**inputs, output_attentions=True).attentions
    with regard.watch(llama) as seen:
        found = llama(**inputs, output_attentions=True).attentions
    rows = inputs["attention_mask"].bool()
    assert ((wanted[1] - found[1]).abs().amax((1, 3))[rows] < 1e-5).all()
    assert ((all_weights(seen[1]) - found[1]).abs() < 1e-6).all()


@torch.no_grad()
def test_half_precision(inputs):
    model = FAMILIES["llama"].build().bfloat16()
    plain = model(**inputs).logits
    with regard.watch(model) as seen:
        watched = model(**inputs).logits
    assert seen[0].q.dtype == torch.bfloat16
    assert seen[0].lse.dtype == torch.float32
    assert seen[0].weights(0).sum(-1)[3:].allclose(torch.ones(1), atol=1e-2)
    rows = inputs["attention_mask"].bool()
    assert (plain[rows] - watched[rows]).abs().max() < 0.05 * plain[rows].abs().max()


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5"])
@torch.no_grad()
def test_autocast(name):
    """The model computes in bfloat16 as it would; scores are float32 products of that Q and K."""
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, "none")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = model(**inputs, use_cache=False)[0]
        with regard.watch(model) as seen:
            watched = model(**inputs, use_cache=False)[0]
    assert plain.dtype == watched.dtype
    assert (plain - watched).abs().max() < 0.02 * plain.abs().max()
    assert seen[0].q.dtype == torch.bfloat16
    assert (all_weights(seen[0]).sum(-1) - 1).abs().max() < 1e-5


# ---- threads -----------------------------------------------------------------------------------


@torch.no_grad()
def test_threads_that_watch_one_model_each_see_their_own(llama):
    """Both switch the same model over, leave in any order, and the last one restores it."""
    before = state(llama)
    texts = [torch.randint(3, 61, (1, length)) for length in (5, 7, 9)]
    seen, meet = {}, threading.Barrier(len(texts))

    def work(number):
        with torch.no_grad(), regard.watch(llama) as recording:
            meet.wait(timeout=60)
            for _ in range(3):
                llama(input_ids=texts[number])
        seen[number] = recording

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state(llama) == before
    for number, text in enumerate(texts):
        assert [call.queries for call in seen[number]] == [text.shape[1]] * 6
        with regard.watch(llama) as alone:
            llama(input_ids=text)
        assert torch.equal(alone[1].weights(1), seen[number][1].weights(1))


@torch.no_grad()
def test_another_thread_computes_the_same_and_is_not_recorded(llama, inputs):
    plain, found = llama(**inputs).logits, []
    with regard.watch(llama) as seen:
        llama(**inputs)
        other = threading.Thread(target=torch.no_grad()(lambda: found.append(llama(**inputs).logits)))
        other.start()
        other.join()
    assert len(seen) == 2
    rows = inputs["attention_mask"].bool()
    assert (plain[rows] - found[0][rows]).abs().max() < 1e-5


# ---- what is kept ------------------------------------------------------------------------------


@torch.no_grad()
def test_some_layers_and_heads(llama, inputs):
    with regard.watch(llama) as everything:
        llama(**inputs)
    with regard.watch(llama, layers=1, heads=[3, 0]) as some:
        llama(**inputs)
    assert [call.layer for call in some] == [1]
    assert some[0].head_numbers == (0, 3)
    for head in (0, 3):
        assert torch.equal(some[0].weights(head, batch=1), everything[1].weights(head, batch=1))
    whole, part = everything[1].statistics(top=2), some[0].statistics(top=2)
    for field in fields(part):
        if field.name != "output":
            assert torch.equal(getattr(part, field.name), getattr(whole, field.name)[:, [0, 3]]), field.name


@torch.no_grad()
def test_heads_of_a_biased_model():
    family = FAMILIES["t5"]
    model, inputs = family.build(), inputs_of(family, "right")
    with regard.watch(model) as everything:
        model(**inputs)
    with regard.watch(model, heads=[2]) as some:
        model(**inputs)
    for whole, part in zip(everything, some):
        assert (whole.weights(2, batch=1) - part.weights(2, batch=1)).abs().max() < 1e-6


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt_oss", "t5", "bart"])
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float16, 0.004), (torch.bfloat16, 0.04)])
@torch.no_grad()
def test_rounded_keys_and_queries_still_make_weights(name, dtype, bound):
    """lse belongs to what is kept: with that of the exact scores, rows would sum to as much as 1.09."""
    family = FAMILIES[name]
    model = family.build()
    inputs = {key: x for key, x in inputs_of(family, "left").items() if not key.startswith("decoder")}
    options = {"max_new_tokens": 5, "do_sample": False}
    with regard.watch(model, dtype=dtype, heads=[1, 2]) as seen:
        model.generate(**inputs, **options)
    with regard.watch(model, heads=[1, 2]) as exact:
        model.generate(**inputs, **options)
    for mine, other in zip(seen, exact):
        assert mine.q.dtype == dtype
        found, wanted = all_weights(mine), all_weights(other)
        assert found.max() <= 1 + 1e-6
        if mine.sinks is None:
            sums = found.sum(-1)
            assert (sums - (wanted.sum(-1) > 0.5).float()).abs().max() < 2e-6
        assert (found - wanted).abs().max() < bound


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["llama", "t5"])
@torch.no_grad()
def test_a_model_in_half_precision_has_rows_that_sum_to_one(name, dtype):
    """Torch's kernel for half precisions rounds inside; its lse alone would give 1.00007."""
    family = FAMILIES[name]
    model = family.build().to(dtype)
    with regard.watch(model) as seen:
        model(**inputs_of(family, "none"))
    for call in seen:
        found = all_weights(call)
        assert found.max() <= 1 + 1e-6
        assert (found.sum(-1) - 1).abs().max() < 2e-6


@torch.no_grad()
def test_a_rounded_recording_can_be_read_while_it_grows(llama, inputs):
    with regard.watch(llama, dtype=torch.bfloat16) as seen:
        cache = llama(input_ids=inputs["input_ids"]).past_key_values
        before = seen[0].weights(1)
        llama(input_ids=inputs["input_ids"][:, :3], past_key_values=cache)
        assert (seen[0].weights(1).sum(-1) - 1).abs().max() < 2e-6
    assert torch.equal(seen[0].weights(1)[:LENGTH, :LENGTH], before)


@torch.no_grad()
def test_a_compiled_model_is_recorded():
    """Without a compiler at work: inside of the block everything runs as it was written."""

    def never(graph, inputs):
        raise AssertionError("compiled")

    model = FAMILIES["llama"].build()
    ids, _ = padded(1, LENGTH, "none")
    with regard.watch(model) as wanted:
        model(input_ids=ids)
    compiled = torch.compile(model, backend=never)
    with regard.watch(compiled) as seen:
        compiled(input_ids=ids)
    assert repr(seen) == "<Recording of LlamaForCausalLM: 2 calls>"
    assert [call.name for call in seen] == [call.name for call in wanted]
    assert torch.equal(seen[1].q, wanted[1].q)
    with pytest.raises(Exception, match="compiled"):
        torch.compile(lambda x: x + 1, backend=never)(ids)  # after the block there is a compiler again


def test_watches_of_compiled_models_leave_in_any_order(llama, inputs):
    """As threads do: the first to come may be the first to go."""

    def never(graph, inputs):
        raise AssertionError("compiled")

    compiled = torch.compile(llama, backend=never)
    first, second = regard.watch(compiled), regard.watch(compiled)
    first.__enter__()
    second.__enter__()
    compiled(**inputs)
    first.__exit__(None, None, None)
    compiled(**inputs)
    second.__exit__(None, None, None)
    with pytest.raises(Exception, match="compiled"):
        torch.compile(lambda x: x + 1, backend=never)(inputs["input_ids"])


@torch.no_grad()
def test_values_and_dtype(llama, inputs):
    with regard.watch(llama, values=True, dtype=torch.float16) as seen:
        llama.generate(**inputs, max_new_tokens=4, do_sample=False)
    call = seen[0]
    assert {x.dtype for x in (call.q, call.k, call.v)} == {torch.float16}
    assert call.v.shape == call.k.shape == (2, 2, LENGTH + 3, 6)
    with regard.watch(llama) as exact:
        llama.generate(**inputs, max_new_tokens=4, do_sample=False)
    assert exact[0].v is None
    assert (all_weights(call) - all_weights(exact[0])).abs().max() < 5e-3


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt_oss", "gemma2", "bart", "t5"])
@torch.no_grad()
def test_statistics_alone_are_those_of_the_whole(name):
    """Also of generated text, whose rows come one by one, and of keys that a sliding cache has dropped."""
    family = FAMILIES[name]
    model = family.build()
    inputs = {key: x for key, x in inputs_of(family, "left").items() if not key.startswith("decoder")}
    options = {"max_new_tokens": 9, "do_sample": False}
    with regard.watch(model) as whole:
        model.generate(**inputs, **options)
    with regard.watch(model, statistics=True, top=3) as kept:
        model.generate(**inputs, **options)
    assert len(kept) == len(whole)
    for mine, other in zip(kept, whole):
        assert isinstance(mine, regard.recording.SummaryCall)
        assert mine.shape == other.shape
        wanted, found = other.statistics(top=2), mine.statistics(top=2)
        sees = wanted.visible > 0
        for field in fields(wanted):
            a, b = getattr(found, field.name), getattr(wanted, field.name)
            if field.name in ("output", "peak_key", "top_keys"):
                continue
            assert a.shape == b.shape, field.name
            if field.name == "lse":
                a, b = a[sees], b[sees]
            assert (a - b).abs().max() < 2e-5, (field.name, mine)
        same = found.peak_key == wanted.peak_key
        assert (same | (found.peak - mine.statistics(top=2).top_weights[..., 1] < 1e-4)).all()
    assert kept.nbytes < whole.nbytes * 4


@torch.no_grad()
def test_kept_statistics_give_no_weights_and_no_more_tops(llama, inputs):
    with regard.watch(llama, statistics=True, top=2) as seen:
        llama(**inputs)
    with pytest.raises(RecordingError, match=r"Weights need Q and K, but model.layers.0.self_attn kept"):
        seen[0].weights(0)
    with pytest.raises(RecordingError, match=r"with the 2 greatest weights of each row. Got top = 3"):
        seen[0].statistics(top=3)
    assert seen[0].statistics().top_weights.shape[-1] == 2  # as many as were kept, without asking again
    assert seen[0].statistics(top=1).top_keys.shape[-1] == 1
    assert seen[0].statistics(top=0).top_weights is None


@torch.no_grad()
def test_parts_of_the_matrix(llama, inputs):
    with regard.watch(llama) as seen:
        llama(**inputs)
    whole = seen[1].weights(3, batch=1)
    assert torch.equal(
        seen[1].weights(3, rows=slice(4, 9, 2), columns=[5, 1], batch=1), whole[4:9:2][:, [5, 1]]
    )
    assert torch.equal(seen[1].weights(3, rows=-1, columns=slice(2), batch=1), whole[-1:, :2])
    assert seen[1].weights(0, rows=[]).shape == (0, LENGTH)
    assert torch.equal(whole[:3], torch.zeros(3, LENGTH))  # padding sees nothing
    with pytest.raises(ArgumentError, match=r"rows must be a slice or positions below 11. Got 11"):
        seen[0].weights(0, rows=11)
    with pytest.raises(ArgumentError, match=r"one of the recorded heads .* \(0 … 3\). Got head = 4"):
        seen[0].weights(4)
    with pytest.raises(ArgumentError, match=r"recorded sequences \(0 … 1\). Got batch = 2"):
        seen[0].weights(0, batch=2)


def test_the_sizes_are_said_before(llama, inputs):
    with torch.no_grad(), regard.watch(llama) as seen:
        llama(**inputs)
    said = regard.recording.estimate(llama, LENGTH, batch=2)
    assert (said.calls, said.nbytes) == (2, seen.nbytes)
    family = FAMILIES["bart"]
    model, both = family.build(), inputs_of(family, "right")
    with torch.no_grad(), regard.watch(model, dtype=torch.float16, values=True) as seen:
        model(**both)
    said = regard.recording.estimate(
        model, both["decoder_input_ids"].shape[1], LENGTH, batch=2, dtype=torch.float16, values=True
    )
    assert (said.calls, said.nbytes) == (len(seen), seen.nbytes)
    with torch.no_grad(), regard.watch(llama, statistics=True, top=3, layers=[1]) as seen:
        llama(**inputs)
    said = regard.recording.estimate(llama, LENGTH, batch=2, statistics=True, top=3, layers=[1])
    assert said.nbytes == seen.nbytes
    assert str(regard.recording.estimate(llama, 4096)) == "2 calls, 1.31 MB (the matrices: 537 MB)"


def test_a_grouped_config_keeps_its_groups(llama, inputs):
    with torch.no_grad(), regard.watch(llama) as seen:
        llama(**inputs)
    assert seen[0].k.shape[1] == GROUPED["num_key_value_heads"]
    assert repr(seen[0]) == "<decoder 'model.layers.0.self_attn', layer 0: 2 × 4 heads, 11 queries × 11 keys>"


@torch.no_grad()
def test_a_model_of_transformers_inside_another_module(inputs):
    """As sentence encoders and adapters have it; whatever else attends in there is seen through torch."""

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = FAMILIES["llama"].build().model
            self.outer = torch.nn.MultiheadAttention(24, 4, batch_first=True)

        def forward(self, **inputs):
            hidden = self.inner(**inputs).last_hidden_state
            return self.outer(hidden, hidden, hidden)[0]

    model = Wrapped().eval()
    plain = model(**inputs)
    with regard.watch(model, layers=[0]) as first, regard.watch(model) as seen:
        watched = model(**inputs)
    rows = inputs["attention_mask"].bool()
    assert (plain[rows] - watched[rows]).abs().max() < 1e-5
    names = [
        ("inner.layers.0.self_attn", "decoder"),
        ("inner.layers.1.self_attn", "decoder"),
        ("outer", "encoder"),
    ]
    assert [(call.name, call.kind) for call in seen] == names
    assert [call.name for call in first] == ["inner.layers.0.self_attn", "outer"]
    assert "causal() & padding" in repr(seen[0].mask)
    assert model.inner.config._attn_implementation == "sdpa"
