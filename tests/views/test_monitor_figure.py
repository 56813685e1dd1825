"""What a monitor measured, as a figure."""

import math

import numpy as np
import pytest
import torch

import regard
from regard import figures
from regard.errors import ArgumentError, DtypeError
from views.scenes import monitored


def line(axes, number):
    return axes.lines[number].get_xdata(), axes.lines[number].get_ydata()


def test_every_head_is_a_line_and_every_kind_a_panel():
    rows = monitored()
    panels = figures.monitor(rows).axes
    assert [axes.get_xlabel() for axes in panels] == [
        "step (encoder)", "step (decoder)", "step (cross-attention)"
    ]  # fmt: skip
    assert panels[0].get_ylabel() == "entropy (nats)"
    for axes in panels:
        assert len(axes.lines) == 4
        steps, values = line(axes, 3)
        assert list(steps) == [0, 10, 20, 30, 40, 50]
        last = [row["entropy"] for row in rows if (row["kind"], row["layer"], row["head"]) == ("cross", 1, 1)]
        assert np.allclose(values, last)
        # Layers have colours, and the lines that end lowest have names.
        assert axes.lines[0].get_color() == axes.lines[1].get_color() != axes.lines[2].get_color()
    assert [text.get_text() for text in panels[0].texts] == ["1.1", "0.1", "1.0"]
    assert "during training" in panels[0].get_title("left")


def test_one_kind_one_number_and_the_axis_that_fits_it():
    (axes,) = figures.monitor(monitored(steps=10), "gradient", kind="cross", named=1).axes
    assert axes.get_yscale() == "log"
    assert axes.get_title("left") == "Gradient that reaches every head during training (cross-attention)"
    (axes,) = figures.monitor(monitored(), "score", kind="encoder", named=0).axes
    assert axes.get_yscale() == "linear"
    assert [text.get_text() for text in axes.texts] == ["layer 0", "layer 1"]


def test_the_heads_with_the_most_information_are_named():
    (axes,) = figures.monitor(monitored(), "information", kind="cross", named=1).axes
    assert axes.get_ylabel() == "share of the possible information"
    assert [text.get_text() for text in axes.texts] == ["1.1", "layer 0", "layer 1"]


def test_gaps_and_smoothing():
    rows = [dict(row) for row in monitored() if row["kind"] == "cross"]
    rows[4]["entropy"], rows[8]["entropy"] = None, math.inf  # head 0.0 in its second and third measurement
    (axes,) = figures.monitor(rows).axes
    assert np.isnan(line(axes, 0)[1]).tolist() == [False, True, True, False, False, False]
    (axes,) = figures.monitor(rows, smooth=3).axes
    own = [row["entropy"] for row in rows if (row["layer"], row["head"]) == (1, 1)]
    wanted = [np.mean(own[max(0, at - 1) : at + 2]) for at in range(6)]
    assert np.allclose(line(axes, 3)[1], wanted)


def test_a_monitor_and_its_file_are_drawn_too(tmp_path):
    model = torch.nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True)
    with regard.monitor(model, every=1, out=tmp_path / "m.csv") as found:
        model(torch.randn(1, 5, 8)).square().mean().backward()
    drawn = [line(figures.monitor(one).axes[0], 1)[1] for one in (found, tmp_path / "m.csv")]
    assert np.allclose(*drawn, rtol=1e-5)


@pytest.mark.parametrize(
    ("draw", "error", "says"),
    [
        (lambda: figures.monitor(3), DtypeError, "needs a monitor, its rows, or its CSV file. Got int."),
        (lambda: figures.monitor([{"step": 1}]), DtypeError, "Got list."),
        (lambda: figures.monitor([]), ArgumentError, "at least one measured step. Got no rows."),
        (
            lambda: figures.monitor(monitored()[:2], kind="cross"),
            ArgumentError,
            "Got no rows of kind 'cross'.",
        ),
        (
            lambda: figures.monitor([{**row, "information": None} for row in monitored()], "information"),
            ArgumentError,
            "must have the number that is drawn (information). Got rows without it.",
        ),
        (lambda: figures.monitor(monitored(), "loss"), ArgumentError, "entropy, score, first"),
        (lambda: figures.monitor(monitored(), kind="both"), ArgumentError, "encoder, decoder"),
        (lambda: figures.monitor(monitored(), smooth=0), ArgumentError, "smooth"),
    ],
)
def test_what_is_refused(draw, error, says):
    with pytest.raises(error) as raised:
        draw()
    assert says in str(raised.value)
    assert raised.value.in_words("zh") != str(raised.value)
