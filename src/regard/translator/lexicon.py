"""Which Chinese word to teach for an English one: dictionary, frequency and sentence pairs decide together.

A dictionary lists every Chinese word that can mean *mat*, most of them rare. The better translation is the
one that is common, that has this as a main meaning, and that occurs in the translations of *mat*.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from regard.errors import DataError
from regard.translator.dictionary import DictionaryEntry, Gloss
from regard.translator.names import StandIn
from regard.translator.sentence_pairs import Pair

WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
NOT_NOUNS = "vdpcmur"
"""First letters of the parts of speech that a Chinese noun cannot have, in jieba's list."""

LEAST = 5
"""A Chinese word that is rarer, in jieba's list and in the sentence pairs, is not taught."""

RARE = 2.5
"""An English word of this frequency or below is not taught; on Zipf's scale, 3 is one in a million words."""

COMMON = 0.5
"""The weight from which a word is drawn often enough to be learned."""

PHRASE = 0.15
"""How much of the weight of its rarest word a phrase has."""

OFTEN, NEARLY_ALWAYS = 300, 0.8
"""How often a name must occur, and which share of its translations must agree, to stand in for others."""

LONGEST = 4
"""The most characters of a Chinese word that is not a name."""


@dataclass(frozen=True)
class WordPair:
    """An English word or phrase, its translation, and its kind: words of one kind can replace each other."""

    english: str
    chinese: str
    kind: str
    measures: tuple[str, ...] = ()
    weight: float = 1.0  # how common the English word is: powers of ten above RARE
    seen: int = 0  # how many sentence pairs have it


def untaught_weight(word: WordPair) -> float:
    """How often to draw a word: common ones more often, those that sentences teach already less often."""
    return word.weight / (1 + word.seen / 20)


@dataclass(frozen=True)
class Lexicon:
    """All word pairs of a dictionary: the best ones to teach, and every one to recognize."""

    best: tuple[WordPair, ...]
    by_english: dict[str, tuple[WordPair, ...]]

    @property
    def taught(self) -> tuple[WordPair, ...]:
        """The best translations of words and phrases that are common enough to be drawn."""
        return tuple(word for word in self.best if word.weight > 0)


def learn_lexicon(entries: Sequence[DictionaryEntry], pairs: Sequence[Pair]) -> Lexicon:
    """Choose translations by commonness, rank of the sense and the sentence pairs."""
    commonness = _commonness()
    together = _JointCounts(pairs)
    meanings: dict[str, list[tuple[DictionaryEntry, Gloss, str]]] = {}
    for entry in entries:
        for gloss in entry.glosses:
            kind = _kind(entry, gloss)
            if kind is not None:
                meanings.setdefault(gloss.english.lower(), []).append((entry, gloss, kind))
    ordered: dict[str, tuple[WordPair, ...]] = {}
    for english, found in sorted(meanings.items()):
        counts = together.counts(english, [entry.chinese for entry, _, _ in found])
        weight = _weight(english)
        ranked = []
        for entry, gloss, kind in found:
            frequency = commonness.get(entry.chinese, (0, ""))[0]
            seen = counts[entry.chinese]
            if frequency >= LEAST or seen or gloss.person:
                pair = WordPair(
                    gloss.english, entry.chinese, kind, entry.measures, weight, together.english(english)
                )
                ranked.append((_rank(entry, gloss, seen), pair))
        if ranked:
            ranked.sort(key=lambda one: (-one[0], one[1].chinese))
            ordered[english] = tuple(pair for _, pair in ranked)
    return Lexicon(tuple(found[0] for found in ordered.values()), ordered)


def taught_words(pairs: Sequence[Pair], lexicon: Lexicon | None) -> frozenset[str]:
    """All English words that a model is taught, in lower case, with their inflected forms."""
    found = {word for pair in pairs for word in words_in(pair.english)}
    for word in lexicon.taught if lexicon is not None else ():
        if word.kind in ("person", "place"):
            found.add(word.english.lower())
        elif word.weight >= COMMON and " " not in word.english:
            found |= {word.english, *_inflected(word.english)}
    return frozenset(found)


def taught_forms(lexicon: Lexicon) -> dict[str, float]:
    """Every form of every taught word, and how common it is: powers of ten above ``RARE``."""
    words = [word.english.lower() for word in lexicon.taught if " " not in word.english]
    forms = {form for word in words for form in (word, *_inflected(word))}
    return {form: weight for form in sorted(forms) if (weight := _weight(form)) > 0}


def common_words(words: Iterable[str]) -> dict[str, float]:
    """Those of these words that are common, and how common they are: powers of ten above ``RARE``."""
    spelled = [word for word in words if len(word) > 2 and word.isascii() and word.isalpha()]
    return {word: weight for word in spelled if (weight := _weight(word)) > 0}


def learned_names(pairs: Sequence[Pair], lexicon: Lexicon) -> tuple[StandIn, ...]:
    """Names that the pairs translate in one way nearly always, the most frequent first: they can stand in."""
    people = [word for word in lexicon.best if word.kind == "person" and word.seen >= OFTEN]
    found = []
    for word in sorted(people, key=lambda word: -word.seen):
        having = [pair.chinese for pair in pairs if word.english.lower() in words_in(pair.english)]
        if sum(word.chinese in chinese for chinese in having) >= NEARLY_ALWAYS * len(having):
            found.append(StandIn(word.english, word.chinese))
    return tuple(found)


def _inflected(word: str) -> set[str]:
    return {form for forms in _forms()[0].get(word, {}).values() for form in forms if form}


def _weight(english: str) -> float:
    """How common a word is; a phrase is rarer than the rarest of its words."""
    words = english.split()
    least = min(zipf(word, "en") for word in words)
    return round(max(0.0, least - RARE) * (PHRASE if len(words) > 1 else 1.0), 3)


def zipf(word: str, language: str) -> float:
    """The frequency of a word in subtitles, news, books and the web: log₁₀ of its count per billion."""
    _need("wordfreq")
    from wordfreq import zipf_frequency

    if language == "zh":
        silent_jieba()  # which wordfreq cuts Chinese with

    return float(zipf_frequency(word, language))


@cache
def silent_jieba() -> Any:
    """The module that cuts Chinese into words, without its reports on what it loads."""
    _need("jieba")
    import jieba

    jieba.setLogLevel(60)
    return jieba


def _rank(entry: DictionaryEntry, gloss: Gloss, seen: float) -> float:
    """How good a translation is: common, a main meaning of the Chinese word, and seen in sentence pairs."""
    single = len(entry.chinese) == 1  # of many meanings; modern Chinese mostly has a longer word
    spread = 1.5 * gloss.sense + 0.3 * entry.glosses.index(gloss) + math.log(len(entry.glosses))
    frequency = math.log(10) * zipf(entry.chinese, "zh")
    return frequency - spread - 1.5 * single + 2.0 * math.log(1 + seen)


def _kind(entry: DictionaryEntry, gloss: Gloss) -> str | None:
    """The kind of a word; None if it is not to be taught."""
    if gloss.english[0].isupper():
        if gloss.person:
            return "person" if 2 <= len(entry.chinese) <= 6 else None
        frequency, tag = _commonness().get(entry.chinese, (0, ""))
        return "place" if tag.startswith("n") and frequency >= 20 and " " not in gloss.english else None
    if len(entry.chinese) > LONGEST:
        return None
    if gloss.verb:
        return "verb"
    if " " in gloss.english:
        return "phrase"
    parts = parts_of_speech().get(gloss.english, frozenset())
    if entry.measures or ("noun" in parts and "adj" not in parts):
        tag = _commonness().get(entry.chinese, (0, ""))[1]
        if len(entry.chinese) > 1 and tag[:1] in NOT_NOUNS and not entry.measures:
            return "other"
        return "noun"
    if "adj" in parts:
        tag = _commonness().get(entry.chinese, (0, ""))[1]
        if "noun" in parts and not tag.startswith("a"):
            return "noun" if tag.startswith("n") else "other"
        return "adj"
    return "other" if parts else None


class _JointCounts:
    """How often an English word and a Chinese one occur in the same pair."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.places: dict[str, set[int]] = {}
        self.chinese = [pair.chinese for pair in pairs]
        self.having: dict[str, set[int]] = {}  # character → pairs
        for number, chinese in enumerate(self.chinese):
            for character in chinese:
                self.having.setdefault(character, set()).add(number)
        for number, pair in enumerate(pairs):
            for word in words_in(pair.english):
                for form in {word, *lemmas().get(word, ())}:
                    self.places.setdefault(form, set()).add(number)

    def english(self, phrase: str) -> int:
        return len(self._places(phrase))

    def counts(self, phrase: str, candidates: Sequence[str]) -> dict[str, float]:
        """How many pairs with the phrase have each candidate, beyond what chance would give.

        老鼠 contains 鼠: a pair counts only for the longest candidates that it has.
        """
        found = dict.fromkeys(candidates, 0.0)
        places = self._places(phrase)
        for number in places:
            text = self.chinese[number]
            present = [word for word in found if word in text]
            for word in present:
                if not any(word != other and word in other for other in present):
                    found[word] += 1.0
        share = len(places) / max(1, len(self.chinese))
        for word, count in found.items():
            if count:
                # What is everywhere, like 了, is in these pairs too, and translates nothing in them.
                chance = min(1.0, share * self._chinese(word) / count)
                found[word] = count * (1.0 - chance) ** 2
        return found

    def _chinese(self, word: str) -> int:
        numbers = set.intersection(*(self.having.get(character, set()) for character in word))
        return sum(word in self.chinese[number] for number in numbers) if len(word) > 1 else len(numbers)

    def _places(self, phrase: str) -> set[int]:
        first, *rest = phrase.lower().split()
        found = self.places.get(first, set())
        for word in rest:
            found = found & self.places.get(word, set())
        return found


def words_in(english: str) -> list[str]:
    """The words of an English text in lower case.

    >>> words_in("Tom's cat didn't sit.")
    ['tom', 'cat', "didn't", 'sit']
    """
    found = [word.lower().replace("’", "'") for word in WORD.findall(english)]
    return [word.removesuffix("'s") for word in found]


@cache
def _commonness() -> dict[str, tuple[int, str]]:
    """How often a Chinese word occurs in the texts that jieba counted, and its part of speech."""
    lines = _need("jieba").joinpath("dict.txt").read_text(encoding="utf-8").splitlines()
    return {word: (int(count), tag) for word, count, tag in map(str.split, lines)}


@cache
def _forms() -> tuple[dict[str, dict[str, list[str]]], dict[str, tuple[str, ...]], dict[str, frozenset[str]]]:
    folder = _need("lemminflect").joinpath("resources")
    inflected: dict[str, dict[str, list[str]]] = {}
    for lemma, part, *forms in _rows(folder.joinpath("infl_lu.csv.gz").read_bytes()):
        inflected.setdefault(lemma, {})[part] = [form.split("/")[0] for form in forms]
    back: dict[str, tuple[str, ...]] = {}
    parts: dict[str, set[str]] = {}
    for form, part, lemma in _rows(folder.joinpath("lemma_lu.csv.gz").read_bytes()):
        if part in ("noun", "verb", "adj"):
            back[form] = (*back.get(form, ()), lemma.split("/")[0])
        if lemma.split("/")[0] == form:
            parts.setdefault(form, set()).add(part)
    return inflected, back, {word: frozenset(found) for word, found in parts.items()}


def lemmas() -> dict[str, tuple[str, ...]]:
    """The dictionary forms of an inflected English word."""
    return _forms()[1]


def parts_of_speech() -> dict[str, frozenset[str]]:
    """What an English word can be: noun, verb, adj, adv."""
    return _forms()[2]


def plural(noun: str) -> str:
    """The plural of an English noun.

    >>> plural("mouse"), plural("cat")
    ('mice', 'cats')
    """
    forms = _forms()[0].get(noun, {}).get("noun", [""])
    return forms[0] or f"{noun}s"


def verb_forms(verb: str) -> tuple[str, ...]:
    """The forms of an English verb: itself, past, past participle, present participle, third person.

    >>> verb_forms("chew"), verb_forms("take off")[1]
    (('chew', 'chewed', 'chewed', 'chewing', 'chews'), 'took off')
    """
    first, *rest = verb.split(" ", 1)
    forms = _forms()[0].get(first, {}).get("verb", [])
    past, participle, present, third = forms if len(forms) == 4 else [""] * 4
    found = (first, past or first, participle or past or first, present or first, third or first)
    return tuple(" ".join([form, *rest]) for form in found)


def _rows(contents: bytes) -> Iterable[list[str]]:
    return csv.reader(gzip.decompress(contents).decode("utf-8").splitlines())


def _need(package: str):  # type: ignore[no-untyped-def]
    try:
        return files(package)
    except ImportError as error:
        raise DataError(
            "Teaching words by a dictionary needs the package {package}.",
            got="no such package",
            do='Install it with pip install "regard[train]".',
            package=package,
        ) from error
