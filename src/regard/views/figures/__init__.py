"""Figures of attention, as matplotlib figures for PNG, SVG and PDF.

>>> from regard import figures
>>> figure = figures.heatmap([[0.7, 0.3], [0.4, 0.6]], queries=["I", "am"])
>>> type(figure).__mro__[1].__name__
'Figure'

Every function returns its figure. None opens a window, and nothing of matplotlib's settings changes.
"""

from regard.views.figures.alignment_map import alignment
from regard.views.figures.bars import bars
from regard.views.figures.cost_curves import cost
from regard.views.figures.distance_bars import distance
from regard.views.figures.divergence_map import divergence
from regard.views.figures.effect_map import effects, eviction
from regard.views.figures.explanation_figures import attribution, importance, relevance
from regard.views.figures.geometry import geometry
from regard.views.figures.grid import grid
from regard.views.figures.heatmap import heatmap
from regard.views.figures.lines import lines
from regard.views.figures.mask_picture import mask
from regard.views.figures.save import save

__all__ = [
    "alignment",
    "attribution",
    "bars",
    "cost",
    "distance",
    "divergence",
    "effects",
    "eviction",
    "geometry",
    "grid",
    "heatmap",
    "importance",
    "lines",
    "mask",
    "relevance",
    "save",
]
