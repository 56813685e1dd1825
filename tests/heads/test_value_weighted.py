"""Value-weighted attention: its norms, and that the projection found is the one that the model uses."""

import pytest
import torch
from torch import nn

import regard
from recording.families import FAMILIES, all_weights, inputs_of
from regard import heads
from regard.errors import DtypeError, RecordingError, ShapeError
from regard.recording.output_projection import output_weight


def owner_of(model, weight):
    """The linear module whose weight this is."""
    found = [
        module
        for module in model.modules()
        if isinstance(getattr(module, "weight", None), torch.Tensor)
        and module.weight.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()
        and module.weight.numel() == weight.numel()
    ]
    assert len(found) == 1
    return found[0]


def check_projections(model, run):
    """The inputs of the projections that were found are the outputs of the heads, side by side."""
    with torch.no_grad(), regard.watch(model, values=True) as seen:
        run()
    given = {}
    hooks = []
    for number, call in enumerate(seen):
        owner = owner_of(model, output_weight(model, call))
        keep = lambda module, inputs, number=number: given.setdefault(number, inputs[0])  # noqa: E731
        hooks.append(owner.register_forward_pre_hook(keep))
    with torch.no_grad():
        run()
    for hook in hooks:
        hook.remove()
    for number, call in enumerate(seen):
        group = call.heads // call.v.shape[1]
        output = all_weights(call) @ call.v.repeat_interleave(group, 1)  # (batch, head, query, channel)
        beside = output.transpose(1, 2).flatten(2)
        torch.testing.assert_close(given[number].reshape(beside.shape), beside, atol=1e-4, rtol=1e-4)
    return seen


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in ("albert", "whisper")])
def test_the_projection_is_found_in_models_of_transformers(name):
    family = FAMILIES[name]
    model, inputs = family.build(), inputs_of(family, "none")
    check_projections(model, lambda: model(**inputs))


def test_the_projection_is_found_in_torch_and_in_regard():
    ours = regard.nn.LanguageModel(40, width=24, heads=4, layers=2).eval()
    ids = torch.randint(1, 40, (2, 7))
    check_projections(ours, lambda: ours(ids))
    alone = nn.MultiheadAttention(12, 3, batch_first=True)
    x = torch.randn(2, 5, 12)
    with torch.no_grad(), regard.watch(alone, values=True) as seen:
        alone(x, x, x)
    assert torch.equal(output_weight(alone, seen[0]), alone.out_proj.weight)
    layers = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(12, 3, batch_first=True), 2, enable_nested_tensor=False
    ).eval()
    with torch.no_grad(), regard.watch(layers, values=True) as seen:
        layers(x)
    assert torch.equal(output_weight(layers, seen[1]), layers.layers[1].self_attn.out_proj.weight)


def test_norms_are_those_of_the_vectors_that_are_added():
    model = FAMILIES["llama"].build()
    inputs = inputs_of(FAMILIES["llama"], "right")
    with torch.no_grad(), regard.watch(model, values=True, heads=[1, 2]) as seen:
        model(**inputs)
    call = seen[1]
    weight = model.model.layers[1].self_attn.o_proj.weight.detach().double()
    found = heads.value_weighted(call, model)
    for index, head in enumerate(call.head_numbers):
        part = weight[:, 6 * head : 6 * head + 6]  # (width, channel)
        for batch in range(2):
            added = call.v[batch, index].double() @ part.T
            wanted = call.weights(head, batch=batch) * added.norm(dim=-1)
            torch.testing.assert_close(found.weights(head, batch=batch), wanted.float(), atol=1e-5, rtol=1e-5)
            some = found.weights(head, rows=[2, 5], columns=slice(1, 4), batch=batch)
            torch.testing.assert_close(some, wanted.float()[[2, 5], 1:4], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(
                found.received()[batch, index], wanted.sum(0).float(), atol=1e-4, rtol=1e-4
            )
    for given in (model.model.layers[1].self_attn.o_proj, weight):
        assert torch.equal(heads.value_weighted(call, given).norms, found.norms)


def test_a_value_of_zero_adds_nothing_however_much_it_is_looked_at():
    layer = regard.nn.MultiHeadAttention(8, 2)
    with torch.no_grad():
        layer.projection.weight[16:] = 0  # the values
        layer.projection.bias[16:] = 0
        with regard.watch(layer, values=True) as seen:
            layer(torch.randn(1, 5, 8))
    assert not heads.value_weighted(seen[0], layer).weights(0).any()


def test_what_is_refused():
    model = FAMILIES["bert"].build()
    inputs = inputs_of(FAMILIES["bert"], "none")
    with torch.no_grad(), regard.watch(model, values=True) as seen:
        model(**inputs)
    with torch.no_grad(), regard.watch(model) as without:
        model(**inputs)
    with pytest.raises(RecordingError, match=r"needs V, but encoder.* was recorded without it. Record with"):
        heads.value_weighted(without[0], model)
    with pytest.raises(DtypeError, match=r"needs one call of a recording. Got Recording"):
        heads.value_weighted(seen, model)
    with pytest.raises(DtypeError, match=r"must be the watched model.* Got str"):
        heads.value_weighted(seen[0], "bert")
    with pytest.raises(DtypeError, match=r"\(width, heads · channel\). Got torch.int64 of shape"):
        heads.value_weighted(seen[0], torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ShapeError, match=r"heads ≥ 4, channels = 6\). Got 18 inputs"):
        heads.value_weighted(seen[0], torch.zeros(24, 18))
    with pytest.raises(RecordingError, match=r"from the model that is passed. Got Sequential, which"):
        heads.value_weighted(seen[0], nn.Sequential(nn.Linear(2, 2)))

    class Bare(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x)

    bare = Bare()
    with regard.watch(bare, values=True) as seen:
        bare(torch.randn(1, 2, 3, 4))
    with pytest.raises(RecordingError, match=r"projection of 'Bare' must be called .* Got none in Bare"):
        heads.value_weighted(seen[0], bare)
