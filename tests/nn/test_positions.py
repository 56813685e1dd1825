import math

import pytest
import torch

from regard import nn
from regard.errors import ShapeError


def test_sinusoidal_is_the_formula():
    width, table = 7, nn.SinusoidalPositions(7, length=50)(torch.zeros(1, 50, 7))[0]
    for place in (0, 1, 13, 49):
        for channel in range(width):
            angle = place / 10000 ** (2 * (channel // 2) / (width + 1))
            wanted = math.cos(angle) if channel % 2 else math.sin(angle)
            assert table[place, channel].item() == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("kind", [nn.SinusoidalPositions, nn.LearnedPositions])
def test_offset_and_places(kind):
    positions, x = kind(6, length=20), torch.randn(2, 5, 6)
    whole = positions(torch.zeros(2, 20, 6))
    torch.testing.assert_close(positions(x, 4) - x, whole[:, 4:9])
    places = torch.tensor([[0, 0, 1, 2, 3], [7, 8, 9, 10, 19]])
    torch.testing.assert_close(positions(x, places)[1] - x[1], whole[1, places[1]])


@pytest.mark.parametrize(
    ("positions", "x"),
    [
        (nn.SinusoidalPositions(6, length=8), torch.zeros(1, 5, 6)),
        (nn.LearnedPositions(6, length=8), torch.zeros(1, 5, 6)),
        (nn.RotaryPositions(6, length=8), torch.zeros(1, 2, 5, 6)),
    ],
    ids=lambda case: type(case).__name__,
)
def test_beyond_the_longest(positions, x):
    assert positions(x, 3).shape == x.shape
    with pytest.raises(ShapeError, match=r"\(longest = 8\). Got 9 tokens"):
        positions(x, 4)
    with pytest.raises(ShapeError, match=r"Got 12 tokens\. Shorten the text"):
        positions(x, torch.tensor([[7, 8, 9, 10, 11]]))


def test_tables_that_follow_from_the_length_are_not_saved():
    assert not nn.SinusoidalPositions(4).state_dict()
    assert not nn.RotaryPositions(4).state_dict()
    assert list(nn.LearnedPositions(4, length=9).state_dict()) == ["table"]
    assert "slopes" not in nn.MultiHeadAttention(4, 2, positions="alibi").state_dict()
