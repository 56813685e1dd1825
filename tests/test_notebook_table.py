"""What a notebook shows of values: HTML tables that hold what was measured, and never what a token says."""

import math
from html.parser import HTMLParser

import torch

import regard
from heads.synthetic_heads import looking, recording_of
from regard import heads, masks
from regard.notebook_table import MOST_ROWS, html_table
from regard.table import Table


class Cells(HTMLParser):
    """The rows of a table, as texts."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, _attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip("\n")


HOSTILE = "</td><script>alert(1)</script>"


def test_a_table():
    found = Cells(
        Table(("token", "weight", "count"), [(HOSTILE, 0.123456, 12345), ("b", None, 1)])._repr_html_()
    )
    assert found.rows == [["token", "weight", "count"], [HOSTILE, "0.123", "12,345"], ["b", "", "1"]]
    assert "script" not in found.tags


def test_the_fractions_of_a_column_have_the_same_places():
    def written(*values):
        return [row[0] for row in Cells(html_table(("n",), [(value,) for value in values])).rows[1:]]

    assert written(1.0, 0.71, 0.934, 0.0, None) == ["1.000", "0.710", "0.934", "0.000", ""]
    assert written(12.0, 3.456) == ["12.00", "3.46"]
    assert written(-250.0, 431.6) == ["-250", "432"]
    # What would lose its digits or fill them with zeros stays as it was.
    assert written(1.0, 1.2e-7) == ["1", "1.2e-07"]
    assert written(12345.0, 0.5) == ["1.23e+04", "0.5"]
    assert written(math.inf, math.nan, 0.5) == ["inf", "nan", "0.5"]


def test_long_tables_are_cut():
    text = html_table(("n",), [(n,) for n in range(MOST_ROWS + 7)], "rows")
    assert len(Cells(text).rows) == 1 + MOST_ROWS
    assert "<div>rows · the first 40 rows are shown, 7 more are not</div>" in text
    assert "the first" not in html_table(("n",), [(n,) for n in range(MOST_ROWS)], "rows")


def test_the_note_on_rows_left_out_follows_the_language_of_the_user(monkeypatch):
    rows = [(n,) for n in range(MOST_ROWS + 1234)]
    monkeypatch.setenv("REGARD_LANG", "zh")
    assert "<div>显示前 40 行，另有 1,234 行未显示</div>" in html_table(("n",), rows)
    monkeypatch.setenv("REGARD_LANG", "fr")
    assert "the first 40 rows are shown, 1,234 more are not" in html_table(("n",), rows)


def test_a_recording_and_its_roles():
    seen = recording_of(*(looking(40, 40, lambda i, step=step: [i - step]) for step in (1, 0)))
    seen.tokens = [HOSTILE, *map(str, range(39))]
    calls = Cells(seen._repr_html_())
    assert calls.rows[1][1:3] == ["made", "encoder"]
    assert calls.rows[1][6:9] == ["2", "40", "40"]
    found = Cells(heads.roles(seen)._repr_html_())
    assert {row[3] for row in found.rows[1:]} == {"attends to the previous token", "attends to its own token"}
    assert "script" not in found.tags


def test_a_head_without_a_role_has_empty_cells():
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(40, 40, generator=generator)  # neither broad nor at any place of its own
    found = Cells(heads.roles(recording_of(scores))._repr_html_())
    assert found.rows[1][3:] == ["", "", ""]


def test_plan_and_cost():
    plan = regard.plan(masks.window(4, 0), 100, 100)
    assert str(plan).splitlines()[0] in plan._repr_html_()
    assert "overflow-x: auto" in regard.plan(masks.causal(), 512)._repr_html_()  # its lines may be long
    cost = regard.cost([512], ways=["dense"])
    rows = Cells(cost._repr_html_()).rows
    assert rows[0][:2] == ["length", "way"]
    assert rows[1][:3] == ["512", "dense", "512"]
    assert rows[1][5] == f"{cost[512, 'dense'].operations:,}"
