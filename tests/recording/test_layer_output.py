"""From the heads to the output of the layer: W_O with its bias, and the residual that was found."""

import threading
from dataclasses import replace

import pytest
import torch
from torch import nn

import regard
from recording.families import FAMILIES, inputs_of
from regard import edits, masks
from regard.errors import RecordingError
from regard.recording import Recording

ADDS_SOMETHING_ELSE = ("gpt_neox", "gemma2")
"""GPT-NeoX adds its feed-forward block in the same sum, Gemma 2 has a norm between: neither is x + y."""

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def sums_read(model, run):
    """The inputs of all norms while the model runs: the sums are among them."""
    read = []
    hooks = [
        part.register_forward_pre_hook(
            lambda module, args, kwargs: read.append((args or tuple(kwargs.values()))[0].detach()),
            with_kwargs=True,
        )
        for part in model.modules()
        if "norm" in type(part).__name__.lower()
    ]
    with torch.no_grad():
        run()
    for hook in hooks:
        hook.remove()
    return read


def is_read(call, read, turned=False):
    """Whether a norm read the output of the layer of every sequence."""
    wanted = torch.stack([call.layer_output(batch=batch) for batch in range(call.batch)])
    wanted = wanted.transpose(0, 1) if turned else wanted
    return any(one.shape == wanted.shape and torch.allclose(one, wanted, **CLOSE) for one in read)


def recorded(model, run, **options):
    with torch.no_grad(), regard.watch(model, projections=True, **options) as seen:
        run()
    return seen


# ---- against what the modules compute ----------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in ADDS_SOMETHING_ELSE])
def test_the_output_of_every_layer_is_what_its_next_norm_reads(name):
    family = FAMILIES[name]
    model = family.build()
    inputs = inputs_of(family, "none")
    seen = recorded(model, lambda: model(**inputs))
    read = sums_read(model, lambda: model(**inputs))
    assert len(seen)
    for call in seen:
        assert is_read(call, read), call
        wrong = replace(call, residual=call.residual + 0.01)
        assert not is_read(wrong, read)


@pytest.mark.parametrize("name", ADDS_SOMETHING_ELSE)
def test_blocks_that_add_something_else_have_no_residual(name):
    model, inputs = FAMILIES[name].build(), inputs_of(FAMILIES[name], "none")
    for call in recorded(model, lambda: model(**inputs)):
        assert call.residual is None
        with pytest.raises(RecordingError, match=r"the output of .* is added to, which was not"):
            call.layer_output()
        assert call.projected(0, rows=2).shape == (1, 24)  # W_O is known


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_torch_layers(first, norm_first):
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(12, 3, 17, batch_first=first, norm_first=norm_first),
        2,
        enable_nested_tensor=False,
    ).eval()
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(12, 3, 17, batch_first=first, norm_first=norm_first), 2
    ).eval()
    for layer in (*encoder.layers, *decoder.layers):
        nn.init.normal_(layer.self_attn.out_proj.bias)
    text, other = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    text, other = (x if first else x.transpose(0, 1) for x in (text, other))
    for model, inputs in ((encoder, (text,)), (decoder, (text, other))):
        seen = recorded(model, lambda model=model, inputs=inputs: model(*inputs))
        read = sums_read(model, lambda model=model, inputs=inputs: model(*inputs))
        assert len(seen) == (2 if model is encoder else 4)
        assert all(is_read(call, read, turned=not first) for call in seen)
        assert not is_read(replace(seen[0], projection_bias=None), read, turned=not first)


def test_a_text_without_a_batch():
    model = nn.TransformerEncoderLayer(12, 3, 17).eval()
    x = torch.randn(5, 12)
    call = recorded(model, lambda: model(x))[0]
    read = sums_read(model, lambda: model(x))
    torch.testing.assert_close(read[0], call.layer_output(), **CLOSE)


def test_models_of_regard():
    model = regard.nn.LanguageModel(40, width=24, heads=4, layers=3).eval()
    ids = torch.randint(1, 40, (2, 7))
    read = sums_read(model, lambda: model(ids))
    assert all(is_read(call, read) for call in recorded(model, lambda: model(ids)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    model, inputs = FAMILIES["llama"].build().to(dtype), inputs_of(FAMILIES["llama"], "right")
    seen = recorded(model, lambda: model(**inputs))
    read = sums_read(model, lambda: model(**inputs))
    for call in seen:
        assert call.residual.dtype == dtype
        found = call.layer_output(batch=1)
        error = min((one[1] - found).abs().max() for one in read if one.shape[1:] == found.shape)
        assert error < (0.05 if dtype == torch.bfloat16 else 1e-9) * found.abs().max()


def test_parts_add_up():
    model, inputs = FAMILIES["gpt2"].build(), inputs_of(FAMILIES["gpt2"], "right")
    call = recorded(model, lambda: model(**inputs))[1]
    rows = [4, 1]
    parts = call.projected(None, rows, batch=1)  # (head, rows, width)
    torch.testing.assert_close(parts[2], call.projected(2, rows, batch=1))
    wanted = torch.einsum("hqc,hcw->hqw", call.output()[1][:, rows], call.projections)
    torch.testing.assert_close(parts, wanted, **CLOSE)
    whole = call.residual[1, rows] + parts.sum(0) + call.projection_bias
    torch.testing.assert_close(call.layer_output(rows, batch=1), whole)
    torch.testing.assert_close(call.layer_output(1, batch=1), whole[1:])


# ---- generation, beams, checkpointing, edits ------------------------------------------------------


def test_a_text_read_in_pieces():
    model = FAMILIES["gpt2"].build()
    ids = torch.randint(3, 60, (2, 9))
    whole = recorded(model, lambda: model(input_ids=ids))

    def in_pieces():
        cache = model(input_ids=ids[:, :4], use_cache=True).past_key_values
        for piece in (ids[:, 4:5], ids[:, 5:]):
            cache = model(input_ids=piece, past_key_values=cache, use_cache=True).past_key_values

    for mine, other in zip(recorded(model, in_pieces), whole, strict=True):
        torch.testing.assert_close(mine.residual, other.residual, **CLOSE)
        torch.testing.assert_close(mine.layer_output(), other.layer_output(), **CLOSE)


def test_the_texts_of_a_beam_search():
    model = FAMILIES["llama"].build()
    ids = torch.randint(3, 60, (2, 5))
    texts = []
    seen = recorded(
        model, lambda: texts.append(model.generate(ids, num_beams=3, max_new_tokens=6, do_sample=False))
    )
    read = texts[0][:, :-1]
    wanted = recorded(model, lambda: model(input_ids=read))
    for mine, other in zip(seen, wanted, strict=True):
        torch.testing.assert_close(mine.residual, other.residual, **CLOSE)


def test_checkpointing_records_a_residual_once():
    model = FAMILIES["llama"].build()
    ids = torch.randint(3, 60, (1, 6))
    plain = recorded(model, lambda: model(input_ids=ids))
    model.gradient_checkpointing_enable()
    model.train()
    with regard.watch(model, gradients=True, projections=True) as seen:
        model(input_ids=ids, use_cache=False).logits.square().mean().backward()
    for mine, other in zip(seen, plain, strict=True):
        torch.testing.assert_close(mine.residual, other.residual, **CLOSE)


def test_an_edited_head_has_no_residual():
    """The layer got something else than the heads that were recorded, so their sum is not its output."""
    model, inputs = FAMILIES["llama"].build(), inputs_of(FAMILIES["llama"], "none")
    with regard.edit(model, edits.remove(layers=[1], heads=[2])):
        seen = recorded(model, lambda: model(**inputs))
    assert seen[0].residual is not None
    assert seen[1].residual is None
    with regard.edit(model, edits.block(masks.span(1, 3), layers=[1])):
        seen = recorded(model, lambda: model(**inputs))
    assert seen[1].residual is not None  # what was recorded is what was computed


def test_another_thread_changes_nothing():
    model, inputs = FAMILIES["llama"].build(), inputs_of(FAMILIES["llama"], "none")
    plain = recorded(model, lambda: model(**inputs))

    def both():
        other = threading.Thread(target=lambda: model(**{**inputs, "input_ids": inputs["input_ids"].flip(1)}))
        other.start()
        model(**inputs)
        other.join()

    for mine, other in zip(recorded(model, both), plain, strict=True):
        torch.testing.assert_close(mine.residual, other.residual)


class Gated(nn.Module):
    """A block that changes the heads before the projection, or its output behind it."""

    def __init__(self, before: float, after: float, together: bool = False) -> None:
        super().__init__()
        self.norm, self.next_norm = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out_proj = nn.Linear(8, 24), nn.Linear(8, 8)
        self.before, self.after, self.together = before, after, together

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        heads = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        y = self.out_proj(self.before * heads)
        if self.together:
            x = x.add_(y)
            return self.next_norm(x)
        return self.next_norm(x + self.after * y)


@pytest.mark.parametrize(
    ("options", "found"),
    [((1.0, 1.0), True), ((0.5, 1.0), False), ((1.0, 0.5), False), ((1.0, 1.0, True), False)],
)
def test_only_plain_sums_are_residuals(options, found):
    model = Gated(*options).eval()
    call = recorded(model, lambda: model(torch.randn(2, 5, 8)))[0]
    assert (call.residual is not None) == found
    assert call.projection is not None


# ---- what a recording keeps ----------------------------------------------------------------------


def small():
    model = FAMILIES["bert"].build()
    inputs = inputs_of(FAMILIES["bert"], "none")
    return model, lambda: model(**inputs)


@pytest.mark.parametrize("dtype", [None, torch.float16])
def test_saved_and_loaded(tmp_path, dtype):
    seen = recorded(*small(), dtype=dtype)
    seen.save(tmp_path / "seen.safetensors")
    again = regard.load(tmp_path / "seen.safetensors")
    for one, other in zip(seen, again, strict=True):
        assert torch.equal(one.layer_output(batch=1), other.layer_output(batch=1))
        assert other.residual.dtype == (dtype or torch.float32)


def test_a_file_without_residuals_loads(tmp_path):
    """As earlier versions wrote it."""
    seen = recorded(*small())
    bare = [replace(call, residual=None, projection_bias=None) for call in seen]
    Recording("model", bare).save(tmp_path / "old.safetensors")
    call = regard.load(tmp_path / "old.safetensors")[0]
    assert call.projected(1).shape == (call.queries, 24)
    with pytest.raises(RecordingError, match="which was not recorded or not found"):
        call.layer_output()


@pytest.mark.parametrize("name", ["residual", "projection_bias"])
def test_a_file_must_be_complete(tmp_path, name):
    call = replace(recorded(*small())[0], projection=None)
    others = {"residual": None, "projection_bias": None, name: getattr(call, name)}
    with pytest.raises(RecordingError, match=f"The {name} of .* must come with projection"):
        Recording("model", [replace(call, **others)]).save(tmp_path / "x.safetensors")


def test_sizes_must_fit(tmp_path):
    call = recorded(*small())[0]
    with pytest.raises(RecordingError, match=r"The shape of residual in .* must be"):
        Recording("model", [replace(call, residual=call.residual[:, 1:])]).save(tmp_path / "x.safetensors")
    spoilt = replace(call, residual=call.residual * torch.nan)
    with pytest.raises(RecordingError, match="NaN"):
        Recording("model", [spoilt]).save(tmp_path / "x.safetensors")


def test_selections():
    call = recorded(*small())[0]
    one = call.select(1)
    torch.testing.assert_close(one.layer_output(), call.layer_output(batch=1))
    with pytest.raises(RecordingError, match=r"needs all of its heads\. Got heads 0, 1 of"):
        call.select(heads=[0, 1]).layer_output()
    torch.testing.assert_close(call.select(1, [2]).projected(2), call.projected(2, batch=1))


def test_a_given_projection():
    model, run = small()
    name = "encoder.layer.0.attention.self"
    linear = model.encoder.layer[0].attention.output.dense
    plain = recorded(model, run)
    with torch.no_grad(), regard.watch(model, projections={name: linear}) as seen:
        run()
    assert torch.equal(seen[0].layer_output(), plain[0].layer_output())
    with torch.no_grad(), regard.watch(model, projections={name: linear.weight}) as seen:
        run()
    assert seen[0].residual is None  # nobody knows which module it belongs to, and its bias
    assert seen[0].projection_bias is None
    assert torch.equal(seen[1].layer_output(), plain[1].layer_output())


def test_statistics_alone_have_no_output_of_the_layer():
    model, run = small()
    with torch.no_grad(), regard.watch(model, statistics=True) as seen:
        run()
    with pytest.raises(RecordingError):
        seen[0].layer_output()


def test_a_watch_leaves_no_hook():
    model, run = small()
    recorded(model, run)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
