"""The names of served models: what a reader calls a model, without the private path to its folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn import Module

_HUB_FOLDER = re.compile(r"models--(?:.+--)?(?P<name>[^/]+)")
_CHECKPOINT = re.compile(r"checkpoint[-_]?\d*|(?:step|epoch)[-_]?\d+")
_SAYS_NOTHING = re.compile(
    r"models?|weights|snapshots|outputs?|final|best|last|latest|hf|tmp|temp|data|home|root|downloads|[0-9a-f]{40}|"
    + _CHECKPOINT.pattern
)


def model_label(name: str) -> str:
    """The name of a model from its folder, or from its name on the hub.

    A folder called *model* or *checkpoint-500* says nothing, so the folder above it names the model, or else
    its config; a config comes second, because that of a tuned model often names the model it was tuned from.
    The number of a checkpoint is kept.

    >>> model_label("sentence-transformers/all-MiniLM-L6-v2"), model_label("runs/little-gpt/model")
    ('all-MiniLM-L6-v2', 'little-gpt')
    >>> model_label("runs/little-gpt/checkpoint-500")
    'little-gpt · checkpoint-500'
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        folder = folder.resolve()
    if not folder.name or _telling(folder.name):
        return folder.name or name
    label = _from_hub(folder) or _telling(folder.parent.name) or _named_in_config(folder) or _above(folder)
    if label and _CHECKPOINT.fullmatch(folder.name.lower()):
        return f"{label} · {folder.name}"
    return label or folder.name


def architecture(model: Module) -> dict[str, Any]:
    """What a model is, beside its name: its class, and how many parameters it has.

    >>> import torch
    >>> architecture(torch.nn.Linear(3, 2))
    {'architecture': 'Linear', 'parameters': 8}
    """
    return {
        "architecture": type(model).__name__,
        "parameters": sum(one.numel() for one in model.parameters()),
    }


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
    return _above(Path(found) / "config.json") if isinstance(found, str) and found else ""


def _from_hub(folder: Path) -> str:
    """The name in a folder of the hub's cache: ``models--owner--name/snapshots/…``."""
    found = (_HUB_FOLDER.fullmatch(part) for part in reversed(folder.parts))
    return next((one["name"] for one in found if one), "")


def _above(path: Path) -> str:
    """The name of the nearest folder above that says something, or nothing."""
    return next(filter(None, (_telling(part.name) for part in path.parents)), "")


def _telling(name: str) -> str:
    """A name that says something, or nothing."""
    return "" if _SAYS_NOTHING.fullmatch(name.lower()) else name
