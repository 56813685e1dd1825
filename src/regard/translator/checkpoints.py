"""Checkpoints: everything that a training needs to go on exactly as if it had never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ModelFileError
from regard.translator.files import read_tensors, write_tensors

CHECKPOINT = "checkpoint.safetensors"
SNAPSHOT = "weights-{step:07d}.safetensors"


@dataclass
class Position:
    """Where a training stands: steps done, the next batch, and what was gathered since the last log."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    loss: float = 0.0  # sum over tokens
    tokens: int = 0
    seconds: float = 0.0


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    position: Position,
    chances: Sequence[Tensor],
) -> None:
    """Write one file with model, optimizer, position and the random states of all processes."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{name}.{key}"] = value
    for index, chance in enumerate(chances):
        tensors[f"random.{index}"] = chance
    write_tensors(folder / CHECKPOINT, tensors, asdict(position))


def load_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, process: int
) -> Position | None:
    """Put model, optimizer and chance back to where the checkpoint left them; None without one."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    tensors, facts = read_tensors(path)
    load_weights(model, _part(tensors, "model."), path)
    for name, parameter in model.named_parameters():
        # Set as they were, not through load_state_dict, which would change their kinds.
        optimizer.state[parameter] = _part(tensors, f"optimizer.{name}.")
    torch.set_rng_state(tensors[f"random.{process}"])
    named: dict[str, Any] = facts
    return Position(**named)


def load_weights(model: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Give a model these weights; they must be those of this very model."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(
            "Weights fit the recipe that lies beside them.",
            got=f"{str(error).splitlines()[-1].strip()} in {path}",
            do="Keep the files of one model together.",
        ) from error


def save_snapshot(folder: Path, model: nn.Module, step: int, *, kept: int) -> None:
    """Write the weights alone, for averaging, and take away all but the last ``kept``."""
    write_tensors(folder / SNAPSHOT.format(step=step), model.state_dict(), {"step": step})
    for path in snapshots(folder)[:-kept]:
        path.unlink()


def snapshots(folder: Path) -> list[Path]:
    """The files of weights, the oldest first."""
    return sorted(folder.glob("weights-*.safetensors"))


def drop_snapshots(folder: Path, *, after: int, every: int) -> None:
    """Take away weights that an undisturbed training would not have: of no regular step, or too late ones."""
    for path in snapshots(folder):
        step = int(path.stem.removeprefix("weights-"))
        if step > after or step % every:
            path.unlink()


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
