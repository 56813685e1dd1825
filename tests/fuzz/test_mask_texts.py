"""Mask texts of all kinds, well formed, mutated and hostile.

Whatever the text, `parse` either returns a mask or raises MaskSyntaxError, in bounded memory. A mask
that it returns is read back from its repr, and says what the same patterns say joined by Python's
operators.
"""

import re
import tracemalloc

import pytest
import torch

from fuzz.rounds import cases
from regard import masks
from regard.errors import MaskError, MaskSyntaxError, RegardError
from regard.masks import parser as reading

LENGTH = 7
MEMORY = 150_000_000
"""Bytes at most, whatever the text."""

NAMES = [
    *("causal", "window", "prefix", "every", "local_global", "padding", "lengths", "documents"),
    *("dense", "everything", "nothing", "span"),
]
NUMBERS = [0, 1, 2, 3, LENGTH, 10**6, 2**30, 2**31, 2**32, 2**62, 2**63 - 1]


# ---- texts with what they mean -------------------------------------------------------------------


def number_of(chance):
    return chance.choice(NUMBERS) if chance.random() < 0.3 else chance.randrange(LENGTH + 2)


def list_of(chance, values):
    """A list as text, with runs written either way, and what it holds."""
    words, held = [], []
    while len(held) < LENGTH:
        value, count = chance.choice(values), chance.randrange(1, LENGTH - len(held) + 1)
        words += [f"{value}*{count}"] if chance.random() < 0.5 else [str(value)] * count
        held += [value] * count
    return f"[{spaced(chance, ', '.join(words))}]", held


def pattern_of(chance):
    """One pattern as text, and the same by a call."""
    name = chance.choice(NAMES)
    if name in ("causal", "everything", "nothing"):
        return chance.choice([name, f"{name}()"]), getattr(masks, name)()
    if name == "window":
        sides = [None if chance.random() < 0.2 else number_of(chance) for _ in range(2)]
        written = chance.choice(["window({}, {})", "window(before={}, after={})", "window({}, after={})"])
        return written.format(*sides), masks.window(*sides)
    if name == "span":
        ends = sorted(number_of(chance) for _ in range(2))
        written = chance.choice(["span({}, {})", "span(start={}, stop={})"])
        return written.format(*ends), masks.span(*ends)
    if name in ("prefix", "every", "local_global"):
        number = max(number_of(chance), 1)
        return f"{name}({number})", getattr(masks, name)(number)
    if name == "padding":
        written, held = list_of(chance, [True, False])
        return f"padding({written})", masks.padding(held)
    if name == "lengths":
        number = number_of(chance)
        return f"padding(lengths={number})", masks.padding(lengths=number)
    if name == "documents":
        written, held = list_of(chance, [0, 1, -3, 2**63 - 1])
        return f"documents({written})", masks.documents(held)
    rows = [list_of(chance, [0, 1]) for _ in range(LENGTH)]
    written = ", ".join(row for row, _ in rows)
    return f"dense([{written}])", masks.dense([held for _, held in rows])


def expression_of(chance, depth=0):
    """A mask as text, and the same composed by Python's operators."""
    kind = chance.random()
    if depth > 5 or kind < 0.3:
        return pattern_of(chance)
    if kind < 0.5:
        written, mask = expression_of(chance, depth + 1)
        return f"~({written})", ~mask
    if kind < 0.6:
        written, mask = expression_of(chance, depth + 1)
        return f"({written}).T", mask.T
    sign = chance.choice("&|")
    written, mask = zip(*(expression_of(chance, depth + 1) for _ in range(chance.randrange(2, 5))))
    joined = mask[0]
    for part in mask[1:]:
        joined = joined & part if sign == "&" else joined | part
    return spaced(chance, f" {sign} ").join(f"({one})" for one in written), joined


def spaced(chance, text):
    return text.replace(" ", chance.choice([" ", "", "  ", "\n", "\t", "\u3000"]))


def test_well_formed_texts_mean_what_the_operators_mean():
    count = 0
    for _, chance in cases(250):
        count += 1
        written, composed = expression_of(chance)
        mask = masks.parse(written)
        assert mask == composed, written
        assert masks.parse(repr(mask)) == mask
        assert torch.equal(mask.dense(LENGTH), composed.dense(LENGTH)), written
    print(f"{count} well-formed texts")


# ---- anything ------------------------------------------------------------------------------------

PIECES = [
    *("causal", "window", "prefix", "every", "local_global", "padding", "documents", "dense", "everything"),
    *(
        "nothing",
        "span",
        "lengths",
        "before",
        "T",
        "True",
        "False",
        "None",
        "causal()",
        "window(4,0)",
        "[0*9]",
        ".T",
    ),
    *("~(", "[[1],[0]]", *"&|~()[],.=*-017", "-1", "99", "2147483648", "9223372036854775807"),
    *("9223372036854775808", "1e9", "0x1", "٣", "²", "\uff11", "\x00", "\x1b[31m", "\ud800", "\u202e", "猫"),
    *("'", '"', "\\", ";", "#", "$", "@", "\n", "\u00a0"),
]

HOSTILE = [
    "(" * 10**5,
    "~" * 10**5 + "causal",
    "documents(" + "[" * 10**5,
    "documents([" + "[],[" * 10**4,
    "causal" + ".T" * 20_000,
    "causal&" * 20_000 + "causal",
    "local_global(3)|" * 4_000 + "causal",
    "documents([0*100000000])",
    "documents([" + "0*1000000," * 50 + "])",
    "dense([[[[[[0*100]*100]*100]*100]*100]*100])",
    "dense([[1*1000]*1000])" + ".T" * 501,
    "padding([[]*200000])",
    "padding([" + "[]*0," * 10_000 + "])",
    "padding([" + "1,0," * 20_000 + "])",
    "padding(lengths=[" + "-1," * 20_000 + "])",
    "documents([0*18446744073709551616])",
    "prefix(" + "9" * 10**6 + ")",
    "prefix(-" + "0" * 10**6 + ")",
    "a" * 10**6,
    "causal" * 10**5,
    " " * 10**6 + "!",
    "\x00" * 1000,
    "window(" + "1," * 20_000 + ")",
    "window(" + "before=1," * 20_000 + ")",
    "window(" + ",".join(f"a{number}=1" for number in range(5_000)) + ")",
    "(" * 99 + "local_global(2)" + ")" * 99,
    "~(causal|" * 60 + "causal" + ")" * 60,
    "documents([[0],[1]], [[0],[1],[2]])",
    "documents([[0],[1]]) & documents([[0],[1],[2]]) & nothing",
]


def mutated(chance, text):
    """The text with some pieces taken out, doubled, exchanged or put in."""
    if chance.random() < 0.3:
        return re.sub("[0-9]+", lambda found: str(number_of(chance)), text, count=chance.randrange(1, 4))
    for _ in range(chance.randrange(1, 4)):
        at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        to = min(to, at + 12)
        text = chance.choice(
            [
                text[:at] + text[to:],
                text[:to] + text[at:to] * chance.choice([1, 2, 50]) + text[to:],
                text[:at] + chance.choice(PIECES) + text[at:],
                text[:at] + text[at:to][::-1] + text[to:],
            ]
        )
    return text


def outcome(text):
    try:
        return masks.parse(text), None
    except MaskSyntaxError as error:
        return None, error


def check(text):
    """What must hold for every text; whether it was a mask."""
    mask, said = outcome(text)
    if mask is None:
        assert len(str(said)) < 2_000
        str(said).encode()
        assert 0 <= said.position <= len(text)
        return False
    written = repr(mask)
    if len(written) <= reading.CHARACTERS:
        again = masks.parse(written)
        assert again == mask
        assert hash(again) == hash(mask)
    if len(mask.lead) <= 4 and all(size < 8 for size in mask.lead):
        try:
            found = mask.dense(LENGTH)
        except (MaskError, RegardError):  # tables of another length
            return True
        assert found.shape[-2:] == (LENGTH, LENGTH)
    return True


def test_any_text_is_a_mask_or_an_error_in_words():
    counts = {True: 0, False: 0}
    for _, chance in cases(1000):
        if chance.random() < 0.6:
            text = mutated(chance, expression_of(chance, depth=3)[0])
        else:
            text = chance.choice(["", " "]).join(chance.choice(PIECES) for _ in range(chance.randrange(30)))
        counts[check(text)] += 1
    assert all(counts.values())
    print(f"{counts[True]} masks, {counts[False]} errors")


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20].replace("\x00", "0"))
def test_hostile_texts_take_little_memory(text):
    tracemalloc.start()
    try:
        check(text)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


def test_python_numbers_and_tables_of_any_size_are_right_or_refused():
    for _, chance in cases(100):
        number = chance.choice(NUMBERS) ** chance.choice([1, 2, 3]) * chance.choice(
            [1, 1, -1]
        ) + chance.randrange(3)
        for make in (
            masks.prefix,
            masks.every,
            masks.local_global,
            lambda n: masks.window(n, 1),
            lambda n: masks.span(n, n),
        ):
            try:
                mask = make(number)
            except RegardError:
                assert number < 1
                continue
            assert masks.parse(repr(mask)) == mask
            assert mask.dense(LENGTH).shape == (LENGTH, LENGTH)
