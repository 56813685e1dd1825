"""Read a picture with a model of transformers, and record it with the grid of its patches.

Encoders of pictures (ViT, DeiT, DINOv2 with and without registers, DINOv3, CLIP, SigLIP) are read by
:class:`PictureReader`. In models of pictures and text, the patches are tokens of the text;
:func:`picture_in_text` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ArgumentError, ModelFileError, RecordingError
from regard.recording.model_loading import loading_model, model_source, quiet_transformers
from regard.recording.picture import PICTURE_ENCODERS, Picture
from regard.recording.recording import Recording
from regard.recording.watcher import watch

IMAGE_TOKEN = ("image_token_id", "image_token_index")
"""What configurations call the token that is in the place of a patch."""


def vision_config(config: Any) -> Any | None:
    """The configuration of the part that encodes pictures; None if it has none."""
    if config.model_type in PICTURE_ENCODERS:
        return config
    inner = getattr(config, "vision_config", None)
    return inner if config.model_type in ("clip", "siglip") and inner is not None else None


@dataclass(frozen=True, eq=False)
class PictureReader:
    """An encoder of pictures with its processor."""

    model: Any
    processor: Any
    name: str

    @property
    def encoder(self) -> Any:
        """The part of the model that encodes pictures."""
        return getattr(self.model, "vision_model", self.model)

    @torch.no_grad()
    def read(self, image: Any, **watching: Any) -> Recording:
        """Record the model while it reads a picture; ``watching`` are options of :func:`regard.watch`.

        ``seen.picture`` is the picture as the model saw it, resized and cut, so that patches fit.
        """
        pixels = self.processor(_rgb(image), return_tensors="pt")["pixel_values"].to(self.model.dtype)
        with watch(self.encoder, **watching) as seen:
            self.encoder(pixel_values=pixels)
        grid, first = patch_grid(self.encoder.config, pixels)
        prefix = _prefix(self.encoder.config)
        seen.tokens = [*prefix, *(f"{row},{column}" for row in range(grid[0]) for column in range(grid[1]))]
        seen.picture = Picture(self._shown(pixels[0]), grid=grid, tokens=slice(first, None))
        return seen

    def _shown(self, pixels: Tensor) -> Tensor:
        """The pixels before they were normalized, ``(3, height, width)``."""
        mean, deviation = (
            torch.tensor(getattr(self.processor, name, None) or [default] * 3)[:, None, None]
            for name, default in (("image_mean", 0.0), ("image_std", 1.0))
        )
        return (pixels.float() * deviation + mean).clamp(0, 1)


def patch_grid(config: Any, pixels: Tensor) -> tuple[tuple[int, int], int]:
    """Rows and columns of patches of ``pixels (..., height, width)``, and the position of the first."""
    size = config.patch_size
    tall, wide = (size, size) if isinstance(size, int) else size
    return (pixels.shape[-2] // tall, pixels.shape[-1] // wide), len(_prefix(config))


def _prefix(config: Any) -> list[str]:
    registers = int(getattr(config, "num_register_tokens", 0) or 0)
    return [*PICTURE_ENCODERS[config.model_type], *(f"[REG{number}]" for number in range(1, registers + 1))]


def _rgb(image: Any) -> Any:
    from PIL import Image

    if isinstance(image, Image.Image):
        return image.convert("RGB")
    # Picture checks shape and range.
    return Image.fromarray(Picture(image, grid=(1, 1), tokens=slice(0, 1)).image.numpy())


def reads_pictures(name: str | Path) -> bool:
    """Whether the model in a folder, or of that name on the hub, encodes pictures; False if unknown."""
    with quiet_transformers() as transformers:
        try:
            return vision_config(transformers.AutoConfig.from_pretrained(model_source(name))) is not None
        except (OSError, ValueError, KeyError, ModelFileError):
            return False


def load_picture_reader(name: str | Path, *, dtype: torch.dtype = torch.float32) -> PictureReader:
    """The encoder of pictures in a folder, or of that name on the hub, with its processor."""
    with loading_model(
        name,
        must="An encoder of pictures needs a folder: config.json, weights, preprocessor_config.json.",
        do="Save the processor beside the model: processor.save_pretrained(folder).",
    ) as (transformers, source):
        config = transformers.AutoConfig.from_pretrained(source)
        if vision_config(config) is None:
            raise ModelFileError(
                "load_picture_reader needs an encoder of pictures ({known}).",
                got="{name!r}, which is a {type}",
                do="Use load_reader for text; in a model of both, picture_in_text finds the patches.",
                known=", ".join((*PICTURE_ENCODERS, "clip", "siglip")),
                name=str(name),
                type=config.model_type,
            )
        model = transformers.AutoModel.from_pretrained(source, dtype=dtype)
        processor = transformers.AutoImageProcessor.from_pretrained(source)
    return PictureReader(model.eval(), processor, str(name))


# ---- pictures in a text ------------------------------------------------------------------------


def picture_in_text(
    config: Any, inputs: Mapping[str, Any], image: Any, *, number: int = 0, batch: int = 0
) -> Picture:
    """Where a picture is in the text of a model of pictures and text (LLaVA, Qwen2-VL, SmolVLM, PaliGemma …).

    ``config`` is the model's, ``inputs`` what its processor made. Each patch, or group of merged patches, has
    one image token in ``input_ids``. The grid is that of ``image_grid_thw`` where the processor says it,
    otherwise a square. ``number`` counts the pictures of the text.

    >>> from types import SimpleNamespace
    >>> ids = torch.tensor([[1, 9, 9, 9, 9, 5]])
    >>> found = picture_in_text(SimpleNamespace(image_token_id=9), {"input_ids": ids}, np.zeros((8, 8)))
    >>> found.grid, found.tokens
    ((2, 2), (1, 2, 3, 4))
    """
    marks = [getattr(config, name) for name in IMAGE_TOKEN if getattr(config, name, None) is not None]
    if not marks:
        raise RecordingError(
            "The configuration of a model of pictures and text must name its image token.",
            got="{type}",
            do="Pass regard.Picture(image, grid=…, tokens=…) yourself.",
            type=type(config).__name__,
        )
    places = np.flatnonzero((inputs["input_ids"][batch] == marks[0]).numpy())
    grids = _grids(config, inputs, places)
    if not 0 <= number < len(grids):
        raise ArgumentError(
            "number must be one of the pictures of the text ({count} of them).",
            got="number = {number}",
            do="Count from 0.",
            count=len(grids),
            number=number,
        )
    first = sum(rows * columns for rows, columns in grids[:number])
    rows, columns = grids[number]
    return Picture(image, grid=grids[number], tokens=places[first : first + rows * columns].tolist())


def _grids(config: Any, inputs: Mapping[str, Any], places: Any) -> list[tuple[int, int]]:
    """Rows and columns of each picture of the text, in order."""
    if "image_grid_thw" in inputs:
        merge = int(getattr(getattr(config, "vision_config", config), "spatial_merge_size", 1))
        return [(int(tall) // merge, int(wide) // merge) for _, tall, wide in inputs["image_grid_thw"]]
    # Pictures are runs of image tokens.
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if places.size else []
    sides = [round(len(run) ** 0.5) for run in runs]
    uneven = next((len(run) for run, side in zip(runs, sides) if side * side != len(run)), None)
    if uneven is not None:
        raise RecordingError(
            "Without image_grid_thw, a picture must have a square number of tokens.",
            got="{count} tokens",
            do="Pass regard.Picture(image, grid=…, tokens=…) yourself.",
            count=uneven,
        )
    return [(side, side) for side in sides]
