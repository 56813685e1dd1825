import re
from pathlib import Path

import regard
from regard.lessons import demonstrations
from regard.lessons.facts import TEXTS, Fact, words
from regard.texts import LANGUAGES

SOURCE = Path(regard.__file__).parent


def test_lists_of_words_have_the_same_number_in_every_language():
    for key in ("geometry.keys", "filter.keys", "library.books", "library.sentence"):
        assert len({len(words(key, lang)) for lang in LANGUAGES}) == 1


def test_chinese_is_chinese_and_english_is_not():
    han = re.compile("[\u3400-\u9fff]")
    named = {"hand", "demo.hand"}  # the sentence 我 喜欢 AI itself
    for key, sentence in TEXTS.table("en").items():
        assert not han.search(sentence) or key.startswith(tuple(named)), key
    bare = {key for key, sentence in TEXTS.table("zh").items() if not han.search(sentence)}
    assert bare == {"order.recurrent", "words.strongest", "multihead.shape", "hand.weights"}


def test_every_text_is_used():
    code = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    patterns = (
        "demo.",
        "masks.",
        "heads.",
        "hand.",
        "bench.",
        "cost.",
        "averaging.",
        "explain.",
    )  # put together from a name
    unused = [key for key in TEXTS.table("en") if f'"{key}"' not in code and not key.startswith(patterns)]
    assert unused == []


def test_names_of_demonstrations_are_complete():
    for one in demonstrations():
        for lang in LANGUAGES:
            assert one.title(lang)
            assert one.claim(lang).endswith("." if lang == "en" else "。")


def test_a_fact_says_its_numbers():
    fact = Fact("hand.dots", {"numbers": "1, 2"})
    assert fact.say("en").endswith("q · k = 1, 2.")
    assert fact.say("zh").endswith("q · k = 1, 2。")
