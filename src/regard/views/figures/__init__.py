"""Figures of attention, as matplotlib figures for PNG, SVG and PDF.

>>> from regard import figures
>>> figure = figures.heatmap([[0.7, 0.3], [0.4, 0.6]], queries=["I", "am"])
>>> type(figure).__mro__[1].__name__
'Figure'

Every function returns its figure. None opens a window, and matplotlib's settings stay unchanged.
"""

from regard.views.figures.alignment_map import alignment
from regard.views.figures.bar_chart import bars
from regard.views.figures.cost_curves import cost
from regard.views.figures.distance_bars import distance
from regard.views.figures.divergence_map import divergence
from regard.views.figures.effect_map import effects, eviction
from regard.views.figures.explanation_figures import attribution, importance, relevance
from regard.views.figures.figure_file import save
from regard.views.figures.head_grid import grid
from regard.views.figures.heat_map import heatmap
from regard.views.figures.mask_picture import mask
from regard.views.figures.monitor_curves import monitor
from regard.views.figures.picture_overlay import picture
from regard.views.figures.text_animation import animate
from regard.views.figures.token_lines import lines
from regard.views.figures.vector_geometry import geometry

__all__ = [
    "alignment",
    "animate",
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
    "monitor",
    "picture",
    "relevance",
    "save",
]
