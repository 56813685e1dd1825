"""Attention is an average whose weights are learned, and several heads are several views.

Each text has tokens ``(value, a?, b?)``; one token carries the mark a, another the mark b. The task is
to output both marked values. A plain average knows neither. One head can attend to one place at a time, so
it finds one of them or a mixture; two heads attend to two places. The tokens are numbers, not words, so
nothing here depends on language.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

from regard.kernels import attention, attention_weights
from regard.lessons.facts import Fact, text
from regard.lessons.panels import Bars, Cells, draw

LENGTH, TEXTS, STEPS = 8, 256, 200


@dataclass(frozen=True, eq=False)
class LearnedAverage:
    """Mean squared errors of a plain average, of one learned head and of two."""

    plain: float
    one_head: float
    two_heads: float
    weights: Tensor  # (head, key) of the two learned heads on one text
    marks: tuple[int, int]  # the positions of the marks in that text

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        return (
            Fact("averaging.plain", {"error": self.plain}),
            Fact("averaging.one", {"error": self.one_head}),
            Fact("averaging.two", {"error": self.two_heads}),
            Fact(
                "averaging.views",
                {
                    "first": int(self.weights[0].argmax()),
                    "second": int(self.weights[1].argmax()),
                    "marks": self.marks,
                },
            ),
        )


def learn_averages(seed: int = 0) -> LearnedAverage:
    """Learn a query for each head by gradient descent, on random texts.

    >>> found = learn_averages()
    >>> found.plain > 0.5, found.one_head > 0.2, found.two_heads < 0.05
    (True, True, True)
    """
    chance = torch.Generator().manual_seed(seed)
    values = torch.randn(TEXTS, LENGTH, generator=chance)
    places = torch.rand(TEXTS, LENGTH, generator=chance).argsort(-1)[:, :2]  # of the marks a and b
    tokens = torch.zeros(TEXTS, LENGTH, 3)
    tokens[..., 0] = values
    for mark in (0, 1):
        tokens[torch.arange(TEXTS), places[:, mark], 1 + mark] = 1.0
    wanted = values.gather(1, places)  # (text, mark)
    plain = values.mean(-1, keepdim=True)
    one, _ = _learn(tokens, wanted, 1, chance)
    two, queries = _learn(tokens, wanted, 2, chance)
    seen = attention_weights(*_heads(tokens[:1], queries)[:2])[0, :, 0]
    first, second = places[0].tolist()
    return LearnedAverage(float((plain - wanted).square().mean()), one, two, seen, (first, second))


def _heads(tokens: Tensor, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v with one learned query per head: ``(text, head, 1 or token, channel)``."""
    heads = len(queries)
    shared = tokens[:, None].expand(-1, heads, -1, -1)
    return queries[None, :, None].expand(len(tokens), -1, -1, -1), shared, shared


def _learn(tokens: Tensor, wanted: Tensor, heads: int, chance: torch.Generator) -> tuple[float, Tensor]:
    queries = (0.1 * torch.randn(heads, 3, generator=chance)).requires_grad_()
    optimizer = torch.optim.Adam([queries], lr=0.2)
    with torch.enable_grad():
        for _ in range(STEPS):
            read = attention(*_heads(tokens, queries))[:, :, 0, 0]  # (text, head): the mixed value
            loss = (read - wanted).square().mean()  # a single head gives both answers
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float(loss.detach()), queries.detach()


def draw_averages(found: LearnedAverage, lang: str = "en") -> Figure:
    """The errors, and where the two heads attend."""
    names = [text(f"averaging.{name}.name", lang) for name in ("plain", "one", "two")]
    heads = [text("averaging.head", lang, head=head) for head in (0, 1)]
    return draw(
        Bars(text("averaging.error", lang), names, [found.plain, found.one_head, found.two_heads]),
        Cells(
            text("averaging.weights", lang),
            found.weights.numpy(),
            heads,
            sides=("", text("axis.key", lang)),
        ),
        title=text("demo.averaging.claim", lang),
    )
