"""Common mistakes, each beside the right number: what a tutorial computes and what it should compute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from regard.kernels import attention_weights, plan
from regard.kernels.reference import Numbers, softmax
from regard.lessons.facts import Fact, text
from regard.lessons.multi_head_parameters import compare_multiple
from regard.lessons.panels import Cells, draw
from regard.masks import local_global, padding

SPARSE = 8192


@dataclass(frozen=True, eq=False)
class CommonMistakes:
    """Wrong and right, number by number."""

    overflow: float  # softmax of 1000 without subtracting a maximum
    no_overflow: float
    whole_maximum: Numbers  # a row of low scores, the maximum of the whole matrix subtracted
    row_maximum: Numbers
    masked_naive: Numbers  # a row that sees nothing
    masked: Numbers
    padding_twice: tuple[int, ...]  # what unsqueezing (2, 5) twice broadcasts (2, 5, 5) to
    padding_once: tuple[int, ...]  # and what it should be
    keys_product: Numbers  # an outer product of scores, called similarity of the keys
    keys_similarity: Numbers  # their cosines
    dense_pairs: int  # of a sparse mask that is built n×n
    sparse_pairs: int
    torch_shape: tuple[int, ...]
    heads_shape: tuple[int, ...]

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        return (
            Fact("mistakes.overflow", {"wrong": self.overflow, "right": self.no_overflow}),
            Fact("mistakes.maximum", {"wrong": _row(self.whole_maximum), "right": _row(self.row_maximum)}),
            Fact("mistakes.masked", {"wrong": _row(self.masked_naive), "right": _row(self.masked)}),
            Fact("mistakes.padding", {"wrong": self.padding_twice, "right": self.padding_once}),
            Fact(
                "mistakes.similarity",
                {"wrong": self.keys_product[0, 0], "right": self.keys_similarity[0, 0]},
            ),
            Fact(
                "mistakes.sparse", {"length": SPARSE, "wrong": self.dense_pairs, "right": self.sparse_pairs}
            ),
            Fact("mistakes.average", {"wrong": self.torch_shape, "right": self.heads_shape}),
        )


def _row(values: Numbers) -> str:
    return "[" + ", ".join(f"{value:.3f}" for value in values) + "]"


def find_mistakes() -> CommonMistakes:
    """Compute each thing as the tutorials do, and as it should be.

    >>> found = find_mistakes()
    >>> found.whole_maximum, found.row_maximum.round(3)
    (array([nan, nan]), array([0.269, 0.731]))
    >>> found.padding_twice, found.padding_once
    ((2, 2, 5, 5), (2, 5, 5))
    """
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(np.array([1000.0, 0.0]))
        overflow = float((powers / powers.sum())[0])
        scores = np.array([[1000.0, 1000.0], [0.0, 1.0]])
        shifted = np.exp(scores - scores.max())
        whole = (shifted / shifted.sum(-1, keepdims=True))[1]
    naive = torch.full((3,), -torch.inf).softmax(-1)
    x = torch.ones(1, 3, 2)
    nothing = attention_weights(x, x, mask=padding(np.zeros(3, np.bool_)))[0, 0]
    keep = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    keys = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    products = keys @ np.array([1.0, 0.5, 0.2])
    directions = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    long = plan(local_global(64), SPARSE)
    module = compare_multiple(5, width=64)
    return CommonMistakes(
        overflow,
        float(softmax(np.array([1000.0, 0.0]))[0][0]),
        whole,
        softmax(scores)[0][1],
        naive.double().numpy(),
        nothing.double().numpy(),
        tuple(torch.broadcast_shapes(keep.unsqueeze(1).unsqueeze(2).shape, (2, 5, 5))),
        tuple(torch.broadcast_shapes(keep.unsqueeze(1).shape, (2, 5, 5))),
        np.outer(products, products),
        directions @ directions.T,
        long.total,
        long.computed,
        module.average_shape,
        module.heads_shape,
    )


def draw_mistakes(found: CommonMistakes, lang: str = "en") -> Figure:
    """The similarity of three keys: as an outer product of scores, and the true one."""
    return draw(
        Cells(text("mistakes.outer", lang), found.keys_product, numbers=True),
        Cells(text("mistakes.cosine", lang), found.keys_similarity, numbers=True),
        title=text("demo.mistakes.claim", lang),
    )
