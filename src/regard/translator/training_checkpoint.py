"""Checkpoints: everything that a run needs to resume exactly as if it had never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard import atomic
from regard.errors import ModelFileError, TrainingError
from regard.translator.files import read_tensors, write_tensors

CHECKPOINT = "checkpoint.safetensors"
SNAPSHOT = "weights-{step:07d}.safetensors"


@dataclass
class TrainingPosition:
    """The position of a run: steps done, the next batch, and sums since the last log."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    loss: float = 0.0  # sum over tokens
    tokens: int = 0
    seconds: float = 0.0
    log_bytes: int = 0  # of the log, as far as it belongs to these steps
    log_digest: str = ""


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    position: TrainingPosition,
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
) -> TrainingPosition | None:
    """Restore model, optimizer and random state from the checkpoint; None without one."""
    path = folder / CHECKPOINT
    if not path.exists():
        _check_never_there(folder)
        return None
    tensors, facts = _read(path)
    load_weights(model, _part(tensors, "model."), path)
    for name, parameter in model.named_parameters():
        # Set directly, because load_state_dict would change their dtypes.
        optimizer.state[parameter] = _part(tensors, f"optimizer.{name}.")
    torch.set_rng_state(tensors[f"random.{process}"])
    return TrainingPosition(**facts)


def load_position(folder: Path) -> TrainingPosition:
    """The position of the run in a folder at its last checkpoint."""
    path = folder / CHECKPOINT
    if not path.exists():
        raise TrainingError(
            "Making a model needs at least one checkpoint.",
            got="none in {folder}",
            do="Train until the first checkpoint.",
            folder=folder,
        )
    return TrainingPosition(**_read(path)[1])


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    return read_tensors(path, do="Start over in another folder; the weights of earlier steps are kept.")


def _check_never_there(folder: Path) -> None:
    """Raise if the checkpoint of a run is gone: starting again would remove its weights."""
    # A kill between the first weights and the first checkpoint leaves one file of weights.
    if len(snapshots(folder)) > 1:
        raise ModelFileError(
            "Continuing a training run needs {CHECKPOINT}.",
            got="none in {folder}, but {snapshots_count} files of weights",
            do="Restore it, or start over in another folder.",
            CHECKPOINT=CHECKPOINT,
            folder=folder,
            snapshots_count=len(snapshots(folder)),
        )


def load_weights(model: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Load weights into a model; they must fit."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(
            "The weights must fit the recipe beside them.",
            got="{error} in {path}",
            do="Keep the files of one model together.",
            error=str(error).splitlines()[-1].strip(),
            path=path,
        ) from error


def save_snapshot(folder: Path, model: nn.Module, step: int, *, kept: int) -> None:
    """Write only the weights, for averaging, and remove all but the last ``kept`` files."""
    write_tensors(folder / SNAPSHOT.format(step=step), model.state_dict(), {"step": step})
    for path in snapshots(folder)[:-kept]:
        with atomic.explained(path):
            path.unlink()


def snapshots(folder: Path) -> list[Path]:
    """The files of weights, oldest first."""
    return sorted(path for path in folder.glob("weights-*.safetensors") if _step(path) is not None)


def expected_snapshots(folder: Path, step: int, *, every: int, kept: int) -> list[Path]:
    """The files of weights that a run has after a step, oldest first.

    >>> [path.stem for path in expected_snapshots(Path(), 17, every=5, kept=3)]
    ['weights-0000010', 'weights-0000015', 'weights-0000017']
    """
    steps = [*range(every, step, every), step][-kept:]
    return [folder / SNAPSHOT.format(step=one) for one in steps]


def drop_snapshots(folder: Path, *, after: int, every: int) -> None:
    """Remove weights that an uninterrupted run would not have: of irregular or later steps."""
    for path in snapshots(folder):
        step = _step(path)
        if step is not None and (step > after or step % every):
            with atomic.explained(path):
                path.unlink()


def _step(path: Path) -> int | None:
    number = path.stem.removeprefix("weights-")
    return int(number) if number.isascii() and number.isdigit() else None


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
