import pytest
import torch

import regard
from parity import tensors
from regard import masks

MASKS = {"full": None, "window": masks.window(20, 20), "gathered": masks.local_global(8)}


@pytest.mark.usefixtures("always_tiled")
@pytest.mark.parametrize("mask", [pytest.param(mask, id=name) for name, mask in MASKS.items()])
@pytest.mark.parametrize("length", [40, 150])
def test_dropout_leaves_the_mean_and_follows_the_seed(mask, length):
    q, k, v = tensors(2, queries=length)
    wanted = regard.attention(q, k, v, mask=mask)
    torch.manual_seed(1)
    first = regard.attention(q, k, v, mask=mask, dropout=0.2)
    other = regard.attention(q, k, v, mask=mask, dropout=0.2)
    torch.manual_seed(1)
    again = regard.attention(q, k, v, mask=mask, dropout=0.2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    mean = sum(regard.attention(q, k, v, mask=mask, dropout=0.2) for _ in range(60)) / 60
    assert (mean - wanted).abs().mean() < 0.3 * (first - wanted).abs().mean()


def test_the_way_back_drops_what_the_way_forth_dropped():
    # With k = 0 every weight is 1/n, so the gradient of v shows exactly what was dropped.
    n = 300
    q, k, v = tensors(heads=1, queries=n, channels=n, values=n)
    k, v = torch.zeros_like(k), torch.eye(n, dtype=torch.float64)[None].requires_grad_()
    output = regard.attention(q, k, v, mask=masks.window(n, n) & masks.window(200, 200), dropout=0.5)
    kept = output.detach()  # output_ij is the kept weight itself, for v is the identity
    grad = torch.randn_like(output)
    (found,) = torch.autograd.grad(output, v, grad)
    assert torch.allclose(found, kept.transpose(-1, -2) @ grad)
    assert 0.4 < (kept == 0)[:, :100, :100].double().mean() < 0.6
