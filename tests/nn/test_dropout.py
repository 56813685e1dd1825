import pytest
import torch

from regard import nn


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.9])
def test_the_share_and_the_expectation(p):
    x = torch.ones(401, 997)
    dropped = nn.Dropout(p)(x)
    share = (dropped == 0).float().mean().item()
    spread = (p * (1 - p) / x.numel()) ** 0.5
    assert abs(share - p) < 5 * spread + 2**-16
    assert dropped.mean().item() == pytest.approx(1, abs=6 * spread / (1 - p))


def test_tosses_are_independent_of_their_neighbours():
    dropped = (nn.Dropout(0.5)(torch.ones(1 << 18)) == 0).double() - 0.5
    for step in (1, 2, 3, 4, 8):  # four of them come from one number
        assert abs((dropped[:-step] * dropped[step:]).mean().item()) < 5 * 0.25 / 512


def test_the_gradient_is_thinned_alike_and_a_seed_repeats_it():
    x = torch.randn(7, 3, requires_grad=True)  # no multiple of four
    dropout = nn.Dropout(0.3)
    torch.manual_seed(4)
    first = dropout(x)
    gradient = torch.autograd.grad(first.sum(), x)[0]
    assert torch.equal(gradient == 0, first == 0)
    torch.manual_seed(4)
    assert torch.equal(dropout(x), first)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 0, 3)])
def test_any_shape(shape):
    assert nn.Dropout(0.5)(torch.ones(shape)).shape == shape


def test_nothing_and_everything():
    x = torch.randn(5)
    assert nn.Dropout(0.0)(x) is x
    assert nn.Dropout(0.5).eval()(x) is x
    assert torch.equal(nn.Dropout(1.0)(x), torch.zeros(5))
    assert nn.Dropout(0.5)(x.bfloat16()).dtype == torch.bfloat16
