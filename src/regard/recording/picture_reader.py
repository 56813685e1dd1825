"""Read a picture with a transformers model, and record it with the grid of its patches.

Image encoders (ViT, DeiT, DINOv2 with and without registers, DINOv3, CLIP, SigLIP) are read by
:class:`PictureReader`, vision-language models by :class:`VisionLanguageReader`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import ModelFileError
from regard.recording.model_loading import loading_model, model_source, quiet_transformers
from regard.recording.picture import PICTURE_ENCODERS, Picture, pixels_shown, rgb_image
from regard.recording.recording import Recording
from regard.recording.vision_language_reader import (
    VisionLanguageReader,
    load_vision_language_reader,
    vision_language_types,
)
from regard.recording.watcher import watch


def vision_config(config: Any) -> Any | None:
    """The configuration of the part that encodes pictures; None if it has none."""
    if config.model_type in PICTURE_ENCODERS:
        return config
    inner = getattr(config, "vision_config", None)
    return inner if config.model_type in ("clip", "siglip") and inner is not None else None


@dataclass(frozen=True, eq=False)
class PictureReader:
    """An image encoder with its processor."""

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
        pixels = self.processor(rgb_image(image), return_tensors="pt")["pixel_values"].to(self.model.dtype)
        with watch(self.encoder, **watching) as seen:
            self.encoder(pixel_values=pixels)
        grid, first = patch_grid(self.encoder.config, pixels)
        prefix = _prefix(self.encoder.config)
        seen.tokens = [*prefix, *(f"{row},{column}" for row in range(grid[0]) for column in range(grid[1]))]
        seen.picture = Picture(pixels_shown(pixels[0], self.processor), grid=grid, tokens=slice(first, None))
        return seen


def patch_grid(config: Any, pixels: Tensor) -> tuple[tuple[int, int], int]:
    """Rows and columns of patches of ``pixels (..., height, width)``, and the position of the first."""
    size = config.patch_size
    tall, wide = (size, size) if isinstance(size, int) else size
    return (pixels.shape[-2] // tall, pixels.shape[-1] // wide), len(_prefix(config))


def _prefix(config: Any) -> list[str]:
    registers = int(getattr(config, "num_register_tokens", 0) or 0)
    return [*PICTURE_ENCODERS[config.model_type], *(f"[REG{number}]" for number in range(1, registers + 1))]


def reads_pictures(name: str | Path) -> bool:
    """Whether the model in a folder, or of that name on the hub, encodes pictures; False if unknown."""
    with quiet_transformers() as transformers:
        try:
            return vision_config(transformers.AutoConfig.from_pretrained(model_source(name))) is not None
        except (OSError, ValueError, KeyError, ModelFileError):
            return False


def reads_pictures_and_text(name: str | Path) -> bool:
    """Whether a model, as in :func:`reads_pictures`, is one of pictures and text; False if unknown."""
    with quiet_transformers() as transformers:
        try:
            config = transformers.AutoConfig.from_pretrained(model_source(name))
        except (OSError, ValueError, KeyError, ModelFileError):
            return False
        return config.model_type in vision_language_types(transformers)


def load_picture_reader(
    name: str | Path, *, dtype: torch.dtype = torch.float32
) -> PictureReader | VisionLanguageReader:
    """The image model in a folder, or of that name on the hub, with its processor.

    An image encoder is a :class:`PictureReader`, a vision-language model a
    :class:`VisionLanguageReader`.
    """
    with loading_model(
        name,
        must="An image model needs a folder: config.json, weights, preprocessor_config.json.",
        do="Save the processor beside the model: processor.save_pretrained(folder).",
    ) as (transformers, source):
        config = transformers.AutoConfig.from_pretrained(source)
        if vision_config(config) is None:
            return load_vision_language_reader(
                transformers,
                config,
                source,
                name=str(name),
                dtype=dtype,
                encoders=(*PICTURE_ENCODERS, "clip", "siglip"),
            )
        model = transformers.AutoModel.from_pretrained(source, dtype=dtype)
        processor = transformers.AutoImageProcessor.from_pretrained(source)
    return PictureReader(model.eval(), processor, str(name))
