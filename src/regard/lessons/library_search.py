"""Query, key and value as a search in a library: what you look for, what the spine says, what is inside.

The topics of a book are its key, its content is its value, and the query is what the reader wants.
Ordinary search returns the best book; attention takes something from each, by how well it fits.

The second half asks who "she" is. The vectors are made by hand, so that each number has a meaning; a
model learns its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from regard.kernels.reference import Numbers, attention
from regard.lessons.facts import Fact, text, words
from regard.lessons.panels import Bars, draw

# Topics: mathematics, programming, history, cooking.
BOOKS = np.array([[3.0, 1.0, 0.0, 0.0], [1.0, 3.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.5], [0.0, 0.0, 0.5, 3.0]])
WISH = np.array([1.0, 2.0, 0.0, 0.0])
PAGES = np.array([300.0, 450.0, 700.0, 200.0])

# Of each word: is a person, is female, is male, is a thing. She looks for a person who is female.
NATURES = {
    "her": (2.0, 2.0, 0.0, 0.0),
    "him": (2.0, 0.0, 2.0, 0.0),
    "thing": (0.0, 0.0, 0.0, 2.0),
    "other": (0.0, 0.0, 0.0, 0.0),
}
BEFORE = ("her", "other", "other", "thing", "other", "him", "other")
"""What the words before "she" are, in the sentence of either language."""

SHE = np.array([1.5, 2.0, -1.0, -1.0])


@dataclass(frozen=True, eq=False)
class LibrarySearch:
    """What a reader takes from each book, and whom "she" attends to."""

    scores: Numbers
    weights: Numbers
    output: float  # pages, mixed by the weights
    best: int  # the one book that a search would return
    natures: tuple[str, ...]  # of each word before "she"
    she: Numbers  # her weight on each of them

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        found = ", ".join(f"{weight:.3f}" for weight in self.weights)
        return (
            Fact("library.search", {"best": self.best + 1, "weight": self.weights[self.best]}),
            Fact("library.attention", {"weights": found, "output": self.output}),
            Fact("library.she", {"weight": self.she.max()}),
        )


def search_library() -> LibrarySearch:
    """The reader's weights on four books, and the pronoun's weights on the words before it.

    >>> found = search_library()
    >>> found.weights.round(3), found.best
    (array([0.258, 0.7  , 0.021, 0.021]), 1)
    >>> found.natures[found.she.argmax()], round(float(found.she.max()), 2)
    ('her', 0.85)
    """
    trace = attention(WISH[None], BOOKS, PAGES[:, None])
    keys = np.array([NATURES[nature] for nature in BEFORE])
    she = attention(SHE[None], keys, keys)["weights"][0]
    return LibrarySearch(
        trace["scores"][0],
        trace["weights"][0],
        float(trace.output[0, 0]),
        int(trace["weights"][0].argmax()),
        BEFORE,
        she,
    )


def draw_library(found: LibrarySearch, lang: str = "en") -> Figure:
    """Weights on the books, and on the words of the sentence."""
    return draw(
        Bars(text("library.books.title", lang), words("library.books", lang), found.weights, PAGES),
        Bars(text("library.she.title", lang), words("library.sentence", lang), found.she),
        title=text("demo.library.claim", lang),
    )
