"""torch.compile, torch.export, vmap, torch.func and tensors without data."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import regard
from parity import assert_close, tensors
from regard import biases, masks
from regard.kernels import traced_call as _registers_the_operators  # noqa: F401

MASKS = {
    "none": None,
    "causal": masks.causal(),
    "window": masks.causal() & masks.window(20, 0),
    "documents": masks.causal() & masks.documents(torch.arange(90) // 30),
    "tensor": torch.rand(90, 90, generator=torch.Generator().manual_seed(1)) > 0.3,
}


class Layer(torch.nn.Module):
    def __init__(self, mask, **options):
        super().__init__()
        self.mask, self.options = mask, options
        self.project = torch.nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        return regard.attention(q, k, v, mask=self.mask, **self.options).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_a_compiled_layer_is_one_graph_with_the_same_result_and_gradients(mask):
    torch._dynamo.reset()
    layer, x = Layer(mask), torch.randn(2, 90, 32)
    wanted = layer(x)
    wanted.square().sum().backward()
    grad, layer.project.weight.grad = layer.project.weight.grad, None
    found = torch.compile(layer, fullgraph=True, backend="aot_eager")(x)
    found.square().sum().backward()
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(layer.project.weight.grad, grad)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_an_exported_layer(mask):
    layer, x = Layer(mask), torch.randn(2, 90, 32)
    exported = torch.export.export(layer, (x,), strict=True).module()
    torch.testing.assert_close(exported(x), layer(x))


@pytest.mark.parametrize("options", [{"softcap": 2.0}, {"scale": -0.3}, {"sinks": True}, {"bias": True}])
def test_the_operator_differentiates_every_option(options):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=9, channels=6, values=5, grad=True)
    if "sinks" in options:
        options = {"sinks": torch.randn(4, dtype=q.dtype, requires_grad=True)}
    if "bias" in options:
        options = {"bias": torch.randn(4, 9, 9, dtype=q.dtype, requires_grad=True)}
    learned = [q, k, v, *(x for x in options.values() if isinstance(x, torch.Tensor))]
    mask = masks.window(3, 1)
    wanted = torch.autograd.grad(regard.attention(q, k, v, mask=mask, **options).square().sum(), learned)
    full = {"bias": None, "sinks": None, "scale": None, "softcap": None, **options}
    output = torch.ops.regard.attention(
        q, k, v, None, full["bias"], full["sinks"], repr(mask), full["scale"], full["softcap"]
    )[0]
    for own, other in zip(torch.autograd.grad(output.square().sum(), learned), wanted):
        assert_close(own, other, q.dtype)


@pytest.mark.parametrize("mask", ["", "window(3, 1)", "every(2)"])
def test_the_operators_keep_what_their_fakes_promise(mask):
    """Shapes, dtypes and strides; inductor relies on them, with queries that are a view as in every model."""
    q, k, v = (torch.randn(2, 9, 4, 8).transpose(1, 2) for _ in range(3))
    options = (None, torch.randn(4, 9, 9).mT, torch.randn(4), mask, None, None)
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.regard.attention.default, (q, k, v, *options), test_utils=checks)
    output, lse = torch.ops.regard.attention(q, k, v, *options)
    grad = torch.randn_like(output)
    arguments = (grad, output, lse, q, k, v, *options)
    torch.library.opcheck(torch.ops.regard.attention_backward.default, arguments, test_utils=checks)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch itself
def test_a_call_compiled_by_inductor():
    """The backend that users get; aot_eager, which the other tests use, does not check strides.

    Both graphs hold our operators alone: compiling what inductor writes in C++ would take half a minute.
    """
    torch._dynamo.reset()
    views = [torch.randn(2, 90, 4, 8).transpose(1, 2).requires_grad_() for _ in range(3)]  # as in every model

    def attend(q, k, v):
        return regard.attention(q, k, v, mask=MASKS["window"])

    wanted, found = attend(*views), torch.compile(attend, fullgraph=True)(*views)
    torch.testing.assert_close(found, wanted)
    grads = (torch.autograd.grad(output.square().sum(), views) for output in (found, wanted))
    for own, other in zip(*grads):
        torch.testing.assert_close(own, other)


def test_what_cannot_be_compiled_says_so():
    from regard.kernels.traced_call import traced_call

    q, k, v = tensors(1)
    with pytest.raises(regard.errors.ArgumentError, match="without dropout"):
        traced_call(q, k, v, None, None, None, None, None, 0.5)
    with pytest.raises(regard.errors.ArgumentError, match="bias that is a tensor"):
        traced_call(q, k, v, None, biases.alibi(3), None, None, None, 0.0)


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.parametrize("mask", [masks.window(2, 0), masks.every(3), masks.documents(torch.arange(150) % 2)])
def test_vmap_and_func_grad_over_tiles(mask):
    q, k, v = tensors(3, 2, queries=150)

    def attend(q, k, v):
        return regard.attention(q, k, v, mask=mask)

    assert_close(torch.vmap(attend)(q, k, v), attend(q, k, v), q.dtype)
    shared = attend(q, k[:1].expand_as(k), v[:1].expand_as(v))
    assert_close(torch.vmap(attend, in_dims=(0, None, None))(q, k[0], v[0]), shared, q.dtype)

    def loss(q, k, v):
        return attend(q, k, v).square().sum()

    wanted = torch.autograd.grad(loss(*(x.requires_grad_() for x in (q, k, v))), (q, k, v))
    for own, other in zip(torch.func.grad(loss, argnums=(0, 1, 2))(q, k, v), wanted):
        assert_close(own, other, q.dtype)
    for own, other in zip(torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(q, k, v), wanted):
        assert_close(own, other, q.dtype)


@pytest.mark.usefixtures("always_tiled")
def test_a_second_derivative_of_tiles_is_refused_by_name():
    q, k, v = tensors(1, queries=150, grad=True)
    (grad,) = torch.autograd.grad(
        regard.attention(q, k, v, mask=masks.window(2, 0)).square().sum(), q, create_graph=True
    )
    with pytest.raises(regard.errors.ArgumentError, match="first derivatives"):
        grad.sum().backward()


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # torch's own call
def test_forward_mode_derivatives_of_tiles_are_refused_by_name():
    q, k, v = tensors(1, queries=150)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, q)
        with pytest.raises(regard.errors.ArgumentError, match="forward-mode derivatives"):
            regard.attention(dual, k, v, mask=masks.window(2, 0))


def test_statistics_under_vmap_are_refused_by_name():
    q, k, v = tensors(2, 3, queries=50)
    with pytest.raises(regard.errors.ArgumentError, match="leading axes"):
        torch.vmap(lambda q, k, v: regard.attention_statistics(q, k, v).entropy)(q, k, v)


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(9, 0), masks.every(3)], ids=str)
def test_tensors_without_data(mask):
    for values in (5, 7):
        q, k, v = (x.to("meta") for x in tensors(2, heads=4, key_heads=2, queries=150, values=values))
        assert regard.attention(q, k, v, mask=mask).shape == (2, 4, 150, values)
        found = regard.attention_statistics(q, k, v, mask=mask, top=3)
        assert (found.output.shape, found.output.device.type) == ((2, 4, 150, values), "meta")
        assert found.entropy.shape == (2, 4, 150)
        assert found.top_keys.shape == (2, 4, 150, 3)
    with FakeTensorMode():
        q, k, v = (torch.randn(2, 4, 150, 8) for _ in range(3))
        assert regard.attention(q, k, v, mask=mask).shape == (2, 4, 150, 8)
        assert regard.attention_statistics(q, k, v, mask=mask).entropy.shape == (2, 4, 150)


@pytest.mark.parametrize("additive", [False, True])
def test_a_mask_without_data_is_refused_by_name(additive):
    q, k, v = tensors(2, queries=30)
    mask = torch.empty(30, 30, dtype=q.dtype if additive else torch.bool, device="meta")
    for work in (regard.attention, regard.attention_statistics):
        with pytest.raises(regard.errors.DeviceError, match="without data"):
            work(*(x.to("meta") for x in (q, k, v)), mask=mask)
