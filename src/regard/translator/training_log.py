"""The log of a training run: one JSON object per line, and a plot of the loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard import atomic
from regard.checked_files import digest
from regard.errors import ModelFileError
from regard.languages import Texts
from regard.translator.files import read_text

LOG, CURVE = "log.jsonl", "loss.png"

TEXTS = Texts("translator")


@dataclass(frozen=True)
class PlotStyle:
    """The language of the plot and fonts that have its characters; by default those of matplotlib."""

    lang: str = "en"
    fonts: tuple[str, ...] = ()


def append(folder: Path, entry: dict[str, float]) -> None:
    """Add a line."""
    atomic.append_text(folder / LOG, json.dumps(entry) + "\n")


def read(folder: Path) -> list[dict[str, float]]:
    """The complete lines; a kill can cut off the last one."""
    path = folder / LOG
    return list(_entries(path)) if path.exists() else []


def _entries(path: Path) -> Iterator[dict[str, float]]:
    *whole, last = read_text(path).split("\n")
    for number, line in enumerate([*whole, *([last] if last.endswith("}") else [])], start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict) or not isinstance(entry["step"], int):
                raise ValueError("no step")
            if not all(isinstance(value, int | float) for value in entry.values()):
                raise ValueError("not only numbers")
        except (ValueError, KeyError, RecursionError) as error:
            raise ModelFileError(
                "Every line of {LOG} must be a JSON object with the step and its losses.",
                got="something else on line {number} of {path}",
                do="Remove that line, or move the file away; checkpoints do not need it.",
                LOG=LOG,
                number=number,
                path=path,
            ) from error
        yield entry


def written(folder: Path) -> tuple[int, str]:
    """How many bytes there are, and their digest."""
    path = folder / LOG
    contents = path.read_bytes() if path.exists() else b""
    return len(contents), digest(contents)


def cut_after(folder: Path, size: int, known: str) -> None:
    """Remove the lines after a checkpoint: the run writes them again.

    A missing log starts over. A changed one is an error.
    """
    path = folder / LOG
    if not path.exists():
        return
    contents = path.read_bytes()
    if digest(contents[:size]) != known:
        raise ModelFileError(
            "The log of a training run must be as it wrote it.",
            got="different contents in {path}",
            do="Move this file away and continue with --resume: only the log starts over, not the training.",
            path=path,
        )
    if len(contents) > size:
        atomic.write_bytes(path, contents[:size])


def draw(folder: Path, lettering: PlotStyle | None = None) -> None:
    """Plot the loss over the steps."""
    # Without pyplot, which would need a window system and change global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    written = lettering or PlotStyle()
    family = list(written.fonts) or None
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    entries = read(folder)
    for key in ("loss", "held_out"):
        points = [(entry["step"], entry[key]) for entry in entries if key in entry]
        axes.plot(
            [step for step, _ in points],
            [loss for _, loss in points],
            label=TEXTS.say(f"curve.{key}", written.lang),
        )
    axes.set_xlabel(TEXTS.say("axis.step", written.lang), fontfamily=family)
    axes.set_ylabel(TEXTS.say("axis.loss", written.lang), fontfamily=family)
    axes.grid(alpha=0.3)
    axes.legend(prop={"family": family})
    with atomic.replaced(folder / CURVE) as part:
        figure.savefig(part, dpi=120, format="png")
