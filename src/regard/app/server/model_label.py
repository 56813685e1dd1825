"""The names of served models: what a reader calls a model, without the private path to its folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

_HUB_FOLDER = re.compile(r"models--(?:.+--)?(?P<name>[^/]+)")
_CHECKPOINT = re.compile(r"checkpoint[-_]?\d*|(?:step|epoch)[-_]?\d+")
_SAYS_NOTHING = re.compile(
    r"models?|weights|snapshots|outputs?|final|best|last|latest|hf|[0-9a-f]{40}|" + _CHECKPOINT.pattern
)


def model_label(name: str) -> str:
    """The name of a model from its folder, or from its name on the hub.

    A folder called *model* or *checkpoint-500* says nothing: its config may know the model's name, and
    otherwise the folder above it does. The number of a checkpoint is kept.

    >>> model_label("sentence-transformers/all-MiniLM-L6-v2"), model_label("runs/little-gpt/model")
    ('all-MiniLM-L6-v2', 'little-gpt')
    >>> model_label("runs/little-gpt/checkpoint-500")
    'little-gpt · checkpoint-500'
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        folder = folder.resolve()
    if not _SAYS_NOTHING.fullmatch(folder.name.lower()):
        return _shown(folder.name) or name
    checkpoint = bool(_CHECKPOINT.fullmatch(folder.name.lower()))
    # The name in the config of a checkpoint is that of the model whose training it continued.
    own = "" if checkpoint else _named_in_config(folder)
    label = own or _telling(folder.parent)
    if checkpoint and label:
        return f"{label} · {folder.name}"
    return label or folder.name


def unique_labels(labels: list[str]) -> list[str]:
    """The labels, with a number behind those that occurred before.

    >>> unique_labels(["gpt", "bert", "gpt"])
    ['gpt', 'bert', 'gpt (2)']
    """
    counted = [labels[: at + 1].count(label) for at, label in enumerate(labels)]
    return [
        label if count == 1 else f"{label} ({count})" for label, count in zip(labels, counted, strict=True)
    ]


def _named_in_config(folder: Path) -> str:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    found = config.get("_name_or_path") if isinstance(config, dict) else None
    return _telling(Path(found)) if isinstance(found, str) and found else ""


def _telling(path: Path) -> str:
    """The last part of a path that says something, or nothing."""
    for part in (path, *path.parents):
        if part.name and not _SAYS_NOTHING.fullmatch(part.name.lower()):
            return _shown(part.name)
    return ""


def _shown(name: str) -> str:
    """The name of a folder; those of the hub's cache hold the name of the model."""
    found = _HUB_FOLDER.fullmatch(name)
    return found["name"] if found else name
