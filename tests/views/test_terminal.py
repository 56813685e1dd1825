from regard.views.terminal_weights import bar, shade


def test_bars_are_exact_to_an_eighth():
    assert bar(0.0) == ""
    assert bar(1.0, 4) == "████"
    assert bar(5 / 8, 1) == "▋"
    assert bar(2.0, 2) == "██"


def test_shades_grow_with_the_weight():
    assert shade(0.0) != shade(0.5) != shade(1.0) == shade(3.0)
