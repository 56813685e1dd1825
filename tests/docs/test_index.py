"""The pages that lead to other pages: what they name exists, and nothing is left out."""

import re

import pytest

from docs.scripts import DOCS

ROOT = DOCS.parent
SOURCE = ROOT / "src" / "regard"
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
UPGRADING = (DOCS / "upgrading.md").read_text(encoding="utf-8")
MOVED = re.findall(r"^\| `([a-z_.0-9]+)` \| `([a-z_.0-9]+)` \|$", UPGRADING, re.MULTILINE)


def exists(module):
    path = SOURCE.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md") if path.name != "README.md"))
def test_every_page_is_in_the_index(page):
    assert f"]({page})" in INDEX


@pytest.mark.parametrize("folder", [DOCS, ROOT], ids=["docs", "root"])
def test_links_of_every_page_lead_somewhere(folder):
    for page in folder.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", text):
            assert (folder / path).exists(), (page.name, path)


def test_the_diagrams_name_files_that_exist():
    named = set(re.findall(r"\b(?:kernels|interception|recording)/\w+\.py", CONTRIBUTING))
    assert len(named) > 15
    for path in named:
        assert (SOURCE / path).exists(), path


def test_the_table_of_the_source_lists_every_part_of_it():
    listed = re.findall(r"^\| `([a-z_]+)(?:/|\.py)` \|", CONTRIBUTING, re.MULTILINE)
    there = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert set(listed) == {name for name in there if not name.startswith("_")} - {"py"}


def test_what_moved_is_where_upgrading_says():
    assert len(MOVED) > 100
    for old, new in MOVED:
        assert exists(new), new
        assert not exists(old) or old in dict(MOVED).values(), old
