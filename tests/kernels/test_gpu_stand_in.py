"""What only runs on a GPU, run here with a stand-in: FlexAttention compiled, and how often it is compiled."""

from importlib import import_module

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.attention.flex_attention import flex_attention
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from kernels.test_statistics import assert_statistics, by_definition
from parity import assert_close, definition, tensors
from regard import biases, masks
from regard.kernels import device_tables, fused_kernel, statistics_pass, statistics_torch, tile_pass
from regard.kernels.compiled_pass import SWITCH

kernel = import_module("regard.kernels.functional")


@pytest.fixture
def compilations(monkeypatch, always_tiled):
    """``attention()`` takes the way of a GPU; the result counts what torch compiled, by a quick backend."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(flex_attention, backend=counter, dynamic=False)
    monkeypatch.setattr(kernel, "FLEX_DEVICES", ("cpu",))
    monkeypatch.setattr(kernel, "_compiled", lambda: compiled)
    kernel._cached_block_mask.cache_clear()
    yield counter
    kernel._cached_block_mask.cache_clear()
    torch._dynamo.reset()


N = 150  # longer than a block of FlexAttention


def ids(seed):
    return np.sort(np.random.default_rng(seed).integers(0, 6, N))


FAMILIES = {
    "documents": [masks.causal() & masks.documents(ids(seed)) for seed in range(3)],
    "windows": [masks.window(w, 3) | masks.prefix(w // 4) for w in (9, 40, 100)],
    "padding": [masks.padding(lengths=[a, N]) & ~masks.every(a) for a in (70, 110)],
    "images": [masks.neighbourhood((10, 15), radius) for radius in (2, 3)],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_second_mask_of_a_kind_is_not_compiled_again(compilations, family):
    q, k, v = tensors(2, heads=4, key_heads=2, queries=N, channels=16, dtype=torch.float32)
    for mask in FAMILIES[family]:
        found = regard.attention(q, k, v, mask=mask)
        assert_close(found, definition(q, k, v, mask=mask).output, torch.float32)
        assert compilations.frame_count == 1


def test_another_kind_is_compiled(compilations):
    """The counter can count."""
    q, k, v = tensors(2, heads=2, queries=N, channels=16, dtype=torch.float32)
    for mask in (masks.window(9, 3), masks.window(9, None), masks.causal() & masks.documents(ids(0))):
        regard.attention(q, k, v, mask=mask)
    assert compilations.frame_count == 3


def test_all_layers_share_a_block_mask(compilations):
    q, k, v = tensors(1, heads=2, queries=N, channels=16, dtype=torch.float32)
    for _ in range(3):
        regard.attention(q, k, v, mask=masks.window(9, 3), softcap=2.0, sinks=torch.zeros(2))
    assert kernel._cached_block_mask.cache_info().hits == 2
    assert compilations.frame_count == 1


@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"bias": torch.zeros(N, N)}], ids=["dropout", "bias"])
def test_what_flex_attention_cannot_do_goes_to_the_tiles(compilations, options):
    q, k, v = tensors(1, heads=2, queries=N, channels=16, dtype=torch.float32)
    assert regard.attention(q, k, v, mask=masks.window(9, 3), **options).shape == q.shape
    assert compilations.frame_count == 0


class CountsReads(TorchDispatchMode):
    """Counts what would make the host wait for a GPU: reading a number, or a size that depends on data."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += function.overloadpacket in (
            torch.ops.aten._local_scalar_dense,
            torch.ops.aten.nonzero,
            torch.ops.aten.masked_select,
        )
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize(
    "mask",
    [masks.window(9, 3), masks.causal() & masks.documents(ids(0)), masks.window(9, 0) & ~masks.prefix(40).T],
    ids=["window", "documents", "rows that see nothing"],
)
@pytest.mark.parametrize("biased", [False, True])
def test_tiles_never_wait_for_the_device(monkeypatch, always_tiled, mask, biased):
    monkeypatch.setattr(tile_pass, "HOST", "none")
    monkeypatch.setattr(fused_kernel, "available", lambda: False)  # it is for CPUs only
    q, k, v = tensors(1, heads=2, queries=N, channels=16, dtype=torch.float32, grad=True)
    bias = torch.randn(2, N, N) if biased else None
    with CountsReads() as reads:
        output = regard.attention(q, k, v, mask=mask, bias=bias)
        output.sum().backward()
    assert reads.count == 0
    assert_close(output, definition(q, k, v, mask=mask, bias=bias).output, torch.float32)
    monkeypatch.setenv(SWITCH, "0")  # it is for CPUs only
    with CountsReads() as reads:
        regard.attention_statistics(q, k, v, mask=mask, bias=bias, top=2)
    assert reads.count == 0


# ---- one copy for each call ----------------------------------------------------------------------


@pytest.fixture
def copies(monkeypatch):
    """Tiles as on a GPU; the sizes of everything that is sent there."""
    sizes = []

    def counted(array, device):
        sizes.append(array.nbytes)
        return torch.from_numpy(array.copy()).to(device)

    def refused(*given):
        raise AssertionError("sent by a tile")

    monkeypatch.setattr(tile_pass, "HOST", "none")
    monkeypatch.setattr(device_tables, "sent", counted)
    monkeypatch.setattr(fused_kernel, "available", lambda: False)
    monkeypatch.setenv(SWITCH, "0")
    for module in (tile_pass, statistics_pass, statistics_torch):
        monkeypatch.setattr(module, "torch", _Torch(refused))
    return sizes


class _Torch:
    """Torch without a way to send arrays."""

    def __init__(self, from_numpy):
        self.from_numpy = from_numpy

    def __getattr__(self, name):
        return getattr(torch, name)


SENT = {
    "window": masks.window(9, 3),
    "documents": masks.causal() & masks.documents(ids(0)),
    "shuffled documents": masks.window(90, 3) & masks.documents(np.random.default_rng(1).permutation(ids(0))),
    "local and global": masks.local_global(20),
    "rows that see nothing": masks.window(9, 0) & ~masks.prefix(40).T,
    "a table for each head": torch.rand(2, N, N, generator=torch.Generator().manual_seed(3)) > 0.8,
    "images": masks.neighbourhood((10, 15), 2),
    "padding": masks.padding(lengths=[70]) & masks.window(30, 30),
}


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize(
    "options", [{}, {"bias": biases.alibi(2)}, {"softcap": 3.0}], ids=["plain", "bias", "softcap"]
)
def test_a_call_sends_its_masks_in_one_copy(copies, always_tiled, name, options):
    mask = SENT[name]
    q, k, v = tensors(1, heads=2, queries=N, channels=16, dtype=torch.float64, grad=True)
    output = regard.attention(q, k, v, mask=mask, **options)
    found = torch.autograd.grad(output.square().sum(), (q, k, v))
    # The backward pass has what was sent. A mask tensor on the device goes to SDPA where it can.
    assert len(copies) == (0 if isinstance(mask, torch.Tensor) and "softcap" not in options else 1)
    assert_close(output, definition(q, k, v, mask=mask, **options).output, q.dtype)
    dense = regard.attention_weights(q, k, mask=mask, **options) @ v
    for own, other in zip(found, torch.autograd.grad(dense.square().sum(), (q, k, v))):
        assert_close(own, other, torch.float32)


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize(
    "options",
    [{}, {"bias": biases.alibi(2)}, {"softcap": 3.0, "sinks": torch.tensor([0.3, -1.0]), "top": 3}],
    ids=["plain", "bias", "softcap, sinks and top"],
)
@pytest.mark.parametrize("rows", [7, 128])
def test_statistics_send_their_masks_in_one_copy(copies, always_tiled, monkeypatch, name, options, rows):
    monkeypatch.setattr(statistics_torch.TorchStatistics, "max_scores", rows * 2 * N)
    q, k, v = tensors(1, heads=2, key_heads=1, queries=N, channels=16)
    wanted = by_definition(q, k, v, mask=SENT[name], **{x: y for x, y in options.items() if x != "top"})
    found = regard.attention_statistics(q, k, v, mask=SENT[name], **options)
    assert len(copies) == 1
    assert_statistics(found, wanted, 1e-11, top=options.get("top", 0))


def test_without_a_mask_statistics_send_nothing(copies):
    q, k, v = tensors(2, heads=2, queries=N, channels=16)
    assert_statistics(regard.attention_statistics(q, k, v, top=2), by_definition(q, k, v), 1e-11, top=2)
    assert not copies


def test_tiles_with_equal_masks_are_sent_once(copies, always_tiled):
    q = torch.randn(1, 1, 4000, 16)
    regard.attention(q, q, q, mask=masks.window(9, 3))
    assert sum(copies) < 4000 * 76  # a byte for each pair would be 52 times as much as the first tile


@pytest.mark.parametrize("work", [regard.attention, regard.attention_statistics])
def test_what_is_sent_grows_with_the_length_and_not_with_its_square(copies, work):
    """Under a causal mask with a bias, only the tiles on the diagonal need a table."""
    for n in (2000, 4000):
        q = torch.randn(1, 1, n, 4)
        work(q, q, q, mask=masks.causal(), bias=biases.alibi(1))
    assert copies[1] < 2.2 * copies[0]
    assert copies[1] < 4000 * 600
