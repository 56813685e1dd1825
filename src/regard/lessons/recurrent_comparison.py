"""A recurrent net against attention: sequential steps, the path between two tokens, and measured time.

|                                     | recurrent | attention |
|-------------------------------------|-----------|-----------|
| steps that must wait for each other | n         | 1         |
| steps from the first token to the last | n − 1  | 1         |
| operations, width d                 | O(n · d²) | O(n · d² + n² · d) |

So attention is not less work. It is work that can be done in parallel, and no token is far from another.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from regard.lessons.facts import Fact, text
from regard.lessons.panels import Curves, draw
from regard.nn import MultiHeadAttention

SMALLEST = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class LengthComparison:
    """Both nets at one length."""

    length: int
    recurrent_steps: int
    attention_steps: int
    recurrent_path: int
    attention_path: int
    recurrent_seconds: float
    attention_seconds: float
    recurrent_reach: float  # gradient of the last output at the first token, relative to the last token
    attention_reach: float


@dataclass(frozen=True)
class RecurrentComparison:
    """The comparison at every length."""

    width: int
    rows: tuple[LengthComparison, ...]
    shuffled: float  # how much attention without positions changes when its tokens are permuted

    def facts(self) -> tuple[Fact, ...]:
        """The results, as sentences."""
        last = self.rows[-1]
        return (
            Fact("order.steps", {"length": last.length, "attention": last.attention_steps}),
            Fact("order.path", {"recurrent": last.recurrent_path, "attention": last.attention_path}),
            Fact("order.reach", {"recurrent": last.recurrent_reach, "attention": last.attention_reach}),
            *(
                Fact(
                    "order.time",
                    {
                        "length": row.length,
                        "recurrent": 1000 * row.recurrent_seconds,
                        "attention": 1000 * row.attention_seconds,
                        "ratio": row.recurrent_seconds / row.attention_seconds,
                    },
                )
                for row in self.rows
            ),
            Fact("order.shuffled", {"difference": self.shuffled}),
        )


def compare_order(
    lengths: Sequence[int] = (64, 256, 1024),
    *,
    width: int = 64,
    heads: int = 4,
    rounds: int = 3,
    seed: int = 0,
) -> RecurrentComparison:
    """``torch.nn.GRU`` and multi-head attention on the same tokens ``(1, length, width)``.

    The reach is ``|∂ last output / ∂ first token|`` as a share of the same for the last token.

    >>> row = compare_order((48,), width=16, rounds=1).rows[0]
    >>> row.recurrent_steps, row.recurrent_path, row.attention_steps, row.attention_path
    (48, 47, 1, 1)
    >>> row.recurrent_reach < 0.01 < row.attention_reach
    True
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        recurrent = nn.GRU(width, width, batch_first=True)
        attend = MultiHeadAttention(width, heads)
        rows = tuple(_compare(recurrent, attend, torch.randn(1, length, width), rounds) for length in lengths)
        x = torch.randn(1, 32, width)
        places = torch.randperm(32)
    with torch.no_grad():
        shuffled = float((attend(x)[:, places] - attend(x[:, places])).abs().max())
    return RecurrentComparison(width, rows, shuffled)


def _compare(recurrent: nn.Module, attend: nn.Module, x: Tensor, rounds: int) -> LengthComparison:
    length = x.shape[1]
    with torch.no_grad():
        seconds = [_seconds(net, x, rounds) for net in (recurrent, attend)]
    reach = [_reach(net, x) for net in (recurrent, attend)]
    return LengthComparison(length, length, 1, length - 1, 1, *seconds, *reach)


def _seconds(net: nn.Module, x: Tensor, rounds: int) -> float:
    net(x)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        net(x)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _reach(net: nn.Module, x: Tensor) -> float:
    # In float32 the gradient of a recurrent net is 0 after some two hundred steps.
    net, x = deepcopy(net).double(), x.double().requires_grad_()
    output = net(x)[0] if isinstance(net, nn.GRU) else net(x)
    # The sum of squares represents the whole output; a plain sum could cancel out.
    output[0, -1].square().sum().backward()
    assert x.grad is not None
    first, last = x.grad[0, 0], x.grad[0, -1].norm()
    largest = first.abs().max().clamp(min=SMALLEST)  # the squares of numbers below 1e-162 are 0
    return float(largest * (first / largest).norm() / last)


def draw_order(found: RecurrentComparison, lang: str = "en") -> Figure:
    """Time and reach over the length."""
    lengths = [row.length for row in found.rows]
    recurrent, attend = text("order.recurrent", lang), text("order.attention", lang)
    return draw(
        Curves(
            text("order.time.title", lang),
            lengths,
            {
                recurrent: [1000 * row.recurrent_seconds for row in found.rows],
                attend: [1000 * row.attention_seconds for row in found.rows],
            },
            side=text("axis.tokens", lang),
            logarithmic=True,
        ),
        Curves(
            text("order.reach.title", lang),
            lengths,
            {
                # A reach of 0 cannot be drawn on a logarithmic axis.
                recurrent: [max(row.recurrent_reach, SMALLEST) for row in found.rows],
                attend: [row.attention_reach for row in found.rows],
            },
            side=text("axis.tokens", lang),
            logarithmic=True,
        ),
        title=text("demo.order.claim", lang),
    )
