"""Files of a training run: safetensors and JSON, written under another name and renamed when complete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from regard import atomic, checked_files
from regard.errors import ModelFileError


def write_text(path: Path, text: str) -> None:
    """Replace a file by this text, atomically."""
    atomic.write_text(path, text)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, object]) -> None:
    """Replace a file by these tensors, with ``facts`` and a digest of everything in its header."""
    checked_files.write_tensors(path, tensors, facts)


def read_text(path: Path) -> str:
    """The text of one of the files of a model."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelFileError(
            "A model must be a folder with all of its files.",
            got="{type} at {path}",
            do="Pass the folder that regard train --out wrote.",
            type=type(error).__name__,
            path=path,
        ) from error


def read_tensors(path: Path, *, do: str) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The tensors and facts that ``write_tensors`` wrote; ``do`` is the advice if they are damaged."""
    try:
        return checked_files.read_tensors(path)
    except checked_files.DamagedError as error:
        raise ModelFileError(
            "The weights must be as regard wrote them.",
            got="{error} in {path}",
            do=do,
            error=error,
            path=path,
        ) from error
