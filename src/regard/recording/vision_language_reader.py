"""Read a picture and a text with a model of both (LLaVA, Qwen2-VL, SmolVLM, PaliGemma …), and record it.

The patches of the picture are tokens of the text: the processor writes an image token for each of them, or
for each group of merged patches. :func:`picture_in_text` finds them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.errors import ArgumentError, ModelFileError, RecordingError, TextError
from regard.recording.next_tokens import CHUNK, next_tokens_of
from regard.recording.picture import Picture, pixels_shown, rgb_image
from regard.recording.recording import Recording
from regard.recording.watcher import watch

IMAGE_TOKEN = ("image_token_id", "image_token_index")
"""What configurations call the token that is in the place of a patch."""

SPLITTING = ("do_image_splitting", "crop_to_patches", "do_pan_and_scan")
"""What processors call cutting a picture into tiles, which would be several grids."""

RESAMPLERS = ("perceiver_config", "qformer_config")
"""Parts that make a fixed number of tokens out of the picture; these have no place in it."""

PROMPT = "Describe the picture."
"""What is read with a picture by default."""


@dataclass(frozen=True, eq=False)
class VisionLanguageReader:
    """A vision-language model with its processor."""

    model: Any
    processor: Any
    name: str

    @property
    def language_model(self) -> Any:
        """The part that reads the text, and with it the patches; this part is recorded."""
        return self.model.get_decoder()

    @torch.no_grad()
    def read(
        self, image: Any, text: str | None = None, *, next_tokens: bool = False, **watching: Any
    ) -> Recording:
        """Record the language model while it reads a picture and a text.

        ``seen.picture`` is the picture as the model saw it, in one piece; its tokens are named by row and
        column. The part that encodes the picture is not recorded.

        Args:
            image: an image of PIL, or numbers as in :class:`regard.Picture`.
            text: what is asked about the picture, put into the model's chat template if it has one; a text
                that contains the image token is read unchanged. Omit it for a short request to describe
                the picture.
            next_tokens: keep the likeliest next tokens of each position: ``seen.next_tokens``.
            watching: options of :func:`regard.watch`.
        """
        picture = rgb_image(image)
        inputs = self.inputs(picture, text)
        found = picture_in_text(self.model.config, inputs, self._shown(picture, inputs))
        self._check_whole(found, inputs)
        with watch(self.language_model, **watching) as seen:
            logits = self.model(**inputs).logits[0]  # (position, vocabulary)
        ids = inputs["input_ids"][0]
        tokens = self._named(ids.tolist())
        for place, position in enumerate(found.tokens):
            row, column = divmod(place, found.grid[1])
            tokens[position] = f"{row},{column}"
        seen.tokens, seen.picture = tokens, found
        if next_tokens:
            chunks = logits.split(max(1, CHUNK // logits.shape[-1]))
            seen.next_tokens = next_tokens_of(chunks, ids, self._named)
        return seen

    def inputs(self, image: Any, text: str | None = None) -> dict[str, Any]:
        """What the model reads for a picture and a text: ``model(**reader.inputs(image, text))``."""
        if text is not None and not text.strip():
            raise TextError(
                "A text must have at least one word.",
                got="{name} = {given!r}",
                do='Pass "I love AI", say.',
                name="text",
                given=text,
            )
        prompt = self._prompt(PROMPT if text is None else text)
        start = self.processor.tokenizer.bos_token
        # Templates may write the first token themselves.
        special = {"add_special_tokens": False} if start and prompt.startswith(start) else {}
        splitter = self.processor.image_processor
        whole = {name: False for name in SPLITTING if getattr(splitter, name, False)}
        try:
            made = self.processor(
                images=rgb_image(image), text=prompt, return_tensors="pt", **special, **whole
            )
        except ValueError as error:
            raise ArgumentError(
                "The processor of {name} must accept the picture and the text.",
                got="{reason}",
                do="Try another text, or a picture of an ordinary shape.",
                name=self.name,
                reason=str(error).split("\n")[0],
            ) from error
        found = {name: value for name, value in made.items() if name != "labels"}
        found["pixel_values"] = found["pixel_values"].to(self.model.dtype)
        return found

    def _prompt(self, text: str) -> str:
        """The text with the image token, in the chat template if there is one."""
        token = self._named([_image_token(self.model.config)])[0]
        # Where the processor has its own sign for a picture, it replaces it by image tokens.
        own = getattr(self.processor, "boi_token", None) or getattr(self.processor, "image_token", None)
        sign = str(own or token)
        if text.count(sign) > 1:
            raise ArgumentError(
                "A text must have the image token once, or not at all.",
                got="{count} times {sign}",
                do="Omit it to have it put in front of the text.",
                count=text.count(sign),
                sign=sign,
            )
        if sign in text:
            return text
        if getattr(self.processor, "chat_template", None):
            content = [{"type": "image"}, {"type": "text", "text": text}]
            said = [{"role": "user", "content": content}]
            return str(self.processor.apply_chat_template(said, add_generation_prompt=True, tokenize=False))
        return f"{sign}{text}"

    def _shown(self, image: Any, inputs: Mapping[str, Any]) -> Any:
        """The picture as the model saw it, resized and cut."""
        pixels = inputs["pixel_values"]
        if "image_grid_thw" in inputs:  # the pixels are a list of patches of a picture that was only resized
            _, tall, wide = inputs["image_grid_thw"][0].tolist()
            size = self.processor.image_processor.patch_size
            return image.resize((wide * size, tall * size))
        tiles = pixels.reshape(-1, *pixels.shape[-3:])
        if len(tiles) != 1:
            raise RecordingError(
                "A picture must be read in one piece, so that its patches make one grid.",
                got="{count} tiles from the processor of {name}",
                do="Record it with regard.watch, and pass regard.Picture(image, grid=…, tokens=…).",
                count=len(tiles),
                name=self.name,
            )
        return pixels_shown(tiles[0], self.processor.image_processor)

    def _check_whole(self, picture: Picture, inputs: Mapping[str, Any]) -> None:
        """Raise if there are other image tokens than those of the grid, or if they are no grid."""
        count = int((inputs["input_ids"][0] == _image_token(self.model.config)).sum())
        if picture.patches == 1 or picture.patches != count:
            raise RecordingError(
                "The image tokens must be the patches of one picture, row by row.",
                got="{count} image tokens, a grid of {rows} × {columns}",
                do="Record it with regard.watch, and pass regard.Picture(image, grid=…, tokens=…).",
                count=count,
                rows=picture.grid[0],
                columns=picture.grid[1],
            )

    def _named(self, ids: Sequence[int]) -> list[str]:
        return [str(token) for token in self.processor.tokenizer.convert_ids_to_tokens(list(ids))]


def vision_language_types(transformers: Any) -> Collection[str]:
    """What transformers calls the models that write about pictures and text."""
    known: Collection[str] = transformers.models.auto.modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    return known


def load_vision_language_reader(
    transformers: Any,
    config: Any,
    source: Path | str,
    *,
    name: str,
    dtype: torch.dtype,
    encoders: Sequence[str],
) -> VisionLanguageReader:
    """The vision-language model with a configuration; ``encoders`` are what else could be read."""
    if config.model_type not in vision_language_types(transformers):
        raise ModelFileError(
            "load_picture_reader needs an image encoder ({known}), or a vision-language model.",
            got="{name!r}, which is a {type}",
            do="Use load_reader for text.",
            known=", ".join(encoders),
            name=name,
            type=config.model_type,
        )
    resampled = any(getattr(config, part, None) is not None for part in RESAMPLERS)
    if _image_tokens(config) == [] or resampled or config.is_encoder_decoder:
        raise ModelFileError(
            "In a vision-language model, the patches must be tokens of the decoder's text.",
            got="{name!r}, which is a {type}",
            do="Choose a model such as LLaVA, Qwen2-VL, SmolVLM or PaliGemma.",
            name=name,
            type=config.model_type,
        )
    model = transformers.AutoModelForImageTextToText.from_pretrained(source, dtype=dtype)
    try:
        processor = transformers.AutoProcessor.from_pretrained(source)
    except AttributeError as error:
        # What transformers says of a video processor, without the package that it needs.
        raise ImportError("its processor needs the package torchvision") from error
    if not (hasattr(processor, "image_processor") and hasattr(processor, "tokenizer")):
        # Without its file, transformers finds a tokenizer or an image processor alone.
        raise ValueError("no processor of both pictures and text")
    return VisionLanguageReader(model.eval(), processor, name)


def _image_tokens(config: Any) -> list[int]:
    return [getattr(config, name) for name in IMAGE_TOKEN if getattr(config, name, None) is not None]


def _image_token(config: Any) -> int:
    """The token that is in the place of a patch."""
    marks = _image_tokens(config)
    if not marks:
        raise RecordingError(
            "The configuration of a vision-language model must name its image token.",
            got="{type}",
            do="Pass regard.Picture(image, grid=…, tokens=…) yourself.",
            type=type(config).__name__,
        )
    return marks[0]


def picture_in_text(
    config: Any, inputs: Mapping[str, Any], image: Any, *, number: int = 0, batch: int = 0
) -> Picture:
    """Where a picture is in the text of a vision-language model (LLaVA, Qwen2-VL, SmolVLM, PaliGemma …).

    ``config`` is the model's, ``inputs`` what its processor made. Each patch, or group of merged patches, has
    one image token in ``input_ids``. The grid is that of ``image_grid_thw`` where the processor says it,
    otherwise that of the pixels' shape. ``number`` counts the pictures of the text.

    >>> from types import SimpleNamespace
    >>> ids = torch.tensor([[1, 9, 9, 9, 9, 5]])
    >>> found = picture_in_text(SimpleNamespace(image_token_id=9), {"input_ids": ids}, np.zeros((8, 8)))
    >>> found.grid, found.tokens
    ((2, 2), (1, 2, 3, 4))
    """
    places = np.flatnonzero((inputs["input_ids"][batch] == _image_token(config)).numpy())
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
    # Pictures are runs of image tokens, of square patches.
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if places.size else []
    pixels = inputs.get("pixel_values")
    height, width = (1, 1) if pixels is None or pixels.ndim < 4 else pixels.shape[-2:]
    grids = []
    for run in runs:
        rows = max(1, round((len(run) * height / width) ** 0.5))
        columns = len(run) // rows
        if rows * columns != len(run) or rows * width != columns * height:
            raise RecordingError(
                "Without image_grid_thw, a picture must have a token for each square patch.",
                got="{count} tokens",
                do="Pass regard.Picture(image, grid=…, tokens=…) yourself.",
                count=len(run),
            )
        grids.append((rows, columns))
    return grids
