"""The map of heads × heads."""

import numpy as np
import pytest
import torch

from heads.synthetic_heads import looking, recording_of
from regard import figures, heads
from regard.errors import ArgumentError, DtypeError


@pytest.fixture
def found():
    back, ahead = looking(6, 6, lambda i: [max(0, i - 1)]), looking(6, 6, lambda i: [min(5, i + 1)])
    return heads.divergence(recording_of(back, ahead, back, ahead, back))


def test_like_heads_stand_side_by_side(found):
    figure = figures.divergence(found, clusters=2)
    picture, _, tree = figure.axes
    assert [tick.get_text() for tick in picture.get_yticklabels()] == ["0.0", "0.2", "0.4", "0.1", "0.3"]
    values = np.asarray(picture.images[0].get_array())
    assert values[:3, :3].max() < 1e-6
    assert values[:3, 3:].min() > 0.5
    assert picture.images[0].get_clim() == (0, 1)
    assert [float(line.get_ydata()[0]) for line in picture.lines[::2]] == [2.5]
    assert len(tree.lines) == 4  # one bracket per join
    assert max(line.get_ydata().max() for line in tree.lines) == pytest.approx(found.joins[-1][2])
    assert tree.get_title(loc="left").startswith("How differently heads attend")


def test_many_heads_are_all_named_and_one_head_is_drawn():
    many = heads.divergence(recording_of(*(torch.randn(3, 3) for _ in range(80))))
    picture = figures.divergence(many, title="").axes[0]
    assert len(picture.get_xticklabels()) == 80
    alone = heads.divergence(recording_of(torch.zeros(3, 3)))
    assert len(figures.divergence(alone).axes[0].get_xticklabels()) == 1


def test_what_is_refused(found):
    with pytest.raises(DtypeError, match=r"needs the result of regard.heads.divergence. Got ndarray"):
        figures.divergence(found.matrix)
    with pytest.raises(ArgumentError, match=r"between 1 and 5 clusters. Got clusters = 6"):
        figures.divergence(found, clusters=6)
    with pytest.raises(ArgumentError, match=r"size must be a number from 0.1 to 60"):
        figures.divergence(found, size=-1)
