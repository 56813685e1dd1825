"""A trained encoder of pictures: what it finds relevant lies on the digit, not on the empty rest."""

from importlib.util import find_spec

import pytest
import torch

import regard
from real import digits

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed"),
]


@pytest.fixture(scope="module")
def model_and_pictures():
    learn, others = digits.data()
    return digits.trained(learn), others


def test_it_reads_digits(model_and_pictures):
    model, others = model_and_pictures
    with torch.no_grad():
        right = model(pixel_values=others.pixels).logits.argmax(-1) == others.labels
    print(f"accuracy on {len(right)} pictures: {right.float().mean():.1%}")
    assert right.float().mean() > 0.85


def test_relevance_lies_on_the_digit(model_and_pictures):
    model, others = model_and_pictures
    rows = digits.SIDE // digits.PATCH
    inside = []
    for number in range(30):
        with regard.watch(model, gradients=True) as seen:
            logits = model(pixel_values=others.pixels[number : number + 1]).logits
            logits[0, int(logits.argmax())].backward()
        seen.picture = regard.Picture(others.pixels[number], grid=(rows, rows), tokens=slice(1, None))
        folded = seen.picture.fold(regard.relevance(seen, row=0).own)
        row, column = (others.corners[number] // digits.PATCH).tolist()
        box = digits.DIGIT // digits.PATCH
        inside.append(float(folded[row : row + box, column : column + box].sum() / folded.sum()))
    area = (digits.DIGIT / digits.SIDE) ** 2
    mean = sum(inside) / len(inside)
    print(f"{mean:.0%} of the relevance is on the digit, which is {area:.0%} of the picture")
    assert mean > 4 * area
