"""The lessons: every cell runs, both languages have the same code, and the page needs no network."""

import ast
import io
import re
import tokenize

import jupytext
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from docs.scripts import DOCS, script

RICH = ("_repr_html_", "_repr_markdown_")
CHINESE = re.compile("[\u4e00-\u9fff]")
ENGLISH = re.compile(r"[A-Za-z]{2,},? [a-z]{2,}")
WORD = re.compile("[A-Za-z]{2,}")
BROKEN = re.compile(".[\u4e00-\u9fff，。；：？！、）”]\n[\u4e00-\u9fff（“].")  # browsers show a space there
NAMES = sorted(path.stem for path in (DOCS / "lessons" / "en").glob("*.py"))


def cells(lang, name, kind):
    notebook = jupytext.read(DOCS / "lessons" / lang / f"{name}.py")
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def run(source, names, where):
    """Run a cell as a notebook does, and return the value of its last line."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)


def test_there_are_eight_in_each_language():
    assert len(NAMES) == 8
    assert [name[:2] for name in NAMES] == [f"0{number}" for number in range(1, 9)]
    assert sorted(path.stem for path in (DOCS / "lessons" / "zh").glob("*.py")) == NAMES


# English has the same code, which a test below compares; `make docs` runs both.
@pytest.mark.parametrize(("name", "lang"), [*((name, "zh") for name in NAMES), (NAMES[0], "en")])
def test_every_cell_runs(name, lang, capsys):
    names, figures = {"__name__": "__main__"}, []
    for source in cells(lang, name, "code"):
        shown = run(source, names, name)
        if isinstance(shown, Figure):
            shown.canvas.draw()
            figures.append(shown)
        elif shown is not None:  # a notebook displays one of these forms
            assert any(hasattr(shown, form) and getattr(shown, form)() for form in RICH)
    assert len(figures) >= 2
    assert bool(CHINESE.search(capsys.readouterr().out)) or lang == "en"
    if lang == "zh":
        for text in (text for figure in figures for text in figure.findobj(Text)):
            assert not ENGLISH.search(text.get_text()), text.get_text()


def same(here, there):
    """Whether two pieces of code do the same; what they say to people may be English and Chinese.

    In an f-string the values may then stand in another order.
    """
    if type(here) is not type(there):
        return False
    if isinstance(here, ast.JoinedStr):
        texts = [
            [one.value for one in node.values if isinstance(one, ast.Constant)] for node in (here, there)
        ]
        values = [
            sorted(ast.dump(one) for one in node.values if isinstance(one, ast.FormattedValue))
            for node in (here, there)
        ]
        return values[0] == values[1] and (texts[0] == texts[1] or bool(CHINESE.search("".join(texts[1]))))
    if isinstance(here, ast.Constant) and isinstance(here.value, str):
        return here.value == there.value or bool(CHINESE.search(str(there.value)))
    if isinstance(here, ast.AST):
        return all(same(getattr(here, name), getattr(there, name)) for name in here._fields)
    if isinstance(here, list):
        return len(here) == len(there) and all(map(same, here, there))
    return bool(here == there)


@pytest.mark.parametrize(
    ("here", "there", "wanted"),
    [
        ('print("sum", x)', 'print("总和", x)', True),
        ('print(f"{a} of {b}")', 'print(f"{b} 中的 {a}")', True),
        ('print("sum", x)', 'print("总和", y)', False),
        ('print("sum", x)', 'print("total", x)', False),
        ('print(f"{a} of {b}")', 'print(f"{b} 中的 {b}")', False),
        ("a + b", "a - b", False),
        ("a", "a; b", False),
    ],
)
def test_the_comparison_of_code(here, there, wanted):
    assert same(ast.parse(here), ast.parse(there)) is wanted


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_have_the_same_code(name):
    english, chinese = (cells(lang, name, "code") for lang in ("en", "zh"))
    # The first cell sets the language of figures and facts.
    assert (english.pop(0), chinese.pop(0)) == ('lang = "en"', 'lang = "zh"')
    assert len(english) == len(chinese)
    for here, there in zip(english, chinese):
        assert same(ast.parse(here), ast.parse(there)), there


def comments(source):
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in found if token.type == tokenize.COMMENT]


def printed_words(source):
    """The literal text that the code prints, without the values in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            for part in node.args:
                pieces = part.values if isinstance(part, ast.JoinedStr) else [part]
                words = [str(one.value) for one in pieces if isinstance(one, ast.Constant)]
                yield " ".join(words)


@pytest.mark.parametrize("name", NAMES)
def test_code_is_in_the_language_of_its_lesson(name):
    for here, there in zip(*(cells(lang, name, "code") for lang in ("en", "zh"))):
        assert len(comments(here)) == len(comments(there))
        assert all(CHINESE.search(comment) for comment in comments(there)), there
        for words in printed_words(there):
            assert CHINESE.search(words) or not WORD.search(words.replace("regard", "")), words


@pytest.mark.parametrize("name", NAMES)
def test_the_prose_is_complete_in_both_languages(name):
    english, chinese = (cells(lang, name, "markdown") for lang in ("en", "zh"))
    assert len(english) == len(chinese)
    for here, there in zip(english, chinese):
        assert CHINESE.search(there)
        assert not BROKEN.search(there), BROKEN.findall(there)
        assert here.count("\n#") == there.count("\n#")
        assert here.count("```") == there.count("```")
    # Five to ten minutes: some hundred words of prose, and code to read along.
    words = sum(len(text.split()) for text in english)
    lines = sum(source.count("\n") + 1 for source in cells("en", name, "code"))
    assert 150 <= words <= 900
    assert 30 <= lines <= 150


def test_a_lesson_becomes_a_notebook_and_a_page_that_works_offline(tmp_path):
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
