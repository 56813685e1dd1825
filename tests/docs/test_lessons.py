"""The lessons: every cell of them runs, both languages hold the same code, and the page needs no network."""

import ast
import re

import jupytext
import pytest
from matplotlib.figure import Figure

from docs.scripts import DOCS, script

RICH = ("_repr_html_", "_repr_markdown_")
CHINESE = re.compile("[\u4e00-\u9fff]")
NAMES = sorted(path.stem for path in (DOCS / "lessons" / "en").glob("*.py"))


def cells(lang, name, kind):
    notebook = jupytext.read(DOCS / "lessons" / lang / f"{name}.py")
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def run(source, names, where):
    """Run a cell as a notebook does: the value of its last line is what is shown."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)


def test_there_are_eight_in_each_language():
    assert len(NAMES) == 8
    assert [name[:2] for name in NAMES] == [f"0{number}" for number in range(1, 9)]
    assert sorted(path.stem for path in (DOCS / "lessons" / "zh").glob("*.py")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs(name):
    names, figures = {"__name__": "__main__"}, 0
    for source in cells("en", name, "code"):
        shown = run(source, names, name)
        if isinstance(shown, Figure):
            shown.canvas.draw()
            figures += 1
        elif shown is not None:  # what a notebook would ask for
            assert any(hasattr(shown, form) and getattr(shown, form)() for form in RICH)
    assert figures >= 2


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_hold_the_same_code(name):
    english, chinese = (cells(lang, name, "code") for lang in ("en", "zh"))
    # The first cell says the language of figures and facts; that is the only difference.
    assert (english.pop(0), chinese.pop(0)) == ('lang = "en"', 'lang = "zh"')
    assert english == chinese


@pytest.mark.parametrize("name", NAMES)
def test_the_prose_is_whole_in_both_languages(name):
    english, chinese = (cells(lang, name, "markdown") for lang in ("en", "zh"))
    assert len(english) == len(chinese)
    for here, there in zip(english, chinese):
        assert CHINESE.search(there)
        assert here.count("\n#") == there.count("\n#")
        assert here.count("```") == there.count("```")
    # Five to ten minutes: some hundred words of prose, and code to read along.
    words = sum(len(text.split()) for text in english)
    lines = sum(source.count("\n") + 1 for source in cells("en", name, "code"))
    assert 150 <= words <= 900
    assert 30 <= lines <= 150


def test_a_lesson_becomes_a_notebook_and_a_page_without_network(tmp_path):
    site = script("make_site")
    page = site.write_lesson(site.LESSONS / "zh" / "01-library.py", tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "一个查询与一座图书馆" in text
    assert "data:image/png;base64," in text
    assert not re.search(r"""(?:src|href)=["']https?:|from ["']https?:|import\(["']https?:""", text)
    notebook = jupytext.read(tmp_path / "01-library.ipynb")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs
    assert not any(output.output_type == "error" for output in outputs)


def test_a_cell_that_fails_fails_the_build(tmp_path):
    from nbclient.exceptions import CellExecutionError

    lesson = tmp_path / "09-wrong.py"
    lesson.write_text("# %% [markdown]\n# # Wrong\n\n# %%\nassert 1 + 1 == 3\n", encoding="utf-8")
    with pytest.raises(CellExecutionError):
        script("make_site").write_lesson(lesson, tmp_path)


def test_the_index_links_every_lesson(tmp_path):
    site = script("make_site")
    site.write_index(tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    for lang in site.LANGUAGES:
        for name in NAMES:
            assert f'href="lessons/{lang}/{name}.html"' in text
