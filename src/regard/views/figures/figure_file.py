"""``save``: a figure as a file, PNG, SVG or PDF by its name."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from regard import atomic
from regard.errors import ArgumentError
from regard.views.figures.style import house_style
from regard.views.html import visible_text

# Without a date, the same figure is the same file.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "regard"},
    ".svg": {"Date": None, "Creator": "regard"},
    ".pdf": {"CreationDate": None, "Creator": "regard", "Producer": "regard"},
}

_ALT = {".png": "Description", ".svg": "Title", ".pdf": "Subject"}
"""Where a file describes in words what it shows; screen readers read the title of an SVG."""


def save(figure: Figure, path: str | Path) -> Path:
    """Write the figure in the format that the file name ends with. Tokens in an SVG stay text.

    An existing file is replaced once the new one is complete, and missing folders are created.

    >>> save(Figure(), "attention.gif")
    Traceback (most recent call last):
    regard.errors.ArgumentError: A figure must be saved as .png, .svg or .pdf. Got attention.gif. Choose one.
    """
    path = Path(path)
    if path.suffix.lower() not in _METADATA:
        raise ArgumentError(
            "A figure must be saved as .png, .svg or .pdf.", got="{name}", do="Choose one.", name=path.name
        )
    suffix = path.suffix.lower()
    # Drawn in memory: on a full disk, matplotlib's own errors would hide that of the system.
    drawn = BytesIO()
    alt = visible_text(getattr(figure, "alt", ""))
    described = {_ALT[suffix]: alt} if alt else {}
    with house_style():
        figure.savefig(drawn, format=suffix[1:], metadata={**_METADATA[suffix], **described})
    atomic.write_bytes(path, drawn.getvalue())
    return path
