"""How a training went: one JSON object per line, and a picture of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from regard import atomic
from regard.languages import Texts
from regard.translator.files import write_text

LOG, CURVE = "log.jsonl", "loss.png"

TEXTS = Texts(Path(__file__).parent / "texts")


@dataclass(frozen=True)
class Lettering:
    """The language of the picture, and fonts that have its letters; without any, matplotlib's own."""

    lang: str = "en"
    fonts: tuple[str, ...] = ()


def append(folder: Path, entry: dict[str, float]) -> None:
    """Add a line."""
    path = folder / LOG
    with atomic.explained(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def read(folder: Path) -> list[dict[str, float]]:
    """The lines that are whole; a kill may have cut the last one."""
    path = folder / LOG
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.endswith("}")]


def cut_after(folder: Path, step: int) -> None:
    """Take away the lines from after ``step``: the training writes them again."""
    kept = [json.dumps(entry) + "\n" for entry in read(folder) if entry["step"] <= step]
    write_text(folder / LOG, "".join(kept))


def draw(folder: Path, lettering: Lettering | None = None) -> None:
    """The loss over the steps, as a picture."""
    # Through the class, not pyplot: no window system is asked for, nothing global is changed.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    written = lettering or Lettering()
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
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=120)
    atomic.write_bytes(folder / CURVE, drawn.getvalue())
