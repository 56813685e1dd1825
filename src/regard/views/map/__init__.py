"""The map: the weights of one head over a whole text, as tiles at every distance.

>>> import torch, regard
>>> model = torch.nn.MultiheadAttention(8, 2)
>>> with regard.watch(model) as seen:
...     _ = model(*[torch.randn(300, 8)] * 3)
>>> matrix = HeadMatrix(seen[0], head=1)
>>> matrix.coarsest  # one tile of 256 × 256 holds the whole at this level
1
>>> tile(matrix, level=1, row=0, column=0).shape
(150, 150)
"""

from regard.views.map.byte_cache import ByteCache
from regard.views.map.head_matrix import HIDING, TILE, HeadMatrix, hidden_keys
from regard.views.map.levels import Levels, build
from regard.views.map.map_tile import KINDS, Peak, line_of, peak, strongest_key, tile
from regard.views.map.tile_encoding import TYPES, encoded

__all__ = [
    "HIDING",
    "KINDS",
    "TILE",
    "TYPES",
    "ByteCache",
    "HeadMatrix",
    "Levels",
    "Peak",
    "build",
    "encoded",
    "hidden_keys",
    "line_of",
    "peak",
    "strongest_key",
    "tile",
]
