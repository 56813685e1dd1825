import tracemalloc

import numpy as np
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
        ("span(8, 9).T & span(2, 5)", masks.span(8, 9).T & masks.span(2, 5)),
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
        ("causal & window(0, -2)", 9, "after must be a whole number"),
        ("window(a, 1)", 7, "Expected a number"),
        ("prefix(2", 8, "after the values"),
        ("documents([1, 2)", 15, "close the list"),
        ("documents([0*x])", 13, "a number of repetitions"),
        ("documents([0*999999999999])", 13, "at most"),
        ("prefix(99999999999999999999)", 7, r"between -2\*\*63 and"),
        ("padding(lengths=[3], lengths=[4])", 21, "given twice"),
        ("documents([1, None])", 14, "Got None"),
        ("documents([[1, 2], [3]])", 10, "must have the same length"),
        ("documents([[1], [2]], [[1], [2], [3]])", 0, "the same batch"),
        ("causal.X", 7, "Expected T"),
        ("causal # comment", 7, "Got '#'"),
        ("__import__('os')", 11, 'Got "\'"'),
        ("__import__(1)", 0, "No mask is called"),
        ("(" * 200 + "causal", 100, "must not nest more than"),
        ("~" * 200 + "causal", 100, "must not nest more than"),
        (
            "padding([[1]]) & padding([[1], [1], [1]]) & padding([[1], [1]])",
            42,
            "leading axes that broadcast",
        ),
    ],
)
def test_errors_point_at_the_character(text, position, says):
    with pytest.raises(MaskSyntaxError, match=says) as caught:
        masks.parse(text)
    assert caught.value.position == position
    shown, mark = str(caught.value).splitlines()[-2:]
    if len(text) <= 120:
        assert shown == "  " + text
        assert mark == "  " + " " * position + "^"
    else:
        assert shown[mark.index("^")] == text[position]
        assert len(shown) < 130


def test_only_text_is_read():
    with pytest.raises(MaskError, match="must be a string"):
        masks.parse(masks.causal())  # type: ignore[arg-type]


def test_long_tables_are_written_in_runs():
    mask = masks.documents([0] * 512 + [1] * 512)
    assert repr(mask) == "documents([0*512, 1*512])"
    assert masks.parse(repr(mask)) == mask


# ---- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("documents([0*100000000])", "2,097,152 entries in all"),
        ("documents([0*2000000]) & documents([1*2000000])", "2,097,152 entries in all"),
        ("dense([[0*2000]*2000])", "2,097,152 entries in all"),
        ("dense([[0*2000000]*0, [0*2000000]*0])", "2,097,152 entries in all"),
        ("padding([[]*9000000])", "2,097,152 entries in all"),
        (" | ".join(["local_global(3)"] * 3334), "10,000 patterns"),
        ("causal | " * 10_000 + "causal", "10,000 patterns"),
        ("documents(" + "[" * 17 + "1", "Lists must not nest more than 16"),
        (" " * (1 << 24) + "causal", "16,777,216 characters. Got 16,777,222"),
        ("~" * 99 + "local_global(2)", "must not nest more than 100"),
        ("a" * 1_000_000, "No mask is called 'a{64}…'"),
        ("causal & \x00", r"Got '\\x00'"),
        ("prefix(٣)", "Got '٣'"),
        ("causal & \ud800", r"Got '\\ud800'"),
    ],
)
def test_a_text_has_a_budget(text, says):
    tracemalloc.start()
    try:
        with pytest.raises(MaskSyntaxError, match=says) as caught:
            masks.parse(text)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 500
    str(caught.value).encode()  # no half characters, no NULs
    assert "\x00" not in str(caught.value)


def test_all_of_the_budget_can_be_used():
    many = " | ".join(f"window({number}, 0)" for number in range(10_000))
    assert len(masks.parse(many).parts) == 10_000
    assert masks.parse(f"documents([0*{1 << 21}])").table_lengths() == (1 << 21, 1 << 21)
    deep = masks.parse("~(causal & " * 49 + "prefix(1)" + ")" * 49)
    assert masks.parse(repr(deep)) == deep


def test_the_time_grows_with_the_text_and_not_with_its_square(monkeypatch):
    """Counted in operations: masks that are hashed and tokens that are cut."""
    from regard.masks import parser as module
    from regard.masks.patterns import Prefix

    counts = {}
    for size in (500, 1000):
        hashed, cut = [], []
        monkeypatch.setattr(Prefix, "__hash__", lambda self, seen=hashed: seen.append(1) or hash(self.length))
        pattern = module._TOKEN
        monkeypatch.setattr(module, "_TOKEN", _Counting(pattern, cut))
        masks.parse(" & ".join(f"prefix({number})" for number in range(size)))
        monkeypatch.setattr(module, "_TOKEN", pattern)
        counts[size] = (len(hashed), len(cut))
    assert counts[1000][0] <= 2.1 * counts[500][0] <= 2.1 * 4 * 500
    assert counts[1000][1] <= 2.1 * counts[500][1]


class _Counting:
    def __init__(self, pattern, seen):
        self.pattern, self.seen = pattern, seen

    def match(self, text, position):
        self.seen.append(position)
        return self.pattern.match(text, position)


@pytest.mark.parametrize(
    "mask",
    [
        masks.documents([2**63 - 1, -(2**63)]),
        masks.documents([]),
        masks.padding([]),
        masks.padding(lengths=np.zeros(0, np.int64)),
        masks.dense(np.zeros((3, 0), bool)),
        masks.dense(np.zeros((0, 3), bool)),
        masks.dense(np.zeros((7, 2), bool)),
        masks.window(2**31, 2**31 - 1) & masks.every(2**63),
    ],
)
def test_awkward_masks_are_read_back(mask):
    assert masks.parse(repr(mask)) == mask


def test_rows_that_repeat_are_written_once():
    assert repr(masks.dense(np.eye(1, 3, dtype=bool).repeat(8, 0))) == "dense([[1, 0, 0]*8])"


def test_spaces_of_any_kind_separate():
    assert masks.parse("causal\u3000&\u00a0prefix(2)\n") == masks.causal() & masks.prefix(2)
