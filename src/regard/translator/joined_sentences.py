"""Longer sentences from two short ones: a conjunction joins them on both sides.

Chinese often says the reason first: *I went home because I was tired.* 我累了，所以我回家了。 A model that
has seen few such sentences exchanges the two clauses and keeps 因为. So pairs of short statements are joined
by every common conjunction, whatever they say, in the order that the Chinese conjunction asks for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from regard.translator.sentence_pairs import Pair, sentence_key

STATEMENT = re.compile(r"[A-Z][A-Za-z']*( [A-Za-z']+){1,7}\.")
SUBJECTS = frozenset((
    "i", "you", "he", "she", "it", "we", "they", "this", "that", "these", "those", "there", "the", "a", "an",
    "my", "your", "his", "her", "its", "our", "their", "everyone", "everybody", "someone", "somebody",
    "nobody", "nothing", "everything", "something", "all", "most", "many", "some",
))  # fmt: skip
"""What a statement begins with, rather than a command or a question; names are left out."""

NOT_SIMPLE = frozenset((
    "because", "but", "and", "or", "so", "if", "when", "while", "although", "though", "before", "after",
    "until", "since", "unless", "who", "which", "what", "where", "why", "how", "as", "than", "whether",
    "once",
))  # fmt: skip
SIMPLE_CHINESE = re.compile(r"[\u4e00-\u9fff]{2,14}。")
JOINED_ALREADY = re.compile("因为|所以|由于|但|如果|要是|虽然|尽管|时候|之前|之后|以前|以后|才|就")
BEFORE_TIME = re.compile("[了的过着]$")
"""Ends of clauses that 的时候 cannot follow."""


@dataclass(frozen=True)
class Conjunction:
    """How two clauses are joined: the first one is ``{0}`` in both languages, the second one ``{1}``."""

    english: str
    chinese: str
    weight: int

    @property
    def timed(self) -> bool:
        """Whether the first clause becomes a time."""
        return "时候" in self.chinese


CONJUNCTIONS = (
    Conjunction("{0} because {1}.", "{0}，因为{1}。", 4),
    Conjunction("Because {0}, {1}.", "因为{0}，所以{1}。", 2),
    Conjunction("{0}, so {1}.", "{0}，所以{1}。", 3),
    Conjunction("{0}, but {1}.", "{0}，但是{1}。", 2),
    Conjunction("{0} but {1}.", "{0}，但{1}。", 2),
    Conjunction("If {0}, {1}.", "如果{0}，{1}。", 2),
    Conjunction("{1} if {0}.", "如果{0}，{1}。", 2),
    Conjunction("Although {0}, {1}.", "虽然{0}，但{1}。", 2),
    Conjunction("{1} although {0}.", "虽然{0}，但{1}。", 1),
    Conjunction("When {0}, {1}.", "{0}的时候，{1}。", 2),
    Conjunction("{1} when {0}.", "{0}的时候，{1}。", 2),
)


class JoinedSentences:
    """Pairs of sentences that can be joined.

    >>> found = JoinedSentences([Pair("I went home.", "我回家了。"), Pair("I was tired.", "我累了。")])
    >>> found.join(CONJUNCTIONS[0], *found.clauses)
    Pair(english='I went home because I was tired.', chinese='我回家了，因为我累了。')
    """

    def __init__(self, sentences: Sequence[Pair], *, excluded: Collection[str] = ()) -> None:
        self.clauses = [pair for pair in sentences if is_clause(pair)]
        self.excluded = {sentence_key(english) for english in excluded}

    def draw(self, count: int, chance: random.Random) -> list[Pair]:
        """This many joined pairs; none of an excluded sentence."""
        if len(self.clauses) < 2:
            return []
        drawn = chance.choices(CONJUNCTIONS, [one.weight for one in CONJUNCTIONS], k=count)
        joined = (self.join(each, *self._clauses(each, chance)) for each in drawn)
        return [pair for pair in joined if sentence_key(pair.english) not in self.excluded]

    def _clauses(self, conjunction: Conjunction, chance: random.Random) -> tuple[Pair, Pair]:
        while True:
            first, second = chance.sample(self.clauses, 2)
            if not (conjunction.timed and BEFORE_TIME.search(first.chinese[:-1])):
                return first, second

    @staticmethod
    def join(conjunction: Conjunction, first: Pair, second: Pair) -> Pair:
        """Two clauses as one sentence."""
        english = conjunction.english.format(*(_inside(pair.english[:-1]) for pair in (first, second)))
        chinese = conjunction.chinese.format(first.chinese[:-1], second.chinese[:-1])
        return Pair(english[0].upper() + english[1:], chinese)


def is_clause(pair: Pair) -> bool:
    """Whether a pair is a short statement without a conjunction, in both languages.

    >>> is_clause(Pair("The cat is asleep.", "猫睡着了。")), is_clause(Pair("Run if you can.", "能跑就跑。"))
    (True, False)
    """
    if not STATEMENT.fullmatch(pair.english) or not SIMPLE_CHINESE.fullmatch(pair.chinese):
        return False
    words = pair.english[:-1].lower().split()
    subject = words[0].split("'")[0]
    return subject in SUBJECTS and NOT_SIMPLE.isdisjoint(words) and not JOINED_ALREADY.search(pair.chinese)


def _inside(english: str) -> str:
    """The words as they are inside a sentence."""
    return english if re.match(r"I\b", english) else english[0].lower() + english[1:]
