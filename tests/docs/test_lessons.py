"""The course: every cell runs, both languages have the same code, and every lesson has the same shape."""

import ast
import functools
import html
import io
import re
import tokenize

import jupytext
import nbformat
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from docs.lesson_languages import LANGUAGES, run_in_step
from docs.scripts import DOCS, script
from regard import figures
from regard.recording import reader

LESSONS = DOCS / "lessons"
RICH = ("_repr_html_", "_repr_markdown_")
CHINESE = re.compile("[\u4e00-\u9fff]")
ENGLISH = re.compile(r"[A-Za-z]{2,},? [a-z]{2,}")
WORD = re.compile("[A-Za-z]{2,}")
BROKEN = re.compile(".[\u4e00-\u9fff，。；：？！、）”]\n[\u4e00-\u9fff（“].")  # browsers show a space there
NAMES = sorted(path.stem for path in (LESSONS / "en").glob("[0-9]*.md"))
FIXED = ("内积", "令牌", "键头", "裸参数", "词元站在", "看进", "合适多少")  # other words are in the glossary
SMALLEST = 9  # points
FEWER = {"steps": 20, "rounds": 1}
WIDEST = 9.6  # inches, 920 pixels of a browser: the site would shrink what is wider, and its labels


def page(lang, name):
    return (LESSONS / lang / f"{name}.md").read_text(encoding="utf-8")


def cells(lang, name, kind):
    notebook = jupytext.read(LESSONS / lang / f"{name}.md")
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def shortened(source):
    """A cell in which trainings have fewer steps, and repetitions fewer rounds."""
    return re.sub(r"^(steps|rounds) = \d+$", lambda m: f"{m[1]} = {FEWER[m[1]]}", source, flags=re.MULTILINE)


def texts(figure):
    return [one for one in figure.findobj(Text) if one.get_text() and one.get_visible()]


def measure(figure):
    """Measure every text, as drawing would: a character that no font has is a warning, which fails a test."""
    for one in texts(figure):
        one.get_window_extent()


@pytest.fixture(scope="module")
def one_model():
    """A model that several lessons load is loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "load_reader", functools.cache(reader.load_reader))
        yield


def test_there_are_ten_in_each_language():
    assert [name[:2] for name in NAMES] == [f"{number:02}" for number in range(1, 11)]
    assert sorted(path.stem for path in (LESSONS / "zh").glob("[0-9]*.md")) == NAMES


@pytest.mark.usefixtures("one_model")
@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs_and_every_figure_can_be_read(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # the same cells run on every machine
    drawn = {}
    for shown in run_in_step(
        {lang: [*map(shortened, cells(lang, name, "code"))] for lang in LANGUAGES}, name
    ):
        for lang, one in shown.items():
            if isinstance(one, Figure):
                drawn[id(one)] = lang, one
            elif one is not None:  # a notebook displays one of these forms
                assert any(hasattr(one, form) and getattr(one, form)() for form in RICH)
    assert len(drawn) >= 4
    for lang, figure in drawn.values():
        measure(figure)
        sizes = [one.get_fontsize() for one in texts(figure)]
        assert min(sizes) >= SMALLEST - 0.01
        assert max(sizes) >= 10  # a title
        assert figure.get_size_inches()[0] <= WIDEST
        if lang == "zh":
            for one in texts(figure):
                assert not ENGLISH.search(one.get_text()), one.get_text()


def in_both(english, chinese):
    """What two small lessons of one cell display."""
    return [*run_in_step({"en": [english], "zh": [chinese]}, "small")]


def test_what_both_languages_write_is_run_once():
    shared = "runs = []\nruns.append(1)\n"
    assert in_both(f"{shared}'one'\nlen(runs)", f"{shared}'一'\nlen(runs)") == [{"en": 1, "zh": 1}]


def test_what_depends_on_the_language_is_run_in_both():
    code = (
        "rows = []\nfor word in ({},):\n    rows.append(word)\n\ndef all_of():\n    return rows\n\nall_of()"
    )
    assert in_both(code.format("'cat'"), code.format("'猫'")) == [{"en": ["cat"], "zh": ["猫"]}]


@pytest.mark.parametrize(
    ("english", "chinese", "error"),
    [
        ("lang = 'en'\n{'zh': 1}[lang]", "lang = 'zh'\n{'zh': 1}[lang]", KeyError),
        ("print(undefined, 'sum')", "print('总和')", NameError),
        ("title = 'a'\n1", "title = '一'", AssertionError),
    ],
)
def test_what_fails_in_one_language_fails(english, chinese, error):
    with pytest.raises(error):
        in_both(english, chinese)


def test_a_label_that_cannot_be_drawn_fails():
    figure = figures.bars([1.0], ["cat"], title="cat")
    measure(figure)
    figure.axes[0].set_title("猫", family="DejaVu Sans")
    with pytest.raises(UserWarning, match="missing from"):
        measure(figure)


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
            assert CHINESE.search(words) or not WORD.search(re.sub("regard|log|ms", "", words)), words


@pytest.mark.parametrize("name", NAMES)
def test_code_is_shown_some_lines_at_a_time(name):
    for source in cells("en", name, "code"):
        assert len([line for line in source.splitlines() if line]) <= 10, source
        assert max(map(len, source.splitlines())) <= 110
        assert "demonstration(" not in source  # which would hide what is taught


@pytest.mark.parametrize("name", NAMES)
def test_the_prose_is_complete_in_both_languages(name):
    english, chinese = (cells(lang, name, "markdown") for lang in ("en", "zh"))
    assert len(english) == len(chinese)
    for here, there in zip(english, chinese):
        assert CHINESE.search(there)
        assert not BROKEN.search(there), BROKEN.findall(there)
        for mark in ("\n#", "```", "$$", "<details>", "</details>", "**"):
            assert here.count(mark) == there.count(mark), (mark, there)
    assert sum(text.count("$$") for text in english) >= 2  # the equation
    assert not [word for word in FIXED if word in page("zh", name)]
    # 10 to 15 minutes: a thousand words of prose, and code to read along.
    words = sum(len(text.split()) for text in english)
    lines = sum(source.count("\n") + 1 for source in cells("en", name, "code"))
    assert 600 <= words <= 1400
    assert 70 <= lines <= 190


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_every_lesson_has_the_same_shape(name, lang):
    text = page(lang, name)
    headings = re.findall(r"^## (.*)", text, re.MULTILINE)
    last = {"en": ["Exercises", "What to read next"], "zh": ["练习", "接下来读什么"]}[lang]
    assert headings[-2:] == last
    assert re.search(r"^> \*\*.*[?？]\*\*$", text, re.MULTILINE)  # the question
    assert "`regard play " in text or "`regard look " in text
    assert "$" in text
    assert "minilm" in text or name.startswith(("07", "10"))  # what a real model does
    exercises = text.partition(f"## {last[0]}\n")[2].partition(f"## {last[1]}\n")[0]
    answers = re.findall(r"<details>\n<summary>(?:Answer|答案)</summary>\n\n```python\n", exercises)
    assert 3 <= len(re.findall(r"^\*\*\d\.\*\*", exercises, re.MULTILINE)) == len(answers) <= 5


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_lessons_link_to_each_other(name, lang):
    text, place = page(lang, name), NAMES.index(name)
    first = text.splitlines()[2]
    other = "zh" if lang == "en" else "en"
    wanted = ["README.md", f"../{other}/{name}.md"]
    wanted += [f"{NAMES[near]}.md" for near in (place - 1, place + 1) if 0 <= near < len(NAMES)]
    assert all(f"]({link})" in first for link in wanted)
    for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
        assert (LESSONS / lang / link).exists(), link


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_index_of_the_course_has_every_lesson_and_its_question(lang):
    index = (LESSONS / lang / "README.md").read_text(encoding="utf-8")
    for number, name in enumerate(NAMES, start=1):
        title = re.search(r"^# \d+ · (.*)$", page(lang, name), re.MULTILINE).group(1)
        assert f"| {number} | [{title}]({name}.md) |" in index


@pytest.mark.parametrize("name", NAMES)
def test_equations_are_the_same_and_become_mathml(name):
    site = script("make_site")
    english, chinese = (
        re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", prose(page(lang, name))) for lang in ("en", "zh")
    )
    assert english
    for tex in (*english, *chinese):
        made = site.mathml(html.escape("".join(tex)))
        assert made.startswith("<math")
        assert "\\" not in made, made  # a command that was not understood

    def words_removed(found):
        return [re.sub(r"\\text\{.*?\}|i ?(?=&|$)|\s|if|j", "", tex[0]) for tex in found if tex[0]]

    assert words_removed(english) == words_removed(chinese)


def prose(text):
    return re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)


def test_the_glossary_has_the_fixed_terms():
    table = (DOCS / "glossary.md").read_text(encoding="utf-8")
    for english, chinese in (
        ("query", "查询"),
        ("key", "键"),
        ("value", "值"),
        ("score", "分数"),
        ("dot product", "点积"),
        ("token", "词元"),
        ("key-value head", "键值头"),
    ):
        assert f"| {english} | {chinese} |" in table


def test_a_notebook_folds_its_answers(tmp_path):
    site, lesson = script("make_site"), tmp_path / "01-small.md"
    lesson.write_text(
        "# 1 · Small\n\n```python\nprint(6 * 7)\n```\n\n**1.** Why?\n\n"
        "<details>\n<summary>Answer</summary>\n\n```python\n6 + 1\n```\n\nBecause.\n\n</details>\n",
        encoding="utf-8",
    )
    notebook = site.run(lesson)
    site.write_notebook(notebook, tmp_path / "small.ipynb")
    kept = nbformat.read(tmp_path / "small.ipynb", as_version=4)
    assert "details" not in "".join(cell.source for cell in kept.cells)
    assert [cell.metadata.get("jupyter", {}).get("source_hidden") for cell in kept.cells] == [
        None, None, None, True, None,
    ]  # fmt: skip
    page = site.fold(site.with_results(notebook, "small", tmp_path))
    assert "``` { .text .result }\n42\n```" in page
    assert '??? success "Answer"\n\n    ```python\n    6 + 1\n    ```' in page
    assert "    ``` { .text .result }\n    7\n    ```" in page


def test_a_cell_that_fails_fails_the_build(tmp_path):
    from nbclient.exceptions import CellExecutionError

    lesson = tmp_path / "09-wrong.md"
    lesson.write_text("# Wrong\n\n```python\nassert 1 + 1 == 3\n```\n", encoding="utf-8")
    with pytest.raises(CellExecutionError):
        script("make_site").run(lesson)
