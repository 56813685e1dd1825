"""An edit is read from the text that it prints."""

import pytest

from regard import edits, masks
from regard.errors import EditError, MaskSyntaxError, RegardError


@pytest.mark.parametrize(
    "edit",
    [
        edits.remove(),
        edits.remove(layers=[3], heads=[1, 4]),
        edits.block(masks.span(5, 9), layers=range(10, 20)),
        edits.block((masks.causal() & ~masks.every(4)) | masks.prefix(2).T, kind="cross", rows=8),
        edits.only(masks.window(128, 0) | masks.prefix(4), heads=[0, 2], rows=slice(3, None)),
        edits.uniform(rows=[1, 2, 5]),
        edits.temperature(2.5) + edits.scale(-0.5, kind="decoder"),
        edits.scale(2, layers=0) + edits.scale(3, layers=0) + edits.scale(5, layers=0),
    ],
    ids=repr,
)
def test_what_it_prints_can_be_read(edit):
    assert edits.parse(repr(edit)) == edit


def test_spaces_and_brackets_do_not_matter():
    found = edits.parse(" remove( heads = 1 )\t+ (uniform() + block(causal, rows=range(2, 4)))\n")
    assert found == edits.remove(heads=1) + edits.uniform() + edits.block(masks.causal(), rows=[2, 3])
    assert edits.parse("block(mask=span(0, 1))") == edits.block(masks.span(0, 1))


def test_thousands_of_edits_are_read():
    assert len(edits.parse(" + ".join(["uniform()"] * 800)).steps()) == 800


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must be written with its name"),
        ("remove", "must be written with its name.*'remove'"),
        ("remove(", "must be written with its name"),
        ("remove() - uniform()", "must be written with its name"),
        ("remove()()", "must be written with its name"),
        ("__import__('os').system('true')", "must be written with its name"),
        ("remove(layers=open('x'))", r"must be written with its name.*open"),
        ("remove(layers=range(0, 4, 0))", "must be written with its name.*range"),
        ("remove(layers=range(1.5))", "must be written with its name.*range"),
        ("remove(layers={1: 2})", "must be written with its name"),
        ("remove(**3)", "must be written with its name"),
        ("remove(*[1])", "must be written with its name"),
        ("remve(layers=1)", "No edit is called 'remve'. Did you mean remove"),
        ("zzz()", "No edit is called 'zzz'. Known: block, only"),
        ("remove(3)", r"remove is written remove\(layers, heads, kind, rows\)"),
        ("scale(layers=3)", r"scale is written scale\(factor"),
        ("remove(rows=range(10**9))", "must be written with its name"),
        ("remove(rows=range(1000000000))", "at most 100,000 numbers"),
        ("remove(" + "(" * 300 + "1" + ")" * 300 + ")", "must be written with its name"),
        ("uniform() + " * 2000 + "uniform()", "at most 10,000 characters"),
        ("remove(\0)", "must be written with its name"),
    ],
)
def test_other_texts_are_refused(text, says):
    with pytest.raises(EditError, match=says):
        edits.parse(text)


def test_a_mask_that_cannot_be_read_is_shown():
    with pytest.raises(MaskSyntaxError, match="Did you mean span"):
        edits.parse("block(spam(2, 5))")
    with pytest.raises(RegardError, match="kind must be"):
        edits.parse("remove(kind='middle')")
    with pytest.raises(EditError, match="Got int"):
        edits.parse(3)
