"""What is trained on in an epoch: all sentence pairs, recombined and joined ones, words of the dictionary.

Everything but the sentence pairs is drawn anew for each epoch, by the seed and the number of the epoch, so
that a run that resumes draws the same.
"""

from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate

from regard.translator.everyday import development_sentences, everyday_sentences
from regard.translator.joined_sentences import JoinedSentences
from regard.translator.lexicon import Lexicon, WordPair, plural, untaught_weight, verb_forms
from regard.translator.recipe import Recipe
from regard.translator.recombination import Recombination
from regard.translator.sentence_pairs import CorpusSplit, Pair, sentence_key


class EpochPairs:
    """The pairs of every epoch; without a lexicon, the sentence pairs alone.

    >>> corpus = CorpusSplit((Pair("Hi.", "嗨。"),), ())
    >>> EpochPairs(corpus, Recipe(), None).draw(3)
    [Pair(english='Hi.', chinese='嗨。')]
    """

    def __init__(self, corpus: CorpusSplit, recipe: Recipe, lexicon: Lexicon | None) -> None:
        everyday = (*everyday_sentences(), *development_sentences())
        measured = [one.english for one in (*corpus.held_out, *corpus.validation, *everyday)]
        never = {sentence_key(english) for english in measured}
        self.recipe = recipe
        # An everyday sentence can be in somebody's file of pairs.
        self.sentences = [pair for pair in corpus.training if sentence_key(pair.english) not in never]
        self.joined = JoinedSentences(self.sentences, excluded=measured) if recipe.joined else None
        self.words: list[WordPair] = []
        self.recombination: Recombination | None = None
        if lexicon is not None:
            self.recombination = Recombination(
                self.sentences, lexicon, excluded=measured, similar=recipe.similar
            )
            self.words = list(lexicon.taught)
            self.sums = list(accumulate(map(untaught_weight, self.words)))

    def draw(self, epoch: int) -> list[Pair]:
        """All pairs of an epoch."""
        found = list(self.sentences)
        if self.recombination is not None:
            chance = random.Random(f"{self.recipe.seed} {epoch}")  # noqa: S311 (nothing is secret)
            found += self.recombination.draw(round(self.recipe.recombined * len(self.sentences)), chance)
            found += [self._entry(chance) for _ in range(round(self.recipe.entries * len(self.sentences)))]
        if self.joined is not None and epoch >= self.recipe.joined_from:
            # Another generator, so that the rest of an epoch is the same with and without them.
            chance = random.Random(f"{self.recipe.seed} {epoch} joined")  # noqa: S311
            found += self.joined.draw(round(self.recipe.joined * len(self.sentences)), chance)
        return found

    def _entry(self, chance: random.Random) -> Pair:
        place = bisect(self.sums, chance.random() * self.sums[-1])
        word = self.words[min(place, len(self.words) - 1)]
        english = word.english
        if word.kind == "verb":
            english = chance.choice(verb_forms(english))
        elif word.kind == "noun" and chance.random() < 0.3:
            english = plural(english)
        return Pair(english, word.chinese)
