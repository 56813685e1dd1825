"""Tables of heads in the terminal, and the heads that are worth a sentence."""

import re
from dataclasses import replace
from io import StringIO
from itertools import zip_longest

import pytest
import torch
from rich.cells import cell_len
from rich.console import Console

import regard
from heads.synthetic_heads import call_with, looking, recording_of
from regard import heads
from regard.errors import ArgumentError, DtypeError
from regard.heads import Example, Head, Roles, Score
from regard.recording import Recording
from regard.views.column_headings import heading
from regard.views.terminal_tables import LEFT_OUT, most_telling, show_table, show_telling, telling_heads

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
    # Three texts: one of eleven tokens is too short for a role to be more than chance.
    scores = torch.stack([looking(LENGTH, LENGTH, choose) for choose in CHOICES])
    return Recording("made", [call_with(scores.repeat(3, 1, 1, 1))])


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
    assert {"evenness", "previous", "first", "distance", "peak"} <= set(narrow.splitlines()[0].split())
    assert "kind" not in narrow.splitlines()[0]  # all rows have the same


def test_sorting_and_the_rows_that_are_left(seen):
    lines = printed(heads.table(seen), sort="first_weight", most=2).splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["2", "3"]
    assert lines[3] == "… and 3 more"
    upwards = printed(heads.table(seen), sort="first_weight", descending=False).splitlines()
    assert upwards[-1].split()[1] in ("2", "3")
    with pytest.raises(ArgumentError, match=r"A column must be one of .* Got 'nonsense'"):
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


@pytest.fixture(scope="module")
def several():
    """A recording with all three kinds of attention."""
    model = regard.nn.Seq2Seq(20, 30, width=16, heads=2, hidden=16, encoder_layers=1, decoder_layers=1).eval()
    with torch.no_grad(), regard.watch(model) as seen:
        model(torch.randint(1, 20, (1, 7)), torch.randint(1, 30, (1, 5)))
    return seen


def test_kinds_are_named_where_there_are_several(several):
    text = printed(heads.table(several), 120)
    assert text.splitlines()[0].split()[0] == "kind"
    assert {line.split()[0] for line in text.splitlines()[1:]} == {"encoder", "decoder", "cross"}
    told = most_telling(heads.table(several))
    assert told
    assert all(line.split()[0] in ("encoder", "decoder", "cross") for line in told)
    assert printed(heads.roles(several), sort="broad").splitlines()[0].split()[0] == "kind"


def test_most_telling_gives_every_role_its_turn(seen):
    found = heads.roles(seen, TEXT)
    assert most_telling(found, 4) == [
        "layer 0 head 0 attends to the previous token (1.00)",
        "layer 0 head 1 attends to the next token (1.00)",
        "layer 0 head 2 rests on the first token (1.00)",
        "layer 0 head 3 rests on the first token (1.00)",
    ]
    assert most_telling(found, 1) == most_telling(found)[:1]
    assert most_telling(found, 0) == []
    # The table knows nothing of next tokens, and its averages count every query.
    assert most_telling(heads.table(seen), 9)[:2] == [
        "layer 0 head 2 rests on the first token (1.00)",
        "layer 0 head 0 attends to the previous token (0.91)",
    ]


def test_heads_that_saw_nothing_tell_nothing():
    blind = recording_of(torch.zeros(3, 3), mask=regard.masks.nothing())
    assert most_telling(heads.table(blind)) == []
    assert "–" not in printed(heads.table(blind)).splitlines()[0]


def test_what_is_refused(seen):
    with pytest.raises(DtypeError, match=r"needs a Table or Roles of regard.heads. Got list"):
        printed([])
    with pytest.raises(DtypeError, match=r"needs a Table or Roles of regard.heads. Got list"):
        most_telling([])
    with pytest.raises(ArgumentError, match=r"the table of regard.heads.table.* Got columns layer, head"):
        most_telling(heads.divergence(seen).table)
    with pytest.raises(ArgumentError, match=r"count must be a whole number, 0 or more. Got count = -1"):
        most_telling(heads.table(seen), -1)


# ---- in Chinese ------------------------------------------------------------------------------


def english_in(text):
    """Words of English: two letters in a row that are not a token."""
    return re.findall(r"[A-Za-z]{2,}", re.sub(r"\[(CLS|SEP)\]", "", text))


def spans(line):
    """From which cell to which each column of a line goes; columns are at least two spaces apart."""
    cells = "".join(letter * cell_len(letter) for letter in line)
    return [found.span() for found in re.finditer(r"\S+(?: \S+)*", cells)]


def check_columns(lines):
    """All cells of a column begin where its heading does, or all end there."""
    for column in zip_longest(*(spans(line) for line in lines)):
        starts, ends = zip(*(span for span in column if span is not None))
        assert len(set(starts)) == 1 or len(set(ends)) == 1, (starts, ends)


def test_misplaced_columns_would_be_noticed():
    check_columns(["类型    层", "交叉     2", "编码器   3"])
    with pytest.raises(AssertionError):
        check_columns(["类型    层", "交叉    2", "编码器   3"])  # as if each character took one cell


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_tables_in_chinese(seen, several, width):
    tables = (
        heads.table(seen),
        heads.table(several),
        heads.roles(seen, TEXT).table,
        heads.divergence(seen).table,
    )
    for table in tables:
        text = printed(table, width, most=3, lang="zh")
        assert max(map(cell_len, text.splitlines())) <= width
        assert not english_in(text), text
        assert text.splitlines()[-1] == f"… 还有 {len(table) - 3} 行"
        assert text.count("…") == 1
    check_columns(printed(heads.table(several), 90, lang="zh").splitlines())


def test_roles_in_chinese(seen, several):
    lines = printed(heads.roles(seen, TEXT), lang="zh").splitlines()
    assert lines[0].split() == ["层", "头", "做什么", "得分", "例如"]
    assert "关注前一个词元" in lines[1]
    assert lines[-1] == "1 个头没有明确的角色"
    check_columns(lines[:-1])
    for options in ({}, {"sort": "broad"}, {"sort": "separator", "most": 2}):
        for found in (heads.roles(seen, TEXT), heads.roles(several)):
            text = printed(found, lang="zh", **options)
            assert not english_in(text), text
            told = ("…", "文本只有")
            check_columns([line for line in text.splitlines() if not line.startswith(told)][:-1])
    kinds = {line.split()[0] for line in printed(heads.roles(several), sort="broad", lang="zh").splitlines()}
    assert kinds - {"文本只有"} == {
        "类型",
        "编码器",
        "解码器",
        "交叉",
    }  # a line of its own says how short it is


def test_every_column_that_is_shown_has_a_heading(seen):
    for table in (heads.table(seen), heads.roles(seen, TEXT).table, heads.divergence(seen).table):
        for name in set(table.columns) - set(LEFT_OUT):
            assert re.search("[\u3400-\u9fff]", heading(name, "zh")), name


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_wide_tokens_take_the_room_that_they_need(seen, lang):
    chinese = ["注意力机制", "翻译", "模型"]
    rows = [(0, 3, 0.5, first, "翻译模型翻译模型") for first in chinese]
    table = heads.Table(("layer", "head", "first", "query_token", "key_token"), rows)
    for width in (40, 50, 60):
        text = printed(table, width, lang=lang)
        assert "…" not in text, text
        assert max(map(cell_len, text.splitlines())) <= width
        assert chinese[0] in text


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 100])
def test_only_the_example_of_a_role_is_shortened(lang, width):
    example = Example(0, 1, 0, 0.9, "一个很长的词元" * 9, "word")
    found = Roles(
        tuple(
            Head(0, "", kind, 120, 100 + at, 0, {role: Score(1.0, 0.0, example)})
            for at, (kind, role) in enumerate([("encoder", "separator"), ("cross", "induction")])
        )
    )
    for sort in (None, "induction"):
        lines = printed(found, width, sort=sort, lang=lang).splitlines()
        assert max(map(cell_len, lines)) <= width
        check_columns(lines)
        for line in lines[1:]:
            assert re.search(r" 120 +10[01]  .*  (1\.00 +█*  一个.*…|–) *$", line), line


@pytest.mark.parametrize(
    ("lang", "said"), [("en", "2 heads have no clear role"), ("zh", "2 个头没有明确的角色")]
)
def test_where_no_head_has_a_role_that_is_said(lang, said):
    found = Roles(tuple(Head(0, "", "decoder", 0, at, 0, {"next": Score(0.1)}) for at in range(2)))
    output = StringIO()
    show_telling(Console(file=output, width=80), found, lang=lang)
    assert output.getvalue().strip() == said


def test_most_telling_in_chinese(seen, several):
    assert most_telling(heads.roles(seen, TEXT), 2, lang="zh") == [
        "第 0 层第 0 头关注前一个词元（1.00）",
        "第 0 层第 1 头关注后一个词元（1.00）",
    ]
    told = most_telling(heads.table(several), 9, lang="zh")
    assert {line.split("注意力")[0] for line in told} <= {"编码器", "解码器", "交叉"}
    assert not english_in(" ".join(told))
    assert len(told) == len(most_telling(heads.table(several), 9)) > 0


def test_an_unknown_language(seen):
    for table in (heads.table(seen), heads.roles(seen)):
        with pytest.raises(ArgumentError, match=r"lang must be one of en, zh. Got lang = 'fr'"):
            printed(table, lang="fr")
        with pytest.raises(ArgumentError, match=r"lang must be one of en, zh. Got lang = 'fr'"):
            most_telling(table, 0, lang="fr")


def test_short_texts_and_scores_that_may_be_chance():
    short = recording_of(looking(LENGTH, LENGTH, lambda i: [0]))
    lines = printed(heads.roles(short, TEXT), 200).splitlines()
    assert lines[0].startswith("The text has 11 tokens, too few for roles to mean much; with 32 or more,")
    assert lines[1] == "1 head scores high in a role, but shuffled weights may do so too"
    assert lines[2] == "1 head has no clear role"
    chinese = printed(heads.roles(short, TEXT), 200, lang="zh").splitlines()
    assert chinese[0].startswith("文本只有 11 个词元")


def test_columns_may_be_named_as_they_are_printed(seen):
    table = heads.table(seen)
    by_name = printed(table, sort="previous_weight")
    assert printed(table, sort="previous") == by_name
    assert printed(table, sort="前一个") == by_name
    assert printed(table, lang="zh", sort="最受关注") == printed(table, lang="zh", sort="received_peak")
    roles = heads.roles(seen, TEXT)
    assert printed(roles, sort="Positional") == printed(roles, sort="positional")


def test_at_most_three_heads_of_one_role_are_listed():
    def head(number, **scores):
        return heads.Head(number // 10, "", "encoder", number // 10, number % 10, 0, scores)

    sure, unsure = heads.Score(0.9, adjusted=0.01), heads.Score(0.6, adjusted=1.0)
    shown = replace(unsure, example=heads.Example(0, 3, 1, 0.7, "d", "b"))
    several = [head(at, first=sure) for at in range(7)]
    several += [head(10 + at, broad=heads.Score(0.8)) for at in range(5)]
    several += [head(20, broad=heads.Score(0.8), previous=shown), head(21, next=shown)]
    roles = [one.shown or one.best for one in telling_heads(heads.Roles(tuple(several)))]
    assert roles == ["first"] * 3 + ["previous", "next"] + ["broad"] * 3
