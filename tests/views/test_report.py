"""The report of a survey, in a browser."""

import json
import re

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from heads.survey.conftest import folders, sentences  # noqa: F401 - a fixture
from regard.app.command import main
from regard.heads.findings import ROLES
from regard.views.report.html import ASSETS


@pytest.fixture(scope="module")
def folder(folders, tmp_path_factory):  # noqa: F811
    """A survey by the command, with texts that would break a careless page."""
    folder = tmp_path_factory.mktemp("survey")
    corpus = folder / "corpus.txt"
    texts = [*sentences(30), "the </script> cat </script> saw the </script> dog </script> then", "cat " * 40]
    corpus.write_text("\n".join(texts), encoding="utf-8")
    call = [
        "survey",
        str(corpus),
        "--model",
        str(folders["bert"]),
        "--out",
        str(folder / "out"),
        "--pages",
        "3",
    ]
    first = CliRunner().invoke(main, call)
    assert first.exit_code == 0, first.output
    assert "6 heads over 32 documents" in " ".join(first.output.split())
    assert "1 were too long and were cut short" in first.output
    assert "100 %" in first.output
    again = CliRunner().invoke(main, call)
    assert again.exit_code == 0, again.output
    refused = CliRunner().invoke(main, [*call, "--long", "split"])
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: A folder holds one survey (long = truncate in ")
    missing = CliRunner().invoke(main, ["survey", "none.txt", *call[2:]])
    assert missing.exit_code == 1
    assert "which does not exist" in missing.output
    return folder / "out"


def test_the_report_shows_everything_and_asks_for_nothing(folder, opened):
    page = opened(folder / "report.html").page
    summary = json.loads((folder / "summary.json").read_text())
    shown = page.locator(".figures dd").all_inner_texts()
    assert shown == [f"{summary[name]:,}" for name in ("documents", "tokens", "heads", "failed")]
    assert "1 document longer than 19 tokens, cut short" in page.locator("body").inner_text()
    assert page.locator(".map a").count() == 6
    assert page.locator(".curve").count() == 6
    assert page.locator(".heads tbody tr").count() == 6
    assert page.locator("section.head").count() == 6
    assert page.locator(".example").count() == 18
    # Tokens are text, whatever they say.
    assert page.locator(".text span", has_text="</script>").count() > 0
    assert page.locator("script").count() == 1


def test_columns_sort_both_ways(folder, opened):
    page = opened(folder / "report.html").page
    exact = sorted(pq.read_table(folder / "heads.parquet").column("entropy_mean").to_pylist(), reverse=True)
    column = page.locator(".heads tbody tr td:nth-child(4)")
    page.locator(".heads th:nth-child(4) button").click()
    assert column.all_inner_texts() == [f"{value:.3f}" for value in exact]
    page.locator(".heads th:nth-child(4) button").click()
    assert column.all_inner_texts() == [f"{value:.3f}" for value in reversed(exact)]


def test_an_example_opens_in_its_view(folder, opened):
    page = opened(folder / "report.html").page
    links = page.locator(".example a")
    assert links.count() >= 3
    for index in range(links.count()):
        target = links.nth(index).get_attribute("href")
        assert re.fullmatch(
            r"examples/00[0-2]\.html#view=lines&call=[01]&head=[0-2]&heads=[0-2]&query=\d+", target
        )
    assert sorted(path.name for path in (folder / "examples").iterdir()) == [
        "000.html",
        "001.html",
        "002.html",
    ]
    links.first.click()
    page.wait_for_selector("#regard")
    assert "/examples/" in page.url


def test_every_role_has_a_colour():
    style = (ASSETS / "report.css").read_text(encoding="utf-8")
    for role in ROLES:
        assert f".{role} {{ --hue:" in style
