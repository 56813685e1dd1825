"""New sentence pairs from old ones: one noun, adjective, verb or name replaced on both sides.

*I bought a table.* 我买了一张桌子。 has *table* once and 桌子 once, and the dictionary says that they
translate each other. So *bed* 床, which takes the measure word 张 too, gives *I bought a bed.* 我买了一张床。
Words that are rare in the sentence pairs are drawn more often.
"""

from __future__ import annotations

import random
import re
from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from regard.translator.lexicon import (
    COMMON,
    Lexicon,
    WordPair,
    lemmas,
    plural,
    silent_jieba,
    untaught_weight,
    verb_forms,
)
from regard.translator.names import PLACEHOLDERS
from regard.translator.sentence_pairs import Pair, sentence_key
from regard.translator.word_similarity import installed_similarity

WORD = re.compile(r"[A-Za-z]+(?:n't)?")
ARTICLE = re.compile(r"\b([Aa])n?( )$")
NAMES = ("person", "place")
SWAPPED = ("noun", "adj", "verb", *NAMES)
MEASURES = frozenset("只条张把本件位名辆座家间块片台根支颗粒朵棵双头匹杯瓶碗封幅首架艘栋道顶份篇场部")
BEFORE_NOUNS = frozenset((
    "a", "an", "the", "my", "your", "his", "her", "our", "their", "its", "this", "that", "these",
    "those", "some", "any", "no", "of", "another", "every", "each", "two", "three", "four", "five",
    "six", "seven", "eight", "nine", "ten", "many", "few", "several", "more", "enough", "s",
))  # fmt: skip
BEFORE_ADJECTIVES = frozenset((
    "is", "are", "was", "were", "be", "been", "am", "s", "re", "m", "isn't", "not", "very", "too",
    "so", "really", "quite", "pretty", "rather", "more", "looks", "look", "looked", "feel", "feels",
    "felt", "seems", "seem", "sounds", "sound", "smells", "smell", "tastes", "taste", "became", "become",
    "how", "that", "got", "get", "gets",
))  # fmt: skip
AUXILIARIES = frozenset((
    "be", "is", "are", "was", "were", "been", "being", "am", "do", "does", "did", "done", "have",
    "has", "had", "having", "will", "can", "may", "must",
))  # fmt: skip
AFTER_OTHER_VERBS = frozenset((
    "to", "up", "out", "off", "on", "down", "in", "away", "back", "over", "about", "that", "if",
    "me", "us", "him", "them", "you", "it", "for", "like",
))  # fmt: skip
"""After verbs that belong together with the next word, or take it in a way that another verb would not."""

CHANCES = {"noun": 1.0, "adj": 0.7, "verb": 0.15, "person": 0.3, "place": 0.5}
"""How likely a drawn word of each kind is replaced; few verbs fit where another one was."""

ANY_WORD = 0.1
"""The share of words that are replaced by any word of their kind: some words are similar to none."""

UNKNOWN_NAMES = 0.4
"""The share of names that are replaced by a placeholder rather than by another name."""


@dataclass(frozen=True)
class Slot:
    """A word of a pair that can be replaced on both sides."""

    english: tuple[int, int]
    chinese: tuple[int, int]
    kind: str
    form: int = 0  # of the English word: 1 is a plural; of a verb, see verb_forms
    measure: str = ""  # the measure word before it, if it is a particular one
    word: str = ""  # the dictionary form of the English word

    def moved(self, by: Slot, english: str, chinese: str) -> Slot:
        """Where this word is after another one was replaced."""
        return replace(
            self,
            english=_moved(self.english, by.english, english),
            chinese=_moved(self.chinese, by.chinese, chinese),
        )


def _moved(span: tuple[int, int], changed: tuple[int, int], put: str) -> tuple[int, int]:
    shift = len(put) - (changed[1] - changed[0]) if span[0] >= changed[1] else 0
    return span[0] + shift, span[1] + shift


class Recombination:
    """Draws new pairs from old ones with the words of a lexicon.

    With ``similar``, a word is replaced by one of that many words most similar to it.
    """

    def __init__(
        self, pairs: Sequence[Pair], lexicon: Lexicon, *, excluded: Iterable[str] = (), similar: int = 0
    ) -> None:
        self.lexicon, self.similar = lexicon, similar
        self.neighbours: dict[tuple[str, str, str], _WordSampler] = {}
        self.excluded = {sentence_key(english) for english in excluded}
        found = [(pair, tuple(slots(pair, lexicon))) for pair in pairs]
        self.sources = [(pair, places) for pair, places in found if places]
        self.words = {
            kind: _WordSampler([word for word in lexicon.best if word.kind == kind]) for kind in SWAPPED
        }
        self.measured = {
            measure: _WordSampler(
                [word for word in lexicon.best if word.kind == "noun" and measure in word.measures]
            )
            for measure in MEASURES
        }

    def draw(self, count: int, chance: random.Random) -> list[Pair]:
        """At most ``count`` new pairs, without those that are excluded or have no fitting word."""
        found = []
        for _ in range(count if self.sources else 0):
            pair, places = self.sources[chance.randrange(len(self.sources))]
            changed = self._replaced(pair, places, chance)
            if changed is not None and sentence_key(changed.english) not in self.excluded:
                found.append(changed)
        return found

    def _replaced(self, pair: Pair, places: Sequence[Slot], chance: random.Random) -> Pair | None:
        slot = chance.choices(places, [CHANCES[place.kind] for place in places])[0]
        if chance.random() >= CHANCES[slot.kind]:
            return None
        if slot.kind in NAMES and chance.random() < UNKNOWN_NAMES:
            return _with_unknown_names(pair, slot, places, chance)
        word = self._words(slot, chance).one(chance)
        if word is None or word.chinese in pair.chinese:
            return None
        english = word.english
        if slot.kind == "verb":
            english = verb_forms(english)[slot.form]
        elif slot.form:
            english = plural(english)
        return _put(pair, slot, english, word.chinese)

    def _words(self, slot: Slot, chance: random.Random) -> _WordSampler:
        """The words that can replace the one in a slot."""
        every = self.measured[slot.measure] if slot.measure else self.words[slot.kind]
        if not self.similar or slot.kind in NAMES or chance.random() < ANY_WORD:
            return every
        key = (slot.kind, slot.measure, slot.word)
        if key not in self.neighbours:
            known = {word.english: word for word in every.words}
            found = installed_similarity().most_similar(slot.word, list(known), self.similar)
            self.neighbours[key] = _WordSampler([known[word] for word in found])
        return self.neighbours[key]


def _with_unknown_names(pair: Pair, slot: Slot, places: Sequence[Slot], chance: random.Random) -> Pair:
    """The pair with a placeholder for a name, and half of the time for a second one too."""
    first, second = chance.sample(PLACEHOLDERS, 2)
    changed = _put(pair, slot, first, first)
    others = [other for other in places if other.kind in NAMES and other != slot]
    if others and chance.random() < 0.5:
        changed = _put(changed, others[0].moved(slot, first, first), second, second)
    return changed


class _WordSampler:
    """Draws words: common ones more often, and those that sentences have already taught less often."""

    def __init__(self, words: Sequence[WordPair]) -> None:
        self.words = [word for word in words if word.weight >= COMMON]
        self.sums = list(accumulate(map(untaught_weight, self.words)))

    def one(self, chance: random.Random) -> WordPair | None:
        if not self.words:
            return None
        place = bisect(self.sums, chance.random() * self.sums[-1])
        return self.words[min(place, len(self.words) - 1)]


def _put(pair: Pair, slot: Slot, english: str, chinese: str) -> Pair:
    before, after = pair.english[: slot.english[0]], pair.english[slot.english[1] :]
    vowel = english[0].lower() in "aeiou"
    before = ARTICLE.sub(lambda found: found[1] + ("n" if vowel else "") + found[2], before)
    first, stop = slot.chinese
    return Pair(before + english + after, pair.chinese[:first] + chinese + pair.chinese[stop:])


def slots(pair: Pair, lexicon: Lexicon) -> list[Slot]:
    """The words of a pair that stand once on both sides, according to the lexicon."""
    spans = [(found.start(), found.end(), found.group().lower()) for found in WORD.finditer(pair.english)]
    words = [word for _, _, word in spans]
    pieces = _cut(pair.chinese)
    found = []
    for (first, stop, word), before, after in zip(spans, ["", *words], [*words[1:], ""], strict=False):
        if words.count(word) > 1:
            continue
        kinds = {*NAMES, *_kinds_between(before, after)}
        for lemma in dict.fromkeys((word, *lemmas().get(word, ()))):
            known = [one for one in lexicon.by_english.get(lemma, ()) if one.kind in kinds]
            slot = _slot(pair, (first, stop), word, lemma, known, pieces)
            if slot is not None:
                found.append(slot)
                break
    return found


def _kinds_between(before: str, after: str) -> set[str]:
    """Of which kind a word between these two can be."""
    if before in BEFORE_NOUNS:
        return {"noun"}
    return {
        kind
        for kind, fits in (("adj", before in BEFORE_ADJECTIVES), ("verb", after not in AFTER_OTHER_VERBS))
        if fits
    }


def _slot(
    pair: Pair,
    english: tuple[int, int],
    typed: str,
    lemma: str,
    known: Sequence[WordPair],
    pieces: Sequence[tuple[int, str]],
) -> Slot | None:
    for word in known:
        form = _form(word, typed, lemma)
        if form is None:
            continue
        places = [first for first, piece in pieces if piece == word.chinese]
        if len(places) != 1 or pair.chinese.count(word.chinese) != 1:
            continue
        first = places[0]
        before, after = pair.chinese[first - 1 : first], pair.chinese[first + len(word.chinese) :][:1]
        if after in ("们", "儿", "子"):
            continue
        measure = before if word.kind == "noun" and before in MEASURES and before else ""
        return Slot(english, (first, first + len(word.chinese)), word.kind, form, measure, lemma)
    return None


def _form(word: WordPair, typed: str, lemma: str) -> int | None:
    """Which form of its dictionary form a word is; None for those that are not replaced."""
    if word.kind == "verb":
        forms = verb_forms(lemma)
        return forms.index(typed) if typed in forms and typed not in AUXILIARIES else None
    return int(typed != lemma) if typed == lemma or word.kind == "noun" else None


def _cut(chinese: str) -> list[tuple[int, str]]:
    """The words of a Chinese sentence, with where they begin."""
    return [(first, word) for word, first, _ in silent_jieba().tokenize(chinese, HMM=False)]
