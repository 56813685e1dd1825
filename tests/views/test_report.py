"""The report of a survey, in a browser."""

import json
import re

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from heads.survey.conftest import folders, sentences  # noqa: F401 - a fixture
from regard.app.main import main
from regard.errors import ArgumentError
from regard.heads.role_results import ROLES
from regard.views import column_headings
from regard.views.report.report_file import write_report
from regard.views.report.report_html import ASSETS, COLUMNS
from regard.views.report.report_texts import TEXTS, ReportTexts
from views.browser import until

ENGLISH = re.compile("[A-Za-z]{2,}")
HAN = re.compile("[\u3400-\u9fff]")


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
    assert "1 were too long and were truncated" in first.output
    assert "100 %" in first.output
    again = CliRunner().invoke(main, call)
    assert again.exit_code == 0, again.output
    refused = CliRunner().invoke(main, [*call, "--long", "split"])
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: A folder can contain only one survey (long = truncate in ")
    in_chinese = ["--out", str(folder / "chinese"), "--pages", "3", "--lang", "zh"]
    chinese = CliRunner(env={"COLUMNS": "300"}).invoke(main, [*call[:4], *in_chinese])
    assert chinese.exit_code == 0, chinese.output
    assert "6 个头，32 篇文档，" in chinese.output
    assert "1 篇过长，已截短" in chinese.output
    assert not ENGLISH.findall(chinese.output.replace(str(folder / "chinese" / "report.html"), ""))
    missing = CliRunner().invoke(main, ["survey", "none.txt", *call[2:]])
    assert missing.exit_code == 1
    assert "which does not exist" in missing.output
    return folder / "out"


def test_the_report_shows_everything_and_asks_for_nothing(folder, opened):
    page = opened(folder / "report.html").page
    summary = json.loads((folder / "summary.json").read_text())
    shown = page.locator(".figures dd").all_inner_texts()
    assert shown == [f"{summary[name]:,}" for name in ("documents", "tokens", "heads", "failed")]
    assert "1 document longer than 19 tokens, truncated" in page.locator("body").inner_text()
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


# ---- in Chinese ----------------------------------------------------------------------------------

SAID = """() => {
  const said = [document.title];
  const walk = (node) => {
    if (node.nodeType === 3) said.push(node.data);
    if (node.nodeType !== 1 || ["SCRIPT", "STYLE"].includes(node.tagName)) return;
    if (node.matches(".text span, .example b")) return; // tokens
    for (const name of ["aria-label", "title", "alt"]) said.push(node.getAttribute(name) ?? "");
    node.childNodes.forEach(walk);
  };
  walk(document.body);
  return said.filter((text) => text.trim()); }"""
NAMES = (
    "regard",
    "bert",
    "corpus.txt",
    "failed.jsonl",
    "heads.parquet",
    "docs/survey.md",
    "docs/statistics.md",
)


def english_in(said, model):
    for name in (model, *NAMES):
        said = [text.replace(name, " ") for text in said]
    return [text for text in said if ENGLISH.search(text)]


@pytest.fixture(scope="module")
def reports(folder):
    return {"en": folder, "zh": folder.parent / "chinese"}


def test_in_chinese_no_english_is_left(reports, opened):
    model = json.loads((reports["zh"] / "summary.json").read_text())["model"]
    said = {lang: opened(reports[lang] / "report.html").page.evaluate(SAID) for lang in reports}
    assert not english_in(said["zh"], model)
    assert not [text for text in said["en"] if HAN.search(text)]
    assert len(said["zh"]) == len(said["en"])
    assert len(english_in(said["en"], model)) > 50  # the check would notice


def test_the_report_names_its_language_and_opens_pages_in_it(reports, opened):
    for lang, tag, called in (("en", "en", "open this text"), ("zh", "zh-CN", "打开这段文本")):
        page = opened(reports[lang] / "report.html").page
        assert page.evaluate("document.documentElement.lang") == tag
        page.locator(".example a", has_text=called).first.click()
        page.wait_for_function("window.regard?.app")
        assert page.evaluate("regard.state.now.language") == lang
        assert page.evaluate("document.documentElement.lang") == tag


def test_the_chinese_report_fits(reports, opened):
    page = opened(reports["zh"] / "report.html").page
    heads = page.locator(".heads th button")
    tall = [heads.nth(index).bounding_box()["height"] for index in range(heads.count())]
    assert max(tall) == min(tall)  # no name of a column is broken
    page.set_viewport_size({"width": 390, "height": 800})
    until(page, "document.documentElement.scrollWidth <= 390")


def test_no_place_is_left_over(reports):
    keys = set(re.findall(r"<!-- text ([\w.]+) -->", (ASSETS / "report.html").read_text(encoding="utf-8")))
    assert keys == {
        "name",
        *(f"{part}{end}" for part in ("roles", "curves", "heads", "examples") for end in ("", ".about")),
    }
    for folder in reports.values():
        assert "<!--" not in (folder / "report.html").read_text(encoding="utf-8")
    with pytest.raises(KeyError):
        ReportTexts("en").fill("<!-- text nonsense -->")


def test_every_role_column_and_kind_has_its_words():
    wanted = {f"{what}.{kind}" for what in ("kind", "layer") for kind in ("encoder", "decoder", "cross")}
    wanted |= {f"fact.corpus.{unit}" for unit in ("line", "paragraph", "file")}
    for lang in ("en", "zh"):
        assert wanted <= TEXTS.table(lang).keys()
        columns = {name for name in COLUMNS if f"column.{name}" not in TEXTS.table(lang)}
        names = {*ROLES, *(name.removesuffix("_mean") for name in columns)}
        assert names <= column_headings.STATISTICS.table(lang).keys()
    for key, text in TEXTS.table("zh").items():
        bare = re.sub(r"\{[^}]*\}|</?b>|95 %", "", text)
        assert HAN.search(bare) or key in ("fact.version", "column.distance_p95"), key
        assert not english_in([bare], "bert"), key


def test_an_unknown_language(tmp_path):
    with pytest.raises(ArgumentError, match="lang must be one of en, zh"):
        write_report(None, None, None, tmp_path, lang="fr")
    assert not list(tmp_path.iterdir())
