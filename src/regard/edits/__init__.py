"""Changes to the attention of a running model: values that print, compare and combine with ``+``.

>>> from regard import edits, masks
>>> edits.block(masks.span(5, 9), layers=range(10, 20)) + edits.remove(layers=3, heads=[1, 4])
block(span(5, 9), layers=range(10, 20)) + remove(layers=[3], heads=[1, 4])

``regard.edit(model, edit)`` applies them while a block runs.
"""

from regard.edits.edit import Edit, each
from regard.edits.mask_edits import block, only
from regard.edits.output_edits import remove, scale

__all__ = [
    "Edit",
    "block",
    "each",
    "only",
    "remove",
    "scale",
]
