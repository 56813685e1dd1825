"""Models of the server that read pictures, alone or with a question; a picture arrives as base 64 text."""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

from regard.app.server.api_types import ReadingRequest
from regard.app.server.jobs import ProgressReporter
from regard.app.server.limits import Limits
from regard.app.server.model_label import architecture
from regard.app.server.model_progress import heard, held
from regard.app.server.token_count import TokenCount, check_tokens
from regard.errors import ArgumentError, reason

if TYPE_CHECKING:
    from PIL import Image

    from regard.recording import PictureReader, Recording, VisionLanguageReader

FORMATS = ("PNG", "JPEG", "WEBP")
"""What is decoded; browsers write all three."""

MOST_PIXELS = 4096 * 4096
"""Pixels of the largest picture that is decoded: a small file can hold a huge one."""


@dataclass
class PictureModel:
    """An image encoder, or a vision-language model, which reads a picture with a question."""

    id: str
    label: str
    reader: PictureReader | VisionLanguageReader
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def asked(self) -> bool:
        """Whether it reads a question with the picture."""
        from regard.recording import VisionLanguageReader

        return isinstance(self.reader, VisionLanguageReader)

    @property
    def longest(self) -> int:
        """A picture is resized, so every picture fits."""
        return 1

    def count(self, text: str, most: int) -> TokenCount:
        """Nothing: a picture has no text to count."""
        del most
        return TokenCount(0, len(text))

    def described(self) -> dict[str, Any]:
        """Its description for the browser."""
        return {
            "id": self.id,
            "label": self.label,
            **architecture(self.reader.model),
            "kind": "picture",
            "longest": None,
            "pair": self.asked,
            "examples": [],
        }

    def read(self, request: ReadingRequest, limits: Limits, report: ProgressReporter) -> Recording:
        """The recording of a picture; ``pair`` is the question."""
        from regard.recording import VisionLanguageReader

        self._check(request, limits)
        image = decoded_picture(request.picture or "")
        with held(self._lock, report), heard(self.reader.model, report):
            if isinstance(self.reader, VisionLanguageReader):
                return self.reader.read(image, request.pair, values=True, next_tokens=True)
            return self.reader.read(image, values=True)

    def _check(self, request: ReadingRequest, limits: Limits) -> None:
        """Raise if this model cannot read what was sent."""
        if not self.asked and (request.picture is None or request.pair is not None or request.generate):
            raise ArgumentError(
                "This model reads a picture, without a text.",
                got="no picture" if request.picture is None else "a picture with a text",
                do="Send picture, and omit pair and generate.",
            )
        if request.picture is None or request.generate:
            raise ArgumentError(
                "This model reads a picture and a question, and writes nothing.",
                got="no picture" if request.picture is None else "generate = {generate}",
                do="Send picture, the question as pair, and omit generate.",
                generate=request.generate,
            )
        if request.pair is not None:
            check_tokens(len(self.reader.processor.tokenizer(request.pair)["input_ids"]), limits)


def decoded_picture(text: str) -> Image.Image:
    """The picture that base 64 holds, in RGB.

    >>> from PIL import Image
    >>> file = BytesIO()
    >>> Image.new("L", (3, 2)).save(file, "PNG")
    >>> decoded_picture(base64.b64encode(file.getvalue()).decode()).size
    (3, 2)
    """
    from PIL import Image, UnidentifiedImageError

    try:
        content = base64.b64decode(text, validate=True)
        with Image.open(BytesIO(content), formats=FORMATS) as opened:
            width, height = opened.size
            if width * height <= MOST_PIXELS:
                image: Image.Image = opened.convert("RGB")
                return image
    except (ValueError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ArgumentError(
            "picture must be a PNG, JPEG or WebP file in base 64.",
            got="{reason}",
            do="Save the picture again as PNG.",
            reason=type(error).__name__ if isinstance(error, UnidentifiedImageError) else reason(error),
        ) from error
    raise ArgumentError(
        "A picture can have at most {most:,} pixels.",
        got="{width} × {height}",
        do="Make it smaller.",
        most=MOST_PIXELS,
        width=width,
        height=height,
    )


def check_no_picture(request: ReadingRequest) -> None:
    """Raise if a model of texts is given a picture."""
    if request.picture is not None:
        raise ArgumentError(
            "This model reads text.",
            got="a picture",
            do="Choose an image encoder, or start the server with one: --model FOLDER.",
        )
