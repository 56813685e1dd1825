"""Every demonstration with its name: what it claims, how it is run, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from matplotlib.figure import Figure

from regard.errors import ArgumentError
from regard.lessons.by_hand import calculate_by_hand, draw_hand
from regard.lessons.common_mistakes import draw_mistakes, find_mistakes
from regard.lessons.directions import draw_directions, point_keys
from regard.lessons.facts import text
from regard.lessons.head_splitting import draw_split, split_heads
from regard.lessons.learned_average import draw_averages, learn_averages
from regard.lessons.library_search import draw_library, search_library
from regard.lessons.mask_gallery import draw_masks, show_masks
from regard.lessons.multi_head_parameters import compare_multiple, draw_multiple
from regard.lessons.numpy_self_attention import attend_from_scratch, draw_scratch
from regard.lessons.position_vectors import draw_places, place_tokens
from regard.lessons.recurrent_comparison import compare_order, draw_order
from regard.lessons.score_scaling import draw_scaling, scale_scores
from regard.lessons.single_head import compare_single, draw_single
from regard.lessons.threshold_filter import draw_filter, filter_keys
from regard.lessons.word_attention import attend_words, draw_words


@dataclass(frozen=True)
class Demonstration:
    """A claim about attention that can be run: ``show()`` gives its numbers, ``draw()`` its figure.

    The result of ``show()`` has ``facts()``: the sentences to read, in either language.

    >>> demonstration("hand").title("en")
    '我 喜欢 AI by hand'
    """

    name: str
    seeds: tuple[str, ...]  # the rows of docs/lessons.md that it shows
    show: Callable[..., Any]
    draw: Callable[..., Figure]

    def title(self, lang: str = "en") -> str:
        """Its title."""
        return text(f"demo.{self.name}.title", lang)

    def claim(self, lang: str = "en") -> str:
        """What it shows, in one line."""
        return text(f"demo.{self.name}.claim", lang)


_ALL = (
    Demonstration("hand", ("E1",), calculate_by_hand, draw_hand),
    Demonstration("scratch", ("E2",), attend_from_scratch, draw_scratch),
    Demonstration("words", ("E3", "E4"), attend_words, draw_words),
    Demonstration("library", ("E5",), search_library, draw_library),
    Demonstration("scaling", ("A3",), scale_scores, draw_scaling),
    Demonstration("masks", ("A4", "A8"), show_masks, draw_masks),
    Demonstration("geometry", ("C4",), point_keys, draw_directions),
    Demonstration("filter", ("C5",), filter_keys, draw_filter),
    Demonstration("averaging", ("C8",), learn_averages, draw_averages),
    Demonstration("heads", ("B2", "C3"), split_heads, draw_split),
    Demonstration("single", ("D2",), compare_single, draw_single),
    Demonstration("multihead", ("A2", "D3", "D5"), compare_multiple, draw_multiple),
    Demonstration("positions", ("D1",), place_tokens, draw_places),
    Demonstration("order", ("D4", "E6"), compare_order, draw_order),
    Demonstration("mistakes", (), find_mistakes, draw_mistakes),
)


def demonstrations() -> tuple[Demonstration, ...]:
    """All demonstrations, simplest first.

    >>> [one.name for one in demonstrations()][:3]
    ['hand', 'scratch', 'words']
    """
    return _ALL


def demonstration(name: str) -> Demonstration:
    """The demonstration with this name.

    >>> demonstration("scaling").claim()
    'Divided by √d, scores keep variance 1 and softmax keeps learning; without it, it saturates.'
    """
    for one in _ALL:
        if one.name == name:
            return one
    near = get_close_matches(str(name), [one.name for one in _ALL], n=1)
    raise ArgumentError(
        "A demonstration must be one of {ALL}.",
        got="{name!r}",
        do="Did you mean {hints}?" if near else "Choose one of them.",
        ALL=", ".join(one.name for one in _ALL),
        name=name,
        hints="".join(near),
    )
