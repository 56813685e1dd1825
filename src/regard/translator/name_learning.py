"""Learning what tells a given name from an ordinary word: from dictionary, sentence pairs and word vectors.

- A word can be a name if the dictionary has it as one, or if its vector and its frequencies in other
  languages are like those of such names: *Lily* is as frequent in German as in English, *soup* is not.
- The words beside names are counted in the sentence pairs, against those beside ordinary words.
- A name of the dictionary has its Chinese form from there. Names and other capitalized words that the
  sentence pairs have often are left to the model, which has learned them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.translator.dictionary import DictionaryEntry
from regard.translator.lexicon import lemmas, parts_of_speech, zipf
from regard.translator.name_evidence import (
    ALWAYS,
    POSSESSIVE,
    WORD,
    NameEvidence,
    by_ending,
    contexts,
    starts_sentence,
)
from regard.translator.sentence_pairs import Pair
from regard.translator.word_similarity import installed_similarity

LANGUAGES = (
    "ca",
    "cs",
    "da",
    "de",
    "es",
    "fi",
    "fr",
    "hu",
    "id",
    "it",
    "nb",
    "nl",
    "pl",
    "pt",
    "ro",
    "sv",
    "tr",
)
"""Languages in Latin script in which the frequency of a word is compared with that in English."""

LIKE_A_NAME = -1.7
"""The least log odds of a word that is not a name in the dictionary."""

OFTEN, LEARNED = 2, 10
"""Words, and names of the dictionary, that at least this many sentences capitalize are left to the model."""

NEVER = -9.0
LONGEST = 4
"""The most characters of a name that the dictionary has without saying that it is one."""

LEAST, TELLING = 10, 0.5
"""How often a context must be counted, and the least log odds of one that is stored."""

PENALTY = 1e-3
"""The weight of the squared coefficients when the likeness is fitted."""


@dataclass(frozen=True)
class _Spelling:
    """How often each word is in lower case, and capitalized inside a sentence."""

    lower: Counter[str]
    inside: Counter[str]


def learn_name_evidence(
    pairs: Sequence[Pair], dictionary: Sequence[DictionaryEntry], known: Iterable[str]
) -> NameEvidence:
    """What tells names from words among those that a model was taught; others are copied anyway."""
    sentences = sorted({pair.english for pair in pairs})
    spelling = _spelling(sentences)
    people, capitalized, parts, plain = _names_in(dictionary)
    ordinary = plain | parts_of_speech().keys()
    likeness = _likeness(people, ordinary - people.keys() - capitalized)
    learned = {word for word in people if spelling.inside[word] >= LEARNED}
    words: dict[str, float] = {}
    for word in sorted(set(known)):
        other = word in capitalized or (word in parts and word not in ordinary)
        if (spelling.inside[word] >= OFTEN or other) if word not in people else word in learned:
            continue
        own = likeness.get(word, -2.0 if word in people else NEVER) - math.log1p(spelling.lower[word])
        if word not in ordinary:
            only = word in people or (own > 0 and word not in lemmas())
            own = ALWAYS if only and not spelling.lower[word] else NEVER
        if own >= LIKE_A_NAME or word in people:
            words[word] = round(own, 1)
    chinese = {word: _form(people[word]) for word in words if word in people}
    return NameEvidence(words, _beside(sentences, learned, ordinary - learned), chinese, copied_words(pairs))


def copied_words(pairs: Sequence[Pair]) -> frozenset[str]:
    """The words in capitals that most of their translations keep as they are.

    >>> pairs = [Pair("AI is here.", "AI来了。"), Pair("I watch TV.", "我看电视。"), Pair("NO AI!", "没有!")]
    >>> copied_words(pairs)
    frozenset({'AI'})
    """
    seen: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for pair in pairs:
        words = {word for word in WORD.findall(pair.english) if len(word) > 1 and word.isupper()}
        if not pair.english.isupper():
            seen.update(words)
            kept.update(word for word in words if word in pair.chinese)
    return frozenset(word for word in seen if 2 * kept[word] > seen[word])


def _form(forms: Iterable[str]) -> str:
    """The most common of these Chinese forms of a name."""
    return max(sorted(forms), key=lambda form: zipf(form, "zh"))


def _names_in(
    dictionary: Sequence[DictionaryEntry],
) -> tuple[dict[str, set[str]], set[str], set[str], set[str]]:
    """Given names with their translations, other capitalized words, parts of longer ones, and plain words.

    All are in lower case.
    """
    people: dict[str, set[str]] = {}
    capitalized: dict[str, set[str]] = {}
    parts: set[str] = set()
    plain: set[str] = set()
    for entry in dictionary:
        for gloss in entry.glosses:
            if not gloss.english[0].isupper():
                plain.add(gloss.english)
            elif gloss.person and " " not in gloss.english:
                people.setdefault(gloss.english.lower(), set()).add(entry.chinese)
            elif " " not in gloss.english:
                capitalized.setdefault(gloss.english.lower(), set()).add(entry.chinese)
            else:
                parts |= set(gloss.english.lower().split())
    for name, forms in people.items():
        forms |= {form for form in capitalized.get(name, ()) if len(form) <= LONGEST}  # 大卫 is David too
    return people, set(capitalized), parts, plain


def _spelling(sentences: Sequence[str]) -> _Spelling:
    lower: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for sentence in sentences:
        for found in WORD.finditer(sentence):
            word = POSSESSIVE.sub("", found.group())
            if word.islower():
                lower[word] += 1
            elif not starts_sentence(sentence[: found.start()]):
                inside[word.lower()] += 1
    return _Spelling(lower, inside)


def _likeness(people: Iterable[str], ordinary: Iterable[str]) -> dict[str, float]:
    """The log odds of being a name rather than an ordinary word, by logistic regression.

    Learned from names that are not words, and words that are not names.
    """
    similarity = installed_similarity()
    words = [word for word in similarity.places if word.isascii() and word.isalpha() and len(word) > 2]
    names, others = set(people), set(ordinary)
    features = torch.cat([similarity.vectors[[similarity.places[word] for word in words]], _abroad(words)], 1)
    only = torch.tensor([word in names and word not in parts_of_speech() for word in words])
    never = torch.tensor([word in others for word in words])
    rows = only | never
    coefficients = _fitted(features[rows], only[rows].float())
    return dict(zip(words, (features @ coefficients[:-1] + coefficients[-1]).tolist(), strict=True))


def _abroad(words: Sequence[str]) -> Tensor:
    """How much rarer each word is in other languages than in English (quartiles), and how frequent there."""
    rows = []
    for word in words:
        english = zipf(word, "en")
        others = sorted(zipf(word, language) - english for language in LANGUAGES)
        quarter = len(others) // 4
        rows.append([others[quarter], others[2 * quarter], others[3 * quarter], english / 2])
    return torch.tensor(rows) / 2


def _fitted(features: Tensor, names: Tensor) -> Tensor:
    """Coefficients of a logistic regression, the constant last; names count as much as all others."""
    coefficients = torch.zeros(features.shape[1] + 1, requires_grad=True)
    weights = torch.where(names > 0, (names == 0).sum() / names.sum(), 1.0)
    optimizer = torch.optim.LBFGS([coefficients], max_iter=100)

    def loss() -> Tensor:
        optimizer.zero_grad()
        logits = features @ coefficients[:-1] + coefficients[-1]
        found = F.binary_cross_entropy_with_logits(logits, names, weights)
        found = found + PENALTY * (coefficients[:-1] ** 2).sum()
        found.backward()
        return found

    optimizer.step(loss)
    return coefficients.detach()


def _beside(sentences: Sequence[str], people: Iterable[str], ordinary: Iterable[str]) -> dict[str, float]:
    """The log odds of what stands beside a name, against what stands beside an ordinary word."""
    names, others = set(people), set(ordinary) | lemmas().keys()
    others -= names
    counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for sentence in sentences:
        found = list(WORD.finditer(sentence))
        words = [POSSESSIVE.sub("", one.group()) for one in found]
        lower = [word.lower() for word in words]
        for place, word in enumerate(lower):
            name = word in names and words[place].istitle()
            if len(word) == 1 or not (name or word in others):
                continue
            inside = not starts_sentence(sentence[: found[place].start()])
            for feature in contexts(lower, place, inside=inside):
                counts[name].update((feature,))
    rare = {feature for feature in counts[0] | counts[1] if counts[0][feature] + counts[1][feature] < LEAST}
    for one in counts:
        for feature in rare & one.keys():
            one[by_ending(feature)] += one.pop(feature)
    return _log_odds(*counts)


def _log_odds(others: Counter[str], names: Counter[str]) -> dict[str, float]:
    """Those of each feature among all of its kind: before, after, or the one after that."""
    found = {}
    for kind in ("before", "after", "second"):
        own = [one for one in others | names if _kind(one) == kind]
        total = [sum(counts[one] for one in own) + len(own) for counts in (others, names)]
        for one in own:
            odds = math.log((names[one] + 1) / total[1]) - math.log((others[one] + 1) / total[0])
            if abs(odds) >= TELLING:
                found[one] = round(odds, 1)
    return found


def _kind(feature: str) -> str:
    if feature.endswith(" _"):
        return "before"
    return "second" if feature.startswith("_ . ") else "after"
