import pytest

from regard import masks
from regard.errors import MaskError, MaskSyntaxError


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("causal", masks.causal()),
        ("causal()", masks.causal()),
        (" causal&window( 4,0 ) ", masks.causal() & masks.window(4, 0)),
        ("causal | prefix(2) & every(3)", masks.causal() | (masks.prefix(2) & masks.every(3))),
        ("(causal | prefix(2)) & every(3)", (masks.causal() | masks.prefix(2)) & masks.every(3)),
        ("~~causal", masks.causal()),
        ("~(causal & prefix(1)).T", ~(masks.causal() & masks.prefix(1)).T),
        ("every(4).T.T", masks.every(4)),
        ("window(None, 2)", masks.window(None, 2)),
        ("window(before=1, after=2)", masks.window(1, 2)),
        ("padding(lengths=[3, 5])", masks.padding(lengths=[3, 5])),
        ("padding([True*3, False])", masks.padding([True, True, True, False])),
        ("documents([[0*2, 1], [7*3]])", masks.documents([[0, 0, 1], [7, 7, 7]])),
        ("dense([[1, 0], [1, 1]])", masks.dense([[1, 0], [1, 1]])),
        ("everything & ~nothing", masks.everything()),
        ("local_global(8)", masks.local_global(8)),
    ],
)
def test_reads(text, mask):
    assert masks.parse(text) == mask


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "Expected a mask"),
        ("causal & widow(3)", 9, "Did you mean window"),
        ("causal & zzz", 9, "Known: causal, window"),
        ("causal &", 8, "the end of the text"),
        ("causal causal", 7, "Expected & or |"),
        ("(causal", 7, "close the bracket"),
        ("causal)", 6, r"Got '\)'"),
        ("causal $ x", 7, r"Got '\$'"),
        ("window(1)", 0, r"window\(before, after\)"),
        ("window(1, 2, 3)", 0, r"window\(before, after\)"),
        ("window(-1, 0)", 0, "0 or more"),
        ("causal & window(0, -2)", 9, "after is a whole number"),
        ("window(a, 1)", 7, "Expected a number"),
        ("prefix(2", 8, "after the values"),
        ("documents([1, 2)", 15, "close the list"),
        ("documents([0*x])", 13, "how many times"),
        ("documents([0*999999999999])", 13, "at most"),
        ("prefix(99999999999999999999)", 7, "18 digits"),
        ("causal.X", 7, "Expected T"),
        ("causal # comment", 7, "Got '#'"),
        ("__import__('os')", 11, 'Got "\'"'),
        ("__import__(1)", 0, "No mask is called"),
        ("(" * 200 + "causal", 100, "nests at most"),
        ("~" * 200 + "causal", 100, "nests at most"),
        ("padding([[1]]) & padding([[1], [1], [1]]) & padding([[1], [1]])", 42, "differ over the same batch"),
    ],
)
def test_errors_point_at_the_character(text, position, says):
    with pytest.raises(MaskSyntaxError, match=says) as caught:
        masks.parse(text)
    assert caught.value.position == position
    shown = str(caught.value).splitlines()
    assert shown[-2] == "  " + text
    assert shown[-1] == "  " + " " * position + "^"


def test_only_text_is_read():
    with pytest.raises(MaskError, match="is a string"):
        masks.parse(masks.causal())  # type: ignore[arg-type]


def test_long_tables_are_written_in_runs():
    mask = masks.documents([0] * 512 + [1] * 512)
    assert repr(mask) == "documents([0*512, 1*512])"
    assert masks.parse(repr(mask)) == mask
