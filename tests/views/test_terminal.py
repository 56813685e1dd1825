from io import StringIO

import numpy as np
from rich.console import Console

from regard.views.terminal import bar, matrix, shade, show_strongest


def test_bars_are_exact_to_an_eighth():
    assert bar(0.0) == ""
    assert bar(1.0, 4) == "████"
    assert bar(5 / 8, 1) == "▋"
    assert bar(2.0, 2) == "██"


def test_shades_grow_with_the_weight():
    assert shade(0.0) != shade(0.5) != shade(1.0) == shade(3.0)


def test_the_strongest_come_first():
    console = Console(width=60, record=True, file=StringIO())
    show_strongest(console, np.array([[0.2, 0.7, 0.1]]), ["q"], ["a", "b", "c"], most=2)
    lines = console.export_text().splitlines()
    assert [line.split("→")[-1].split()[0] for line in lines] == ["b", "a"]


def test_numbers_are_rounded_and_minus_infinity_is_shown():
    console = Console(width=60, record=True, file=StringIO())
    console.print(matrix(np.array([[-1.23456, -np.inf]]), ["row"], ["x", "y"]))
    text = console.export_text()
    assert "−1.235" in text
    assert "−∞" in text
