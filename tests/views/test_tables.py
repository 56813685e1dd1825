"""Tables of heads in the terminal, and the heads that are worth a sentence."""

from io import StringIO

import pytest
import torch
from rich.console import Console

import regard
from heads.made import looking, recording_of
from regard import heads
from regard.errors import ArgumentError, DtypeError
from regard.views.tables import most_telling, show_table

TEXT = ["[CLS]", "a", "b", ",", "c", "d", "a", "b", "e", "c", "[SEP]"]
LENGTH = len(TEXT)
CHOICES = (
    lambda i: [i - 1],
    lambda i: [i + 1],
    lambda i: [0],
    lambda i: [0],
    lambda i: [0, 3 * i % LENGTH, (5 * i + 2) % LENGTH],
)


@pytest.fixture(scope="module")
def seen():
    return recording_of(*(looking(LENGTH, LENGTH, choose) for choose in CHOICES))


def printed(table, width=80, *, colour=False, **options):
    file = StringIO()
    console = Console(
        width=width, file=file, force_terminal=colour, color_system="truecolor" if colour else None
    )
    show_table(console, table, **options)
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_nothing_is_cut_off_at_any_width(seen, width):
    for table in (heads.table(seen), heads.roles(seen, TEXT).table, heads.divergence(seen).table):
        text = printed(table, width)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text.split("… and")[0]
        assert text.splitlines()[0].split()[:2] == ["layer", "head"]


def test_bars_where_there_is_room_and_shades_where_there_is_little(seen):
    table = heads.table(seen)
    wide, narrow = printed(table, 120), printed(table, 80)
    assert "█" in wide
    assert "█" not in narrow
    assert "48;2;" in printed(table, 80, colour=True)  # a background colour
    assert {"spread", "previous", "first", "distance", "peak"} <= set(narrow.splitlines()[0].split())
    assert "kind" not in narrow.splitlines()[0]  # all rows have the same


def test_sorting_and_the_rows_that_are_left(seen):
    lines = printed(heads.table(seen), sort="first_weight", most=2).splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["2", "3"]
    assert lines[3] == "… and 3 more"
    upwards = printed(heads.table(seen), sort="first_weight", descending=False).splitlines()
    assert upwards[-1].split()[1] in ("2", "3")
    with pytest.raises(ArgumentError, match=r"The table has the columns .* Got 'nonsense'"):
        printed(heads.table(seen), sort="nonsense")


def test_roles_in_words_with_an_example(seen):
    text = printed(heads.roles(seen, TEXT))
    lines = text.splitlines()
    assert lines[0].split() == ["layer", "head", "what", "it", "does", "score", "for", "example"]
    previous = next(line for line in lines if "previous token" in line)
    assert previous.split()[:2] == ["0", "0"]
    assert previous.rstrip().endswith("b → a")
    assert "1.00 ██████" in previous
    assert lines[-1] == "1 head has no clear role"
    by_role = printed(heads.roles(seen, TEXT), sort="first").splitlines()
    assert "first" in by_role[0]
    assert len(by_role) == 6  # all of them have a score
    assert [line.split()[1] for line in by_role[1:3]] == ["2", "3"]
    unknown = printed(heads.roles(seen, TEXT, names="self"), sort="previous")
    assert "–" in unknown


def test_kinds_are_named_where_there_are_several():
    model = regard.nn.Seq2Seq(20, 30, width=16, heads=2, hidden=16, encoder_layers=1, decoder_layers=1).eval()
    with torch.no_grad(), regard.watch(model) as seen:
        model(torch.randint(1, 20, (1, 7)), torch.randint(1, 30, (1, 5)))
    text = printed(heads.table(seen), 120)
    assert text.splitlines()[0].split()[0] == "kind"
    assert {line.split()[0] for line in text.splitlines()[1:]} == {"encoder", "decoder", "cross"}
    assert all(line.split()[0] in ("encoder", "decoder", "cross") for line in most_telling(heads.table(seen)))
    several = heads.roles(seen)
    assert printed(several, sort="broad").splitlines()[0].split()[0] == "kind"


def test_most_telling_gives_every_role_its_turn(seen):
    found = heads.roles(seen, TEXT)
    assert most_telling(found, 4) == [
        "layer 0 head 0 looks at the previous token (1.00)",
        "layer 0 head 1 looks at the next token (1.00)",
        "layer 0 head 2 rests on the first token (1.00)",
        "layer 0 head 3 rests on the first token (1.00)",
    ]
    assert most_telling(found, 1) == most_telling(found)[:1]
    assert most_telling(found, 0) == []
    # The table knows nothing of next tokens, and its averages count every query.
    assert most_telling(heads.table(seen), 9)[:2] == [
        "layer 0 head 2 rests on the first token (1.00)",
        "layer 0 head 0 looks at the previous token (0.91)",
    ]


def test_heads_that_saw_nothing_tell_nothing():
    blind = recording_of(torch.zeros(3, 3), mask=regard.masks.nothing())
    assert most_telling(heads.table(blind)) == []
    assert "–" not in printed(heads.table(blind)).splitlines()[0]


def test_what_is_refused(seen):
    with pytest.raises(DtypeError, match=r"prints a Table or Roles of regard.heads. Got list"):
        printed([])
    with pytest.raises(DtypeError, match=r"reads a Table or Roles of regard.heads. Got list"):
        most_telling([])
    with pytest.raises(ArgumentError, match=r"the table of regard.heads.table.* Got columns layer, head"):
        most_telling(heads.divergence(seen).table)
    with pytest.raises(ArgumentError, match=r"count is a whole number, 0 or more. Got count = -1"):
        most_telling(heads.table(seen), -1)
