"""Files with a digest of their contents, so that damage is noticed when they are read.

Tensors are stored in a safetensors file whose header has some facts (metadata) and the digest;
fields are stored in a JSON object with the digest as one more field. A flipped bit either changes
nothing that is read or raises :class:`DamagedError`; it never changes the numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from regard import atomic
from regard.errors import RegardError, reason

DIGEST = "digest"


class DamagedError(RegardError):
    """A file does not hold what was written to it. Callers turn this into their own errors."""


def digest(contents: bytes) -> str:
    """The digest of some bytes."""
    return hashlib.blake2b(contents, digest_size=16).hexdigest()


def digest_of(fields: Mapping[str, Any]) -> str:
    """The digest of some fields that JSON can hold; their order does not matter.

    >>> digest_of({"a": 1, "b": None}) == digest_of({"b": None, "a": 1})
    True
    """
    return digest(json.dumps(fields, sort_keys=True).encode())


# ---- tensors -----------------------------------------------------------------------------------


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Replace a file with these tensors, with ``facts`` and a digest of everything in its header."""
    # Contiguous copies, because safetensors refuses tensors that share memory.
    whole = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(facts)
    contents = save(whole, metadata={"facts": text, DIGEST: _digest_of_tensors(text, whole)})
    atomic.write_bytes(path, contents)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts that ``write_tensors`` wrote, or DamagedError."""
    try:
        with safe_open(path, framework="pt") as file:
            header = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in list(file.keys())}
    except OSError as error:
        raise DamagedError("{reason}", reason=reason(error)) from error
    except (SafetensorError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise DamagedError("{reason}", reason=reason(error)) from error
    text = header.get("facts", "")
    if DIGEST not in header:
        raise DamagedError("no digest")
    if header[DIGEST] != _digest_of_tensors(text, tensors):
        raise DamagedError("contents that differ from what was written")
    facts: dict[str, Any] = json.loads(text)
    return tensors, facts


def _digest_of_tensors(text: str, tensors: Mapping[str, Tensor]) -> str:
    total = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            total.update(tensor.flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()


# ---- fields ------------------------------------------------------------------------------------


def write_json(path: Path, fields: Mapping[str, Any]) -> None:
    """Replace a file with these fields and their digest, as indented JSON."""
    text = json.dumps({**fields, DIGEST: digest_of(fields)}, indent=2, ensure_ascii=False)
    atomic.write_bytes(path, json_bytes(text + "\n"))


def read_json(path: Path) -> dict[str, Any]:
    """The fields that ``write_json`` wrote, or DamagedError."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DamagedError("{reason}", reason=reason(error)) from error
    except (ValueError, RecursionError) as error:
        raise DamagedError("not JSON: {error}", error=error) from error
    if not isinstance(fields, dict) or DIGEST not in fields:
        raise DamagedError("no digest")
    written = fields.pop(DIGEST)
    if written != digest_of(fields):
        raise DamagedError("contents that differ from what was written")
    return fields


def json_bytes(text: str) -> bytes:
    """JSON in UTF-8, even if a file name in it has bytes that are not UTF-8.

    >>> json_bytes('"caf\\udce9"')
    b'"caf\\\\udce9"'
    """
    # Python keeps such bytes as lone surrogates, and escapes them in the same way as JSON.
    return text.encode("utf-8", "backslashreplace")
