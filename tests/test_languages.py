"""Every text that people read exists in every language: one test over the tables of all rooms."""

import json
import re
from pathlib import Path
from string import Formatter

import pytest

import regard
from regard.errors import ArgumentError
from regard.languages import LANGUAGES, Texts, check_language

SOURCE = regard.__path__[0]
HAN = re.compile("[\u3400-\u9fff]")


def folders():
    return sorted(folder for folder in Path(SOURCE).rglob("texts") if folder.is_dir())


def places(sentence):
    """What stands in the places of a text; the order may differ between languages."""
    return sorted((name, spec) for _, name, spec, _ in Formatter().parse(sentence) if name is not None)


def compare(first, other):
    assert list(first) == list(other)
    for key in first:
        assert places(first[key]) == places(other[key]), key
        assert first[key].strip(), key
        assert other[key].strip(), key
        assert first[key].count("\n") == other[key].count("\n"), key


def test_the_rooms_that_speak():
    found = {str(folder.relative_to(SOURCE).parent) for folder in folders()}
    assert found >= {"heads", "lessons", "views/figures"}


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.parent.name)
def test_every_text_exists_in_every_language(folder):
    assert {file.name for file in folder.iterdir()} == {f"{lang}.json" for lang in LANGUAGES}
    first, *others = (Texts(folder).table(lang) for lang in LANGUAGES)
    for other in others:
        compare(first, other)


def test_the_comparison_would_notice():
    for other in ({}, {"a": "一"}, {"a": "一 {m}"}, {"a": "一 {n}\n"}, {"a": ""}, {"a": "一 {n}", "b": "二"}):
        with pytest.raises(AssertionError):
            compare({"a": "one {n}"}, other)


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.parent.name)
def test_no_key_is_written_twice(folder):
    for file in folder.iterdir():
        keys = json.loads(
            file.read_text(encoding="utf-8"), object_pairs_hook=lambda pairs: [k for k, _ in pairs]
        )
        assert len(keys) == len(set(keys))


def test_an_unknown_language():
    with pytest.raises(ArgumentError, match=r"lang is one of en, zh. Got lang = 'fr'. Choose one"):
        check_language("fr")
