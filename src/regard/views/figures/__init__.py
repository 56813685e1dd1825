"""Figures of attention, as matplotlib figures for PNG, SVG and PDF.

>>> from regard import figures
>>> figure = figures.heatmap([[0.7, 0.3], [0.4, 0.6]], queries=["I", "am"])
>>> type(figure).__mro__[1].__name__
'Figure'

Every function returns its figure. None opens a window, and nothing of matplotlib's settings changes.
"""

from regard.views.figures.arrows import geometry
from regard.views.figures.barcharts import bars
from regard.views.figures.costs import cost
from regard.views.figures.differences import divergence
from regard.views.figures.distances import distance
from regard.views.figures.grids import grid
from regard.views.figures.heatmaps import heatmap
from regard.views.figures.maskmaps import mask
from regard.views.figures.saving import save
from regard.views.figures.strands import lines

__all__ = ["bars", "cost", "distance", "divergence", "geometry", "grid", "heatmap", "lines", "mask", "save"]
