"""Build the documentation: lessons run as notebooks and pages, and the reference of every public name.

python docs/make_site.py [folder]

| folder               | what is in it                                                      |
|----------------------|--------------------------------------------------------------------|
| `lessons/en`, `zh`   | each lesson as a notebook with its results, and as a page          |
| `api`                | the docstrings of every public room, by pdoc                       |
| `index.html`         | where to begin                                                     |

Nothing is fetched: pages hold their pictures and styles in themselves.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import jupytext
import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

import regard

DOCS = Path(__file__).parent
LESSONS = DOCS / "lessons"
LANGUAGES = ("en", "zh")

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


ELSEWHERE = ("require_js_url", "mathjax_url", "jquery_url", "mermaid_js_url")
"""Scripts that nbconvert would take from the network; the lessons need none of them."""

STYLE = "body { font: 16px/1.6 sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }"


def lessons(lang: str) -> list[Path]:
    """The lessons of a language, in order."""
    return sorted((LESSONS / lang).glob("*.py"))


def run(lesson: Path, *, seconds: int = 300) -> nbformat.NotebookNode:
    """The lesson as a notebook with its results."""
    notebook = jupytext.read(lesson)
    NotebookClient(notebook, timeout=seconds, kernel_name="python3").execute()
    return notebook


def write_lesson(lesson: Path, folder: Path) -> Path:
    """Run the lesson and write it as .ipynb and .html into the folder; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    notebook = run(lesson)
    nbformat.write(notebook, folder / f"{lesson.stem}.ipynb")
    exporter = HTMLExporter(
        embed_images=True, require_js_url="", mathjax_url="", jquery_url="", mermaid_js_url=""
    )
    text, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": title_of(lesson)}})
    page = folder / f"{lesson.stem}.html"
    page.write_text(text, encoding="utf-8")
    return page


def title_of(lesson: Path) -> str:
    """The first heading."""
    return next(cell.source for cell in jupytext.read(lesson).cells).splitlines()[0].removeprefix("# ")


def write_reference(folder: Path) -> None:
    """The docstrings of every public room."""
    import pdoc

    pdoc.render.configure(docformat="google", search=False, show_source=False)
    # pdoc would go into every file of a package; a name is public where a room shows it, not where it lives.
    specs = (spec for room in ROOMS for spec in (room, rf"!{re.escape(room)}\."))
    with loaded(regard):
        pdoc.pdoc(*specs, output_directory=folder)


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


def write_index(folder: Path) -> None:
    """Links to everything else."""
    page = "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>regard</title>',
            f"<style>{STYLE}</style>",
            "<h1>regard</h1>",
            *_listed("Lessons", "en"),
            *_listed("课程", "zh"),
            '<h2>Reference</h2><p><a href="api/index.html">every public name</a></p></html>',
        ]
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def _listed(heading: str, lang: str) -> Iterator[str]:
    yield f'<h2>{heading}</h2><ul lang="{lang}">'
    for lesson in lessons(lang):
        yield f'<li><a href="lessons/{lang}/{lesson.stem}.html">{html.escape(title_of(lesson))}</a></li>'
    yield "</ul>"


def main(folder: Path) -> None:
    """Everything into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_reference(folder / "api")
    print(folder / "api")
    for lang in LANGUAGES:
        for lesson in lessons(lang):
            print(write_lesson(lesson, folder / "lessons" / lang), flush=True)
    write_index(folder)
    print(folder / "index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "build" / "docs")
