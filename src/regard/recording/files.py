"""One recording, one file: safetensors with a JSON description; nothing in it can be executed.

The file is written under another name and renamed when it is whole. Its description carries a
digest of everything, so that a file which was cut, changed or made by others is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.errors import RecordingError, RecordingFileError, RegardError
from regard.recording.describing import Shelf, call_from, call_to
from regard.version import __version__

if TYPE_CHECKING:
    from regard.recording.recording import Recording

FORMAT = "regard recording 1"


def save(recording: Recording, path: Path) -> None:
    """Write the recording; a file that stood there is replaced at the very end, or not at all."""
    if not recording.closed:
        raise RecordingError(
            "A recording is saved when it is closed.", got="a running watch", do="Save after the with block."
        )
    shelf = Shelf()
    description = {
        "regard": __version__,
        "model": recording.model,
        "tokens": recording.tokens,
        "source_tokens": recording.source_tokens,
        "calls": [call_to(call, shelf) for call in recording.calls],
    }
    text = json.dumps(description, ensure_ascii=False)
    header = {"format": FORMAT, "description": text, "digest": _digest(text, shelf.tensors)}
    _replace(path, shelf.tensors, header)


def _replace(path: Path, tensors: dict[str, Tensor], header: dict[str, str]) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        save_file(tensors, name, metadata=header)
        with Path(name).open("rb+") as written:
            os.fsync(written.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _umask() -> int:
    """The permissions that new files do not get; a temporary file has fewer than others."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
            "load(path) names a file.", got=str(path), do="Write one with seen.save(path)."
        )
    header, tensors = _read(path)
    text = header.get("description", "")
    if header.get("format") != FORMAT:
        raise RecordingFileError(
            f"A recording says that it is one ({FORMAT!r}).",
            got=f"{header.get('format')!r} in {path}",
            do="Write it with seen.save(path), with this version of regard.",
        )
    if header.get("digest") != _digest(text, tensors):
        raise RecordingFileError(
            "A recording is as it was written.", got=f"changed contents in {path}", do="Record it again."
        )
    try:
        return _recording(json.loads(text), Shelf(tensors))
    except (RegardError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise RecordingFileError(
            "A recording describes its calls.", got=f"{error} in {path}", do="Record it again."
        ) from error


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise RecordingFileError(
            "A recording is a whole safetensors file.", got=f"{error} in {path}", do="Record it again."
        ) from error


def _recording(described: dict[str, Any], shelf: Shelf) -> Recording:
    from regard.recording.recording import Recording

    found = Recording(str(described["model"]), [call_from(one, shelf) for one in described["calls"]])
    found.tokens = described["tokens"]
    found.source_tokens = described["source_tokens"]
    return found


def _digest(text: str, tensors: dict[str, Tensor]) -> str:
    total = hashlib.blake2b(text.encode(), digest_size=32)
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            total.update(tensor.flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()
