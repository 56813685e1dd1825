"""Build the documentation as a site: the course, pages to play with, the guides and the reference.

python docs/make_site.py [folder]

| folder          | what is in it                                                                       |
|-----------------|-------------------------------------------------------------------------------------|
| `.`             | the English site: course, guides, glossary, reference of names and commands         |
| `zh`            | the Chinese site: course, glossary, commands                                        |
| `lessons/en/*`  | each lesson as a page with its results, and as a notebook (`zh/lessons/zh/*` too)   |
| `play-*.html`   | the pages of `regard play` (`zh/play-*.html` too)                                   |
| `api`           | the docstrings of every public room, by pdoc                                        |

Markdown is copied to a temporary folder, where lessons get the results of their cells and links are
adapted, and MkDocs makes pages of it. Equations become MathML. Nothing is fetched, neither now nor by the
pages, which also work from a disk.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from os.path import relpath
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, NamedTuple

import jupytext
import nbformat
from nbclient import NotebookClient
from pymdownx.slugs import slugify

import regard
from regard.lessons import playable_pages
from regard.views.figures.style import DOTS
from regard.views.play import CourseLinks

DOCS = Path(__file__).parent
ROOT = DOCS.parent
LESSONS = DOCS / "lessons"
ASSETS = DOCS / "site"
LANGUAGES = ("en", "zh")
NARROW = 8
"""The most bars in a row of a table that fits into half of a page."""
READABLE = 80
"""Pixels of a screen per inch of a figure: its labels of 9 points are 10 pixels high, and can be read."""
PHONE = 410
"""The widest figure in pixels that a phone shrinks to its 360: its labels are then 9 pixels high."""
PLAYABLES = ("one-query", "sentence", "masks", "transformer")

ROOMS = (
    "regard",
    "regard.errors",
    "regard.masks",
    "regard.kernels",
    "regard.kernels.reference",
    "regard.kernels.biases",
    "regard.nn",
    "regard.recording",
    "regard.heads",
    "regard.heads.survey",
    "regard.edits",
    "regard.edits.model_edit",
    "regard.metrics",
    "regard.ablation",
    "regard.speech",
    "regard.translator",
    "regard.views",
    "regard.views.figures",
    "regard.views.page",
    "regard.views.bertviz",
    "regard.lessons",
    "regard.diagnosis",
)
"""What the reference shows: the packages, and the modules that have their own name in ``regard``."""

WORDS = {
    "en": {
        "course": "Course",
        "play": "Play",
        "glossary": "Glossary",
        "reference": "Reference",
        "names": "Every name in full",
        "notebook": "This lesson as a notebook",
        "one-query": "One query",
        "sentence": "A sentence",
        "masks": "Masks",
        "transformer": "The transformer",
    },
    "zh": {
        "course": "课程",
        "play": "动手玩",
        "glossary": "术语表",
        "reference": "参考",
        "commands": "命令",
        "notebook": "本课的笔记本",
        "one-query": "一个查询",
        "sentence": "一个句子",
        "masks": "掩码",
        "transformer": "Transformer 模型",
    },
}


# ---- lessons ---------------------------------------------------------------------------------------


def lessons(lang: str) -> list[Path]:
    """The lessons of a language, in order."""
    return sorted((LESSONS / lang).glob("[0-9]*.md"))


def title_of(page: Path) -> str:
    """The first heading."""
    first = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert first is not None, page
    return first.group(1)


def run(lesson: Path, *, seconds: int = 600) -> nbformat.NotebookNode:
    """The lesson as a notebook with its results."""
    notebook: nbformat.NotebookNode = jupytext.read(lesson)
    # Without it every kernel warns that it talks to this program over TCP, though only on this machine.
    quiet = ["--log-level=ERROR"]
    NotebookClient(notebook, timeout=seconds, kernel_name="python3", extra_arguments=quiet).execute()
    return notebook


def write_notebook(
    notebook: nbformat.NotebookNode, path: Path, linked: Callable[[str], str] = lambda text: text
) -> None:
    """The notebook as .ipynb, with its links as those of the page beside it.

    Answers are cells whose code is folded, since no tag can span several cells.
    """
    copy = nbformat.from_dict(notebook)
    folded = False
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            folded = cell.source.rfind("<details>") > cell.source.rfind("</details>")
            cell.source = re.sub(r"</?details>\n?", "", cell.source)
            cell.source = re.sub(r"<summary>(.*?)</summary>", r"**\1**", cell.source).strip()
            cell.source = link_notebooks(linked(cell.source))
        elif folded:
            cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": True}
    nbformat.write(copy, path)


def with_results(notebook: nbformat.NotebookNode, name: str, folder: Path) -> str:
    """The notebook as Markdown, with the results after each cell; pictures are written into the folder."""
    parts: list[str] = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for place, output in enumerate(_joined(cell.outputs)):
            shown = _result(output, _drawn(cell.source), folder / f"{name}-{number}-{place}.png")
            parts += [shown] if shown else []
    return "\n\n".join(parts)


def _drawn(source: str) -> str:
    """What a cell draws, for those who cannot see it: the title of its figure, or else the call.

    >>> _drawn('title = f"{share} % for “cat”"\\nbars(weights, title=title)')
    '… % for “cat”'
    >>> _drawn('draw(first, title="With √d") # both'), _drawn("mask = causal()\\nfigures.mask(mask, 14)")
    ('With √d', 'figures.mask(mask, 14)')
    """
    title = re.search(r"""title ?= ?f?"(.*?)\"""", source)
    return re.sub(r"\{.*?\}", "…", title.group(1)) if title else source.split("\n")[-1]


def _joined(outputs: list[Any]) -> list[Any]:
    """The outputs of a cell, with what was printed in several pieces as one."""
    joined: list[Any] = []
    for output in outputs:
        name = output.get("name")
        if output.output_type == "stream" and joined and joined[-1].get("name") == name:
            joined[-1] = nbformat.from_dict({**joined[-1], "text": joined[-1].text + output.text})
        else:
            joined.append(output)
    return joined


def _result(output: Any, drawn: str, picture: Path) -> str:
    if output.output_type == "stream":
        return f"``` {{ .text .result }}\n{output.text.rstrip()}\n```" if output.name == "stdout" else ""
    data = output.get("data", {})
    if "image/png" in data:
        picture.write_bytes(base64.b64decode(data["image/png"]))
        width = _inches_wide(picture) * READABLE
        # A link to itself: alone it can be enlarged. A phone scrolls a wide one instead of shrinking it.
        wide = f' wide" style="--readable: {width:.0f}px' if width > PHONE else ""
        shown = f'<img alt="{html.escape(drawn)}" src="{picture.name}">'
        return f'<a class="picture{wide}" href="{picture.name}">{shown}</a>'
    if "text/markdown" in data:
        return _steps(data["text/markdown"])
    return f"``` {{ .text .result }}\n{data['text/plain']}\n```"


def _inches_wide(picture: Path) -> float:
    """The width of a PNG with the resolution at which regard draws: pixels stand in bytes 16 to 19."""
    return int.from_bytes(picture.read_bytes()[16:20], "big") / DOTS


def _steps(explanation: str) -> str:
    """An explanation, each of its steps by itself; those with narrow tables are set in two columns."""
    # Its headings stay below those of the lesson.
    text = re.sub(r"^(#+) ", r"###\1 ", explanation, flags=re.MULTILINE)
    widest = max(line.count("|") for line in text.split("\n"))
    first, *steps = re.split(r"^(?=#{5} )", text, flags=re.MULTILINE)
    parts = (f'<div class="step" markdown>\n\n{step.strip()}\n\n</div>' for step in steps)
    style = "steps narrow" if widest <= NARROW else "steps"
    return "\n\n".join([first.strip(), f'<div class="{style}" markdown>', *parts, "</div>"])


def fold(text: str) -> str:
    """``<details>`` as blocks of the site, so that the Markdown in them is rendered."""
    lines, inside, blocks = [], False, text.split("\n")
    for line in blocks:
        if line == "<details>" or line == "</details>":
            inside = line == "<details>"
        elif inside and line.startswith("<summary>"):
            lines.append(f'??? success "{line[9:-10]}"')
        else:
            lines.append(f"    {line}" if inside and line else line)
    return "\n".join(lines)


# ---- pages -----------------------------------------------------------------------------------------


class Site(NamedTuple):
    """One language: which files of the repository become which pages, and where the site is."""

    lang: str
    prefix: str  # of its address, "" or "zh/"
    pages: dict[str, str]  # path in the repository → path in the site, both .md

    def url(self, page: str) -> str:
        """Where a page of the repository is, from the root of all sites."""
        return self.prefix + self.pages[page].removesuffix(".md") + ".html"


def sites() -> dict[str, Site]:
    """What each site consists of."""
    english = Site("en", "", {})
    for path in [*DOCS.glob("*.md"), *(LESSONS / "en").glob("*.md")]:
        if not path.name.endswith(".zh-CN.md"):
            english.pages[f"docs/{path.relative_to(DOCS).as_posix()}"] = path.relative_to(DOCS).as_posix()
    english.pages.update(
        {
            "docs/README.md": "index.md",
            "docs/lessons/en/README.md": "lessons/en/index.md",
            "README.md": "readme.md",
            "CONTRIBUTING.md": "contributing.md",
            "CHANGELOG.md": "changelog.md",
        }
    )
    chinese = Site("zh", "zh/", {"README.zh-CN.md": "index.md", "docs/glossary.md": "glossary.md"})
    for path in (LESSONS / "zh").glob("*.md"):
        chinese.pages[f"docs/lessons/zh/{path.name}"] = f"lessons/zh/{path.name}"
    chinese.pages.update(
        {
            "docs/lessons/zh/README.md": "lessons/zh/index.md",
            "docs/play.zh-CN.md": "play.md",
            "docs/commands.zh-CN.md": "commands.md",
        }
    )
    return {"en": english, "zh": chinese}


def prose(text: str, change: Callable[[str], str]) -> str:
    """The text with everything changed but its blocks of code."""
    pieces = re.split(r"(^ *```.*?^ *```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(piece if place % 2 else change(piece) for place, piece in enumerate(pieces))


def relink(text: str, page: str, site: Site, all_sites: dict[str, Site]) -> str:
    """The links of a page, as they are in the site; those to other files become plain text."""
    here = PurePosixPath(page).parent

    def target(found: re.Match[str]) -> str:
        mark, label, address = found.groups()
        path, hash_, anchor = address.partition("#")
        if re.match(r"[a-z]+:", address) or not path:
            return found.group(0)
        there = relpath(f"/{here}/{path}", "/")
        if there == "docs/lessons/README.md":  # which only asks for the language
            there = f"docs/lessons/{site.lang}/README.md"
        own = PurePosixPath(site.pages[page]).parent
        if label == PurePosixPath(path).name and any(there in other.pages for other in all_sites.values()):
            label = title_of(ROOT / there).partition(":")[0]  # pages of a site have titles, not file names
        if there in site.pages:
            return f"{mark}[{label}]({relpath(f'/{site.pages[there]}', f'/{own}')}{hash_}{anchor})"
        for other in all_sites.values():
            if there in other.pages:
                away = relpath(f"/{other.url(there)}", f"/{site.prefix}{own}")
                return f"{mark}[{label}]({away}{hash_}{anchor})"
        if there.startswith("docs/pictures/"):
            return f"{mark}[{label}]({relpath(f'/{there[5:]}', f'/{own}')})"
        return label if not mark else found.group(0)

    return prose(
        text, lambda piece: re.sub(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)", target, piece)
    )


def link_playables(text: str, site: Site, page: str, written: set[str]) -> str:
    """``regard play NAME`` links to the page where there is one, not to the guide."""

    def link(found: re.Match[str]) -> str:
        command, name = found["command"], found["name"]
        file = f"play-{name}.html"
        if file not in written:
            return found.group(0)
        return f"[{command}]({relpath(f'/{file}', f'/{PurePosixPath(site.pages[page]).parent}')})"

    command = "(?P<command>`regard play (?P<name>[a-z-]+)`)"
    return prose(text, lambda piece: re.sub(rf"\[{command}\]\([^()\s]+\)", link, piece))


def link_notebooks(text: str) -> str:
    """The links of a page that was staged, for a notebook: lessons are notebooks too, all else is a page.

    >>> link_notebooks("[next](02-step-by-step.md) [other](../../zh/lessons/zh/01-one-query.html#a)")
    '[next](02-step-by-step.ipynb) [other](../../zh/lessons/zh/01-one-query.ipynb#a)'
    >>> link_notebooks("[course](index.md) [masks](../../play-masks.html) [paper](https://arxiv.org/a.html)")
    '[course](index.html) [masks](../../play-masks.html) [paper](https://arxiv.org/a.html)'
    """

    def target(found: re.Match[str]) -> str:
        path, anchor = found.groups()
        lesson = re.fullmatch(r"\d\d-.*", PurePosixPath(path).name)
        return f"]({path}.{'ipynb' if lesson else 'html'}{anchor})"

    return prose(text, lambda piece: re.sub(r"\]\(([^():\s]+)\.(?:md|html)((?:#[^()\s]*)?)\)", target, piece))


def stage(site: Site, folder: Path, outputs: Path, written: set[str], *, execute: bool = True) -> None:
    """Copy everything that MkDocs needs into the folder; notebooks go to the outputs."""
    shutil.copytree(DOCS / "pictures", folder / "pictures")
    shutil.copytree(ASSETS, folder / "site")

    def linked(page: str, text: str) -> str:
        return link_playables(relink(text, page, site, sites()), site, page, written)

    for page, place in site.pages.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        source = ROOT / page
        text = source.read_text(encoding="utf-8")
        if execute and source in lessons(site.lang):
            notebook = run(source)
            text = with_results(notebook, source.stem, path.parent)
            into = outputs / site.prefix / path.parent.relative_to(folder)
            into.mkdir(parents=True, exist_ok=True)
            write_notebook(notebook, into / f"{source.stem}.ipynb", partial(linked, page))
            print(into / f"{source.stem}.html", flush=True)
        text = linked(page, text)
        if execute and source in lessons(site.lang):
            text += f"\n\n[{WORDS[site.lang]['notebook']}]({source.stem}.ipynb)\n"
        path.write_text(fold(text), encoding="utf-8")


def write_playables(folder: Path, lang: str) -> set[str]:
    """The pages of ``regard play``, with links back to the course; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    courses = {f"play-{name}.html": course_of(name, lang) for name in PLAYABLES}
    return {path.name for path in playable_pages.write_playables(folder, lang=lang, courses=courses)}


def course_of(name: str, lang: str) -> CourseLinks:
    """The lessons that send their readers to a playable, as addresses from its page in a language."""
    every = sites()
    start = f"/{every[lang].prefix}"

    def address(page: str, other: str) -> str:
        return relpath(f"/{every[other].url(page)}", start)

    homes = {"en": "docs/README.md", "zh": "README.zh-CN.md"}
    found = {
        other: [
            (title_of(lesson), address(f"docs/lessons/{other}/{lesson.name}", other))
            for lesson in lessons(other)
            if f"`regard play {name}`" in lesson.read_text(encoding="utf-8")
        ]
        for other in LANGUAGES
    }
    return CourseLinks({other: address(homes[other], other) for other in LANGUAGES}, found)


# ---- navigation, search, style ---------------------------------------------------------------------


def navigation(site: Site, written: set[str]) -> list[Any]:
    """Course, playables, guides and reference, as in docs/README.md."""
    say, lang = WORDS[site.lang], site.lang
    course = [f"lessons/{lang}/index.md", *(f"lessons/{lang}/{lesson.name}" for lesson in lessons(lang))]
    play: list[Any] = ["play.md"] if lang == "zh" else []  # in English it is one of the guides
    play += [{say[name]: f"play-{name}.html"} for name in PLAYABLES if f"play-{name}.html" in written]
    entries: list[Any] = ["index.md", {say["course"]: [*course, "glossary.md"]}]
    entries += [{say["play"]: play}] if play else []
    if lang == "zh":
        return [*entries, {say["reference"]: ["commands.md"]}, {"English": "../index.html"}]
    for heading, body in re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)",
        (DOCS / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    ):
        found = dict.fromkeys(re.findall(r"^\| \[[^\]]+\]\(([a-z]+\.md)\)", body, re.MULTILINE))
        entries.append({heading: [name for name in found if name != "glossary.md"]})
    entries[-1]["Look up"] += [
        {say["names"]: "api/regard.html"},
        "readme.md",
        "contributing.md",
        "changelog.md",
    ]
    return [*entries, {"中文": "zh/index.html"}]


def configuration(site: Site, source: Path, folder: Path, nav: list[Any]) -> dict[str, Any]:
    """What MkDocs is told."""
    toggle = {"en": ("Dark", "Light"), "zh": ("深色", "浅色")}[site.lang]
    palette = [
        {
            "media": f"(prefers-color-scheme: {name})",
            "scheme": scheme,
            "primary": "indigo",
            "toggle": {"icon": icon, "name": said},
        }
        for name, scheme, icon, said in (
            ("light", "default", "material/weather-night", toggle[0]),
            ("dark", "slate", "material/weather-sunny", toggle[1]),
        )
    ]
    features = [
        "navigation.tabs",
        "navigation.footer",
        "navigation.indexes",
        "navigation.top",
        "toc.integrate",  # beside the text it would take a fifth of the width from code and pictures
        "content.code.copy",
    ]
    return {
        "site_name": "regard",
        "docs_dir": str(source),
        "site_dir": str(folder / site.prefix),
        "nav": nav,
        "theme": {
            "name": "material",
            "language": site.lang,
            "font": False,
            "features": [*features, "search.highlight"],
            "palette": palette,
            "icon": {"logo": "material/eye-outline"},
            "favicon": "site/eye.svg",
        },
        "extra": {
            "generator": False,
            "polyfills": ["site/iframe-worker.js"],
        },
        "extra_css": ["site/site.css"],
        "plugins": [{"search": {"lang": ["en"] if site.lang == "en" else ["en", "zh"]}}, "offline"],
        "markdown_extensions": [
            "attr_list",
            "md_in_html",
            "tables",
            {"toc": {"permalink": True, "toc_depth": 3}},
            "pymdownx.details",
            "pymdownx.superfences",
            "admonition",
            {"pymdownx.highlight": {"use_pygments": True}},
            {"pymdownx.arithmatex": {"generic": True}},
        ],
        "validation": {"links": {"not_found": "ignore", "unrecognized_links": "ignore"}},
    }


def build(site: Site, source: Path, folder: Path, written: set[str]) -> None:
    """Pages from what was staged."""
    from mkdocs.commands.build import build as make
    from mkdocs.config import load_config

    told = source.with_suffix(".yml")  # JSON is YAML, too
    told.write_text(
        json.dumps(configuration(site, source, folder, navigation(site, written))), encoding="utf-8"
    )
    config = load_config(str(told))
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")  # as on GitHub: it keeps all scripts
    config.plugins.run_event("startup", command="build", dirty=False)
    make(config)
    for page in (folder / site.prefix).rglob("*.html"):
        if not (page.name.startswith("play-") or "api" in page.relative_to(folder).parts):
            finish(page, site.lang)


def finish(page: Path, lang: str) -> None:
    """Equations as MathML, and the full name of the language."""
    text = page.read_text(encoding="utf-8")
    if lang == "zh":
        text = text.replace('<html lang="zh"', '<html lang="zh-CN"', 1)
    text = re.sub(
        r'<span class="arithmatex">\\\((.*?)\\\)</span>', lambda m: mathml(m.group(1)), text, flags=re.DOTALL
    )
    text = re.sub(
        r'<div class="arithmatex">\\\[(.*?)\\\]</div>',
        lambda m: f'<div class="equation">{mathml(m.group(1), display="block")}</div>',
        text,
        flags=re.DOTALL,
    )
    page.write_text(text, encoding="utf-8")


FUNCTIONS = "log|sin|cos|exp"
"""What latex2mathml writes as one word, without the space around it."""


def mathml(escaped: str, display: str = "inline") -> str:
    """LaTeX, escaped for HTML, as MathML."""
    from latex2mathml.converter import convert

    made = convert(html.unescape(escaped).strip(), display=display)
    # The character ′ is raised already; in a superscript it would be a dot.
    made = re.sub(
        r"<msup>(<mi>\w</mi>)<mi>(&#x02032;)</mi></msup>",
        r'<mrow>\1<mo lspace="0" rspace="0">\2</mo></mrow>',
        made,
    )
    # A name such as log stands apart from its neighbours, but not from a bracket.
    name, space = f"(<mi>(?:{FUNCTIONS})</mi>)", '<mspace width="0.17em" />'
    made = re.sub(rf"{name}(?!</|<mo stretchy|<mspace)", rf"\1{space}", made)
    return re.sub(rf"(</(?:mi|mn|msub|msup)>){name}", rf"\1{space}\2", made)


# ---- reference -------------------------------------------------------------------------------------


def write_reference(folder: Path) -> None:
    """The docstrings of every public room."""
    import pdoc

    pdoc.render.configure(
        docformat="google", search=True, show_source=False, template_directory=DOCS / "reference_style"
    )
    # pdoc would go into every file of a package; a name is public where a room shows it, not where it lives.
    specs = (spec for room in ROOMS for spec in (room, rf"!{re.escape(room)}\."))
    with loaded(regard):
        pdoc.pdoc(*specs, output_directory=folder)
    for page in folder.rglob("*.html"):
        page.write_text(without_dead_anchors(page.read_text(encoding="utf-8")), encoding="utf-8")


def without_dead_anchors(page: str) -> str:
    """The page with plain text in place of links to names that are not on it.

    pdoc links a name in a docstring to the member of its class, also where it hides that member because
    the class inherits it from outside of the reference.
    """
    there = set(re.findall(r'\bid="([^"]+)"', page))
    return re.sub(
        r'<a href="#([^"]+)">(.*?)</a>',
        lambda m: m.group(0 if m.group(1) in there else 2),
        page,
        flags=re.DOTALL,
    )


@contextmanager
def loaded(package: ModuleType) -> Iterator[None]:
    """The package with all its public names in place: pdoc does not ask for those that load on first use."""
    missing = [name for name in package.__all__ if name not in vars(package)]
    for name in missing:
        setattr(package, name, getattr(package, name))
    try:
        yield
    finally:
        for name in missing:
            # Python itself hangs rooms on the package as soon as they are imported; those stay.
            if f"{package.__name__}.{name}" not in sys.modules:
                delattr(package, name)


def main(folder: Path, *, execute: bool = True) -> None:
    """Everything into the folder."""
    if folder.exists():
        shutil.rmtree(folder)
    every = sites()
    with tempfile.TemporaryDirectory() as temporary:
        outputs = Path(temporary) / "outputs"  # MkDocs empties the folder before it writes
        for lang, site in every.items():
            written = write_playables(outputs / site.prefix, lang)
            source = Path(temporary) / lang
            source.mkdir()
            stage(site, source, outputs, written, execute=execute)
            build(site, source, folder, written)
        shutil.copytree(outputs, folder, dirs_exist_ok=True)
    write_reference(folder / "api")
    print(folder / "index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs")
