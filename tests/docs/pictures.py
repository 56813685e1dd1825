"""The blocks of a page of docs/ and the pictures beside them."""

from io import BytesIO

from matplotlib.figure import Figure
from PIL import Image

from docs.scripts import DOCS


def assert_pictures_are_current(maker, page, names):
    """Every block runs, and gives a picture of the size of the one beside it."""
    found, drawn = list(maker.blocks(page)), []
    text = page.read_text(encoding="utf-8")
    assert len(found) == text.count("```python")
    for block in found:
        figure = maker.run(block, names)
        if block.picture is None:
            continue
        assert isinstance(figure, Figure)
        figure.draw_without_rendering()
        size = figure.canvas.get_width_height()  # that of a PNG
        with Image.open(DOCS / block.picture) as kept:
            sizes = size, kept.size
        # Fonts differ a little between machines; another call would make another size.
        assert all(abs(a - b) <= 0.05 * b + 4 for a, b in zip(*sizes)), block.picture
        drawn.append((figure, size))
    assert len(drawn) == text.count("](pictures/")
    figure, size = drawn[0]
    assert Image.open(BytesIO(maker.png(figure))).size == size  # as the script writes it
