"""Changes to the attention of a running model: values that print, compare and combine with ``+``.

>>> from regard import edits, masks
>>> edits.block(masks.span(5, 9), layers=range(10, 20)) + edits.remove(layers=3, heads=[1, 4])
block(span(5, 9), layers=range(10, 20)) + remove(layers=[3], heads=[1, 4])

``regard.edit(model, edit)`` applies them while a block runs; ``edits.parse`` reads them from a text.
"""

from regard.edits.edit import Edit, each
from regard.edits.edit_text import parse
from regard.edits.mask_edits import block, only
from regard.edits.mean_outputs import MeanOutputs
from regard.edits.output_edits import average, remove, scale
from regard.edits.recording_edits import output, pattern
from regard.edits.score_edits import temperature, uniform

__all__ = [
    "Edit",
    "MeanOutputs",
    "average",
    "block",
    "each",
    "only",
    "output",
    "parse",
    "pattern",
    "remove",
    "scale",
    "temperature",
    "uniform",
]
