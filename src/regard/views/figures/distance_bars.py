"""``distance``: at which distances each head attends, as shares of its attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from regard.views.figures.figure_layout import FigureLayout, checked_size
from regard.views.figures.style import QUIET, head_style, house_style
from regard.views.figures.weight_matrix import Matrix, matrices_of

WIDTH, HEIGHT = 4.6, 2.8
"""Inches."""


def distance(
    weights: object,
    *,
    layer: int | None = None,
    heads: int | Sequence[int] | None = None,
    kind: str | None = None,
    run: int | None = None,
    batch: int = 0,
    title: str | None = None,
    size: float | None = None,
    lang: str = "en",
) -> Figure:
    """Which share of its attention each head gives to keys at each distance.

    Query i is at position ``p_i = i + keys − queries``; its distance to key j is ``|p_i − j|``. Distances are
    gathered in bins that double: 0, 1, 2–3, 4–7, 8–15 and so on. The shares of a head add up to 1.

    Args:
        weights: a recording, one of its calls, or numbers ``(query, key)`` or ``(head, query, key)``.
        layer, heads, kind, run, batch: which heads of the recording; each has a colour.
        title: by default the layer; "" for none.
        size: the width in inches.
        lang: the language of the figure's own text, "en" or "zh".

    >>> figure = distance([[1.0, 0.0], [0.5, 0.5]])
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [0.75, 0.25]
    """
    matrices = matrices_of(weights, layer=layer, heads=heads, kind=kind, run=run, batch=batch)
    shares = [shares_by_distance(matrix) for matrix in matrices]
    names = bin_names(len(shares[0]))
    width = checked_size(size, WIDTH)
    with house_style():
        layout = FigureLayout([title or ""], lang)
        axes = layout.area(1, 1, width, HEIGHT * width / WIDTH)
        for place, (matrix, share) in enumerate(zip(matrices, shares)):
            name = "" if matrix.head is None else layout.say("head.n", head=matrix.head)
            axes.plot(share, marker="o", markersize=3, label=name, **head_style(place))
        axes.set_ylim(0, None)
        axes.set_xlim(-0.3, len(names) - 0.7)
        layout.label(axes, "x", names, len(names), width / len(names))
        ticks = [tick for tick in axes.get_yticks() if tick <= axes.get_ylim()[1]]
        axes.set_yticks(ticks, [f"{100 * tick:.3g} %" for tick in ticks])
        axes.grid(visible=True, axis="y")
        layout.side_name(axes, "x", layout.say("distance"))
        layout.side_name(axes, "y", layout.say("share"))
        if len(matrices) > 1:
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(1.01, 1.0),
                borderaxespad=0,
                labelcolor=QUIET,
                prop={"family": layout.families, "size": layout.sizes.legend},
                handlelength=1.8,
                ncols=1 + (len(matrices) - 1) // 14,
            )
        said = matrices[0].name(lang) if len(matrices) == 1 else matrices[0].layer_name(lang)
        layout.title(axes, title, said)
        return layout.fit()


def shares_by_distance(matrix: Matrix) -> NDArray[np.float64]:
    """The share of the attention at distance 0, 1, 2–3, 4–7, …; all 0 where nothing is seen.

    One block of rows is in memory at a time.

    >>> from regard.views.figures.weight_matrix import matrices_of
    >>> shares_by_distance(matrices_of([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])[0]).tolist()  # p = 1, 2
    [0.5, 0.5, 0.0]
    """
    queries, keys = matrix.shape
    farthest = max(keys - 1, queries - 1)
    # With more queries than keys, the first queries are before key 0.
    bins = bin_of(np.arange(farthest + 1))
    mass = np.zeros(int(bins[-1]) + 1)
    places = np.arange(keys)
    for block in matrix.blocks():
        positions = np.arange(block.start, block.stop) + keys - queries
        which = bins[np.abs(positions[:, None] - places)]
        mass += np.bincount(which.ravel(), weights=block.values.ravel(), minlength=len(mass))
    total = mass.sum()
    return mass / total if total else mass


def bin_of(distances: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin of each distance: 0 → 0, 1 → 1, 2 and 3 → 2, 4 … 7 → 3.

    >>> bin_of(np.arange(9)).tolist()
    [0, 1, 2, 2, 3, 3, 3, 3, 4]
    """
    # The exponent of frexp is the number of binary digits, exactly.
    return np.frexp(distances.astype(np.float64))[1].astype(np.int64)


def bin_names(count: int) -> list[str]:
    """What the bins are called.

    >>> bin_names(5)
    ['0', '1', '2–3', '4–7', '8–15']
    """
    return [str(place) if place < 2 else f"{2 ** (place - 1)}–{2**place - 1}" for place in range(count)]
