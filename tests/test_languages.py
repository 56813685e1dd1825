"""Every text that people read exists in every language: the tables of all subjects, and every error."""

import copy
import json
import pickle
import re
from string import Formatter

import numpy as np
import pytest
import torch

import regard
from regard import masks
from regard.app.languages.__main__ import SOURCE, differences, error_texts, help_texts, templates
from regard.app.main import main
from regard.errors import ArgumentError, Phrase, RegardError, ShapeError
from regard.heads.role_results import ROLES
from regard.languages import check_language
from regard.texts import FOLDER as TEXTS
from regard.texts import LANGUAGES, read_table
from regard.views.column_headings import heading, named
from regard.views.page_texts import with_texts

FROM_ENGLISH = {"errors", "help", "click"}
"""Subjects whose keys are the English texts of the code."""

CODE = re.compile(r"--[a-z-]+|\.[a-z]{3,}\b")
HAN = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")


def shape(text):
    """What a text has in common with its translation: places in any order, lines. Help has JSON."""
    form = Formatter().parse("" if '{"' in text and '{{"' not in text else text)
    return text.count("\n"), bool(text.strip()), sorted(str(at[1:]) for at in form if at[1] is not None)


def problems(first, other):
    """The keys under which two tables differ in more than their words."""
    return {key for key in {**first, **other} if shape(first.get(key, "")) != shape(other.get(key, ""))}


@pytest.mark.parametrize("subject", sorted({file.stem for file in TEXTS.rglob("*.json")}))
def test_every_text_exists_in_every_language(subject):
    chinese = read_table(subject, "zh")
    english = {key: key for key in chinese} if subject in FROM_ENGLISH else read_table(subject, "en")
    assert problems(english, chinese) == set()
    for key, said in chinese.items():
        assert HAN.search(said) or (said == english[key] and len(said.split()) < 4), key
        if subject in FROM_ENGLISH:
            assert key.endswith(".") == said.endswith("。"), key
            assert set(CODE.findall(key)) == set(CODE.findall(said)) - {"--lang"}, key
    for file in TEXTS.glob(f"*/{subject}.json"):  # no key is written twice
        assert file.read_text(encoding="utf-8").count('": "') == len(read_table(subject, file.parent.name))


def test_the_comparison_would_notice():
    for other in ({}, {"a": "一"}, {"a": "一 {m}"}, {"a": "一 {n}\n"}, {"a": ""}, {"a": "一 {n}", "b": "二"}):
        assert problems({"a": "one {n}"}, other)
    assert not problems({"a": "one {n}"}, {"a": "一 {n}"})


def test_errors_and_help_have_chinese_and_no_more_of_it():
    texts = help_texts(main)
    assert differences({"errors": error_texts(), "help": texts}) == []
    noticed = ['help.json:  "New.": "",', "help.json, not used:  Print CSV."]
    assert differences({"help": {*texts, "New."} - {"Print CSV."}}) == noticed


def test_templates_of_errors_are_literals():
    """An error that is put together from pieces cannot be looked up."""
    passing_on = {SOURCE / "errors.py", SOURCE / "app" / "main.py"}
    for file in {*SOURCE.rglob("*.py")} - passing_on:
        computed = [line for line, text in templates(file.read_text(encoding="utf-8")) if text is None]
        assert not computed, file
    code = 'ShapeError(f"{n}", got="a" if n else "b" + c, do=do)\nRequestError(404, "{n}")\nKeyError(f"{n}")'
    assert list(templates(code)) == [(1, None), (1, "a"), (1, None), (2, "{n}")]


q = torch.zeros(2, 3, 5)
ERRORS = [
    (lambda: regard.attention(q, q[:1], q), "键和值的头数须与查询相同"),
    (lambda: masks.window(-3, 0), "before 须是不小于 0 的整数。实际为：before = -3。"),
    (lambda: masks.parse("widow(1)"), "没有名为 'widow' 的掩码。您是想写 window 吗？\n  widow(1)\n  ^"),
    (lambda: masks.parse("causal.x"), "点号之后应为 T。实际为：'x'。\n  causal.x\n         ^"),
    (lambda: masks.parse("(causal"), "此处应有 ')'，用来结束括号。实际为：文字的结尾。\n"),
    (lambda: regard.nn.MultiHeadAttention(10, 3), "宽度"),
    (lambda: regard.watch(3), "模型"),
    (lambda: regard.load("/nowhere"), "load(path) 须指向一个文件。实际为：/nowhere。"),
    (lambda: regard.heads.table(3), "头的统计须从记录中读取。"),
    (lambda: regard.translate("  "), "文本至少要有一个词。"),
    (lambda: regard.figures.heatmap(np.ones(3)), "权重"),
    (lambda: regard.explain("x", heads=3), "整除"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "said"), ERRORS, ids=lambda one: None if callable(one) else one[:8])
def test_errors_of_every_room_in_chinese(wrong, said):
    with pytest.raises(RegardError) as caught:
        wrong()
    for error in (caught.value, copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert said in error.in_words("zh")
        assert type(error) is type(caught.value)
        assert vars(error).keys() == vars(caught.value).keys()
        assert str(error) == error.in_words("en") == str(caught.value)
        assert "Got" not in error.in_words("zh")


def test_an_error_keeps_its_values_and_may_be_one():
    inner = ArgumentError("The text must have at least one word.", got="{text!r}", text="{}")
    outer = ShapeError("{error}", do="Read {file}.", error=inner, file=Phrase("nothing"))
    assert str(outer) == "The text must have at least one word. Got '{}'. Read nothing."
    assert outer.in_words("zh") == "文本至少要有一个词。实际为：'{}'。Read 空."
    assert pickle.loads(pickle.dumps(outer)).values.keys() == outer.values.keys() == {"error", "file"}
    with pytest.raises(ArgumentError) as caught:
        raise inner
    assert caught.value.__traceback__ is not None  # the frames of a caught error are not kept
    assert ShapeError("{error}", error=caught.value).values["error"].__traceback__ is None


def test_an_unknown_language():
    for ask in (check_language, RegardError("A text has words.").in_words):
        with pytest.raises(ArgumentError, match=r"lang must be one of en, zh. Got lang = 'fr'. Choose one"):
            ask("fr")


def test_roles_attend_in_chinese_too():
    """The word of the field is 关注; 看 is what eyes do, and what a mask allows."""
    roles = {**read_table("heads", "zh"), **read_table("page", "zh")}
    looking = [key for key, text in roles.items() if key.startswith("role") and "看" in text]
    assert looking == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_statistic_has_one_name(lang):
    """Page, map, report and tables all take it from one table."""
    names = {key: text for key, text in read_table("statistics", lang).items() if "." not in key}
    page = json.loads(with_texts("TEXTS = { en: {}, zh: {} };", "page", "map")[len("TEXTS = ") : -1])[lang]
    for name, text in names.items():
        assert heading(name, lang) == text == page[f"statistic.{name}"].lower()
    assert all(named("best", role, lang) == names[role] for role in ROLES)
    for name in ("received", "entropy"):
        assert page[f"map.{name}"] == names[name]
        assert page[f"map.{name}.n"] == f"{names[name]} {{value}}"
