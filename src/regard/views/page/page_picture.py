"""The picture of a recording inside a page: its pixels as a data address, its grid and its tokens."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

from PIL import Image

from regard.recording import Picture

LARGEST_PNG = 400_000
"""Bytes up to which pixels are kept exactly; a larger picture becomes a JPEG: it is only looked at."""


def described_picture(picture: Picture) -> dict[str, Any]:
    """What the header of a page says about a picture.

    >>> import numpy as np
    >>> found = described_picture(Picture(np.zeros((4, 6)), grid=(2, 3), tokens=slice(1, 7)))
    >>> found["grid"], found["tokens"][:2], found["source"][:22]
    ([2, 3], [1, 2], 'data:image/png;base64,')
    """
    height, width, _ = picture.image.shape
    image = Image.fromarray(picture.image.numpy())
    kind, content = "png", _written(image, "PNG", optimize=True)
    if len(content) > LARGEST_PNG:
        kind, content = "jpeg", _written(image, "JPEG", quality=88)
    return {
        "source": f"data:image/{kind};base64,{base64.b64encode(content).decode()}",
        "width": width,
        "height": height,
        "grid": list(picture.grid),
        "tokens": list(picture.tokens),
    }


def _written(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()
