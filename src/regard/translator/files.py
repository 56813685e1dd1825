"""Files of a training: written under another name and renamed when whole; safetensors and JSON alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from regard import atomic
from regard.errors import ModelFileError


def write_text(path: Path, text: str) -> None:
    """Replace a file by this text, at once or not at all."""
    _replace(path, text.encode("utf-8"))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, object]) -> None:
    """Replace a file by these tensors, with ``facts`` and a digest of everything in its header."""
    # Contiguous copies: safetensors refuses tensors that share memory.
    whole = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    _replace(path, save(whole, metadata={"facts": text, "digest": _digest(text, whole)}))


def read_text(path: Path) -> str:
    """The text of a file of a model."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelFileError(
            "A model is a folder with all of its files.",
            got=f"{type(error).__name__} at {path}",
            do="Name the folder that regard train --out wrote.",
        ) from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The tensors and facts that ``write_tensors`` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            header = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in list(file.keys())}
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise ModelFileError(
            "Weights are a whole safetensors file.",
            got=f"{error} in {path}",
            do="Copy or export it again.",
        ) from error
    text = header.get("facts", "")
    if header.get("digest") != _digest(text, tensors):
        raise ModelFileError(
            "Weights are as regard wrote them.",
            got=f"other contents in {path}",
            do="Copy or export it again.",
        )
    facts: dict[str, object] = json.loads(text)
    return tensors, facts


def _replace(path: Path, contents: bytes) -> None:
    atomic.write_bytes(path, contents)


def _digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    total = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            total.update(tensor.flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()
