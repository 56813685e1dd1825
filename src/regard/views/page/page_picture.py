"""The picture of a recording inside a page: its pixels as a data address, its grid and its tokens."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from PIL import Image

from regard.errors import RegardError
from regard.heads import rollout
from regard.recording import Call, Picture, Recording
from regard.views.page.array_packing import ArrayStore
from regard.views.page.quantisation import quantise

LARGEST_PNG = 400_000
"""Bytes up to which pixels are kept exactly; a larger picture becomes a JPEG: it is only looked at."""


MOST_POSITIONS = 800
"""Positions up to which a page with a picture carries the rollout of each: 2 bytes per pair of positions."""


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


def described_rollout(
    recording: Recording, calls: Sequence[Call], batch: int, arrays: ArrayStore
) -> list[dict[str, Any]]:
    """The rollout of every run: what each position is made of after all layers, ``(row, token)``.

    Nothing if the page has only some layers, or if texts are long or there are two of them.
    """
    if len(calls) < len(recording.calls) or max(call.keys for call in calls) > MOST_POSITIONS:
        return []
    found = []
    for run in sorted({call.run for call in calls}):
        try:
            flow = rollout(recording, batch, run=run)
        except RegardError:
            return []  # nobody asked for it, and not every recording has one text that its layers follow
        if flow.source is None:
            shares = flow.own.float().cpu().numpy()
            found.append({"run": run, "shares": arrays.put_rows(quantise(shares[None], 16))})
    return found


def _written(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()
