"""A picture that a model read: which tokens are its patches, and where they are in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.checks import is_integer
from regard.errors import ArgumentError, DtypeError, ShapeError

PICTURE_ENCODERS = {
    "vit": ("[CLS]",),
    "deit": ("[CLS]", "[DISTILL]"),
    "dinov2": ("[CLS]",),
    "dinov2_with_registers": ("[CLS]",),
    "dinov3_vit": ("[CLS]",),
    "clip_vision_model": ("[CLS]",),
    "siglip_vision_model": (),
}
"""Image encoders, and the tokens in front of their patches; registers come after these."""

MOST_PIXELS = 4096 * 4096
"""Pixels of the largest picture that a recording keeps."""


@dataclass(frozen=True, eq=False, init=False)
class Picture:
    """A picture, the grid of its patches, and the positions of their tokens in the text, row by row.

    Args:
        image: an image of PIL, or numbers ``(height, width)``, ``(height, width, 3)`` or
            ``(3, height, width)``: integers 0 … 255 or fractions 0 … 1.
        grid: rows and columns of patches.
        tokens: the positions of the patches in the sequence, as a slice or a list. ``slice(1, 197)`` skips a
            class token.

    >>> picture = Picture(np.zeros((8, 12)), grid=(2, 3), tokens=slice(1, 7))
    >>> picture.tokens, picture.fold(torch.arange(7.0)).tolist()
    ((1, 2, 3, 4, 5, 6), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    """

    image: Tensor  # (height, width, 3), uint8
    grid: tuple[int, int]
    tokens: tuple[int, ...]

    def __init__(self, image: Any, *, grid: Sequence[int], tokens: slice | Sequence[int]) -> None:
        object.__setattr__(self, "image", _pixels(image))
        object.__setattr__(self, "grid", _checked_grid(grid))
        object.__setattr__(self, "tokens", _positions(tokens, self.grid))

    def __repr__(self) -> str:
        height, width, _ = self.image.shape
        rows, columns = self.grid
        return f"<Picture: {width} × {height} pixels, {rows} × {columns} patches>"

    @property
    def patches(self) -> int:
        """The number of patches."""
        return self.grid[0] * self.grid[1]

    def fold(self, values: Tensor) -> Tensor:
        """Values of tokens ``(..., key)`` as values of patches ``(..., row, column)``."""
        if values.shape[-1] <= max(self.tokens):
            raise ShapeError(
                "There must be a value for every token of the picture (the last is at {last}).",
                got="{count} values",
                do="Pass a whole row of weights.",
                last=max(self.tokens),
                count=values.shape[-1],
            )
        chosen = values[..., list(self.tokens)]
        return chosen.reshape(*chosen.shape[:-1], *self.grid)

    def patch_at(self, position: int) -> tuple[int, int] | None:
        """The row and column of the patch at a position of the text; None if it is not a patch.

        >>> Picture(np.zeros((4, 4)), grid=(2, 2), tokens=slice(1, 5)).patch_at(4)
        (1, 1)
        """
        if position not in self.tokens:
            return None
        return divmod(self.tokens.index(position), self.grid[1])


def rgb_image(image: Any) -> Any:
    """A picture in any form that :class:`Picture` takes, as an image of PIL in RGB."""
    from PIL import Image

    if isinstance(image, Image.Image):
        return image.convert("RGB")
    # Picture checks shape and range.
    return Image.fromarray(Picture(image, grid=(1, 1), tokens=slice(0, 1)).image.numpy())


def pixels_shown(pixels: Tensor, processor: Any) -> Tensor:
    """The pixels ``(3, height, width)`` before the processor normalized them, 0 … 1."""
    mean, deviation = (
        torch.tensor(getattr(processor, name, None) or [default] * 3)[:, None, None]
        for name, default in (("image_mean", 0.0), ("image_std", 1.0))
    )
    return (pixels.float() * deviation + mean).clamp(0, 1)


def _pixels(image: Any) -> Tensor:
    values = image if isinstance(image, Tensor) else torch.from_numpy(np.array(image))
    values = values.detach().cpu()
    if values.ndim == 3 and values.shape[0] in (1, 3) and values.shape[-1] not in (1, 3, 4):
        values = values.movedim(0, -1)
    if values.ndim == 3 and values.shape[-1] in (1, 4):
        values = values[..., :3]
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[-1] not in (1, 3) or 0 in values.shape:
        raise ShapeError(
            "A picture must have shape (height, width), (height, width, 3) or (3, height, width).",
            got="{shape}",
            do="Convert it to RGB.",
            shape=tuple(values.shape),
        )
    if values.shape[0] * values.shape[1] > MOST_PIXELS:
        raise ShapeError(
            "A picture of a recording must have at most {most:,} pixels.",
            got="{width} × {height}",
            do="Make it smaller.",
            most=MOST_PIXELS,
            width=values.shape[1],
            height=values.shape[0],
        )
    return _bytes(values).expand(*values.shape[:2], 3).contiguous()


def _bytes(values: Tensor) -> Tensor:
    if values.dtype is torch.uint8:
        return values
    if values.dtype is torch.bool:
        return values.to(torch.uint8) * 255
    if values.is_complex() or not bool(torch.isfinite(values.double()).all()):
        raise DtypeError(
            "The pixels of a picture must be finite numbers.", got="NaN or infinity", do="Check the picture."
        )
    least, most = float(values.min()), float(values.max())
    if values.is_floating_point() and least >= 0 and most <= 1:
        return (values.double() * 255).round().to(torch.uint8)
    if least < 0 or most > 255:
        raise ArgumentError(
            "The pixels of a picture must be integers 0 … 255 or fractions 0 … 1.",
            got="{least:.3g} … {most:.3g}",
            do="Undo the normalization of the model's processor first.",
            least=least,
            most=most,
        )
    return values.double().round().to(torch.uint8)


def _checked_grid(grid: Any) -> tuple[int, int]:
    try:
        rows, columns = grid
    except (TypeError, ValueError):
        rows = columns = None
    if not (is_integer(rows, 1) and is_integer(columns, 1)):
        raise ArgumentError(
            "grid must have the number of rows and of columns of patches.",
            got="grid = {grid!r}",
            do="Pass grid=(14, 14), say.",
            grid=grid,
        )
    return int(rows), int(columns)


def _positions(tokens: slice | Sequence[int], grid: tuple[int, int]) -> tuple[int, ...]:
    patches = grid[0] * grid[1]
    if isinstance(tokens, slice):
        start = 0 if tokens.start is None else int(tokens.start)
        stop = start + patches if tokens.stop is None else int(tokens.stop)
        found = tuple(range(start, stop, 1 if tokens.step is None else int(tokens.step)))
    else:
        found = tuple(int(one) for one in tokens)
    if len(found) != patches or len(set(found)) != patches or min(found, default=-1) < 0:
        raise ArgumentError(
            "tokens must have one position, 0 or more, for each patch ({rows} × {columns} = {patches}).",
            got="{count} positions",
            do="Leave out class tokens, registers and text.",
            rows=grid[0],
            columns=grid[1],
            patches=patches,
            count=len(set(found)),
        )
    return found
