"""One recording, one file: safetensors with a JSON description; nothing in it can be executed.

The file is written under another name and renamed when it is complete. Its header has a digest of
everything, so that a file that was cut off or changed is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from msgspec import json
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard import atomic
from regard.errors import RecordingError, RecordingFileError, RegardError
from regard.recording.call_format import TensorStore, call_from, call_to
from regard.recording.call_validation import check_call
from regard.recording.next_tokens import NextTokens
from regard.recording.picture import Picture
from regard.recording.recording_schema import (
    NextTokensDescription,
    PictureDescription,
    RecordingDescription,
)
from regard.version import __version__

if TYPE_CHECKING:
    from regard.recording.recording import Recording

FORMAT = "regard recording 1"

PIXELS = "picture"
"""The tensor of pixels, the only one that holds bytes."""

NEXT_TENSORS = ("best", "probabilities", "own")
"""The tensors of the next tokens."""


def save(recording: Recording, path: Path) -> None:
    """Write the recording; an existing file is replaced at the very end, or not at all.

    A recording with NaN or infinity, from a model that overflowed, is refused, because nothing computed from
    it would mean anything. So is one with an empty axis.
    """
    if not recording.closed:
        raise RecordingError(
            "A recording must be closed before it is saved.",
            got="a running watch",
            do="Save after the with block.",
        )
    store = TensorStore()
    text = _described(recording, store)
    header = {"format": FORMAT, "description": text, "digest": _digest(text, store.tensors)}
    with atomic.replaced(path) as part:
        try:
            save_file(store.tensors, part, metadata=header)
        except SafetensorError as error:
            raise _system_error(error) from error


def _described(recording: Recording, store: TensorStore) -> str:
    try:
        for number, call in enumerate(recording.calls):
            check_call(call, number)
        description = RecordingDescription(
            regard=__version__,
            model=recording.model,
            tokens=recording.tokens,
            source_tokens=recording.source_tokens,
            calls=[call_to(call, store) for call in recording.calls],
            next_tokens=_next_tokens_to(recording.next_tokens, store),
            picture=_picture_to(recording.picture, store),
        )
        text = json.encode(description).decode()
        json.decode(text, type=RecordingDescription)
    except RegardError as error:
        raise RecordingError(
            "{error}",
            do="Find out where the model gives it (half precision overflows), or record other layers: "
            "watch(model, layers=[…]).",
            error=error,
        ) from error
    except (ValueError, TypeError) as error:
        raise RecordingError(
            "To be saved, names and tokens must be Unicode text, and numbers must be finite.",
            got="{problem}",
            do="Change seen.tokens or seen.model.",
            problem=_brief(error),
        ) from error
    return text


def _system_error(error: SafetensorError) -> OSError:
    """The error of the system that safetensors reports in its own words: ``… (os error 28)``."""
    code = re.search(r"(?:os error |code: )(\d+)", str(error))
    return OSError(int(code[1]), os.strerror(int(code[1]))) if code else OSError(None, str(error))


def load(path: str | Path) -> Recording:
    """The recording that ``seen.save(path)`` wrote.

    >>> import torch, regard
    >>> model = torch.nn.MultiheadAttention(8, 2)
    >>> with regard.watch(model) as seen:
    ...     _ = model(*[torch.randn(3, 8)] * 3)
    >>> file = getfixture("tmp_path") / "seen.safetensors"
    >>> seen.save(file)
    >>> regard.load(file)
    <Recording of MultiheadAttention: 1 call>
    """
    path = Path(path)
    if not path.is_file():
        raise RecordingFileError(
            "load(path) needs the path of a file.",
            got="{path}",
            do="Write one with seen.save(path).",
            path=path,
        )
    try:
        return _loaded(path)
    except RecordingFileError as error:
        raise error.but(
            got="{given} in {path}",
            do="Record it again.",
            given=error.given,
            path=path,
        ) from error
    except _FLAWS as error:
        raise RecordingFileError(
            "A recording must describe its calls.",
            got="{problem} in {path}",
            do="Record it again.",
            problem=_brief(error),
            path=path,
        ) from error


_FLAWS = (RegardError, ValueError, TypeError, ArithmeticError, RecursionError)
"""What masks, biases and the schema raise for a description that makes no sense."""


def _loaded(path: Path) -> Recording:
    from regard.recording.recording import Recording

    header, tensors = _read(path)
    text = header.get("description", "")
    if header.get("format") != FORMAT:
        raise RecordingFileError(
            "The header of a recording must name its format ({wanted!r}).",
            got="{format}",
            wanted=FORMAT,
            format=repr(header.get("format"))[:60],
        )
    if header.get("digest") != _digest(text, tensors):
        raise RecordingFileError("The contents of a recording must match its digest.", got="changed contents")
    described = json.decode(text, type=RecordingDescription)
    store = TensorStore(tensors)
    calls = [call_from(call, store, number) for number, call in enumerate(described.calls)]
    found = Recording(described.model, calls)
    found.tokens, found.source_tokens = described.tokens, described.source_tokens
    found.next_tokens = _next_tokens_from(described.next_tokens, store)
    found.picture = _picture_from(described.picture, store)
    return found


def _next_tokens_to(given: NextTokens | None, store: TensorStore) -> NextTokensDescription | None:
    if given is None:
        return None
    names = {name: store.put(f"next.{name}", getattr(given, name)) for name in NEXT_TENSORS}
    return NextTokensDescription(words=list(given.words), generated=given.generated, **names)


def _next_tokens_from(given: NextTokensDescription | None, store: TensorStore) -> NextTokens | None:
    if given is None:
        return None
    tensors = {name: store.get(getattr(given, name)) for name in NEXT_TENSORS}
    return NextTokens(words=tuple(given.words), generated=given.generated, **tensors)


def _picture_to(given: Picture | None, store: TensorStore) -> PictureDescription | None:
    if given is None:
        return None
    return PictureDescription(store.put(PIXELS, given.image), given.grid, list(given.tokens))


def _picture_from(given: PictureDescription | None, store: TensorStore) -> Picture | None:
    if given is None:
        return None
    return Picture(store.get(given.pixels), grid=given.grid, tokens=given.tokens)


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            for name in names:
                _check_kind(name, file.get_slice(name).get_dtype())
            # Copies: mapped memory ends with the file, and its alignment can change how products round.
            return dict(file.metadata() or {}), {name: file.get_tensor(name).clone() for name in names}
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        if isinstance(error, RecordingFileError):
            raise
        raise RecordingFileError(
            "A recording must be a complete safetensors file.", got="{problem}", problem=_brief(error)
        ) from error


def _check_kind(name: str, kind: str) -> None:
    if kind not in ("BOOL", "I64", "F16", "BF16", "F32", "F64") and (name, kind) != (PIXELS, "U8"):
        raise RecordingFileError(
            "The tensors of a recording must be bool, int64, float16, bfloat16, float32 or float64.",
            got="{dtype} in {name!r}",
            dtype=kind,
            name=name[:60],
        )


def _brief(error: Exception) -> str:
    """What went wrong, cut off where it quotes a long mask."""
    words = str(error) or type(error).__name__
    return words if len(words) <= 300 else f"{words[:299]}…"


def _digest(text: str, tensors: dict[str, Tensor]) -> str:
    total = hashlib.blake2b(text.encode(), digest_size=32)
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            total.update(tensor.flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()
