"""Train a small translator, and draw how its heads of cross-attention learn which word became which.

python docs/make_alignment_heads.py cmn.txt [--out FOLDER]

Every 100 steps, each head is measured on the word pairs that were checked by hand: for how many of them the
English word that the head attends to most is the right one. Needs ``pip install ".[train]"``; takes minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
STEPS, EVERY = 2000, 100


def train_and_measure(data: Path, folder: Path) -> dict[str, Any]:
    """The pairs that every head gets right, and the held-out loss, every 100 steps."""
    from regard.translator import Recipe, read_pairs, train
    from regard.translator.alignment import checked_sentences, measure_heads
    from regard.translator.training_checkpoint import load_weights, snapshots
    from regard.translator.translate_text import Translator, build_model
    from regard.translator.weight_average import average

    recipe = Recipe(
        encoder_layers=2, decoder_layers=2, width=128, hidden=512, dropout=0.1, steps=STEPS,
        warm_up=400, checkpoint_every=EVERY, averaged=STEPS // EVERY, tokens_per_batch=2048,
    )  # fmt: skip
    run = train(read_pairs(data), folder, recipe, resume=True)
    model = build_model(recipe, run.vocabularies).eval()
    right: dict[str, list[int]] = {}
    steps = []
    for path in snapshots(folder):
        load_weights(model, average([path]), path)
        steps.append(int(path.stem.split("-")[1]))
        for head in measure_heads(Translator(model, run.vocabularies)):
            right.setdefault(f"{head.layer}.{head.head}", []).append(head.right)
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [entry["held_out"] for entry in log if "held_out" in entry]
    words = [1 / len(one.english.split()) for one in checked_sentences() for _ in one.pairs]
    chance = sum(words) / len(words)
    return {"pairs": head.pairs, "chance": chance, "steps": steps, "right": right, "held_out": losses}


def draw(found: dict[str, Any]) -> Any:
    """A line for each head, those of one layer in one colour, and the loss above them."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from regard.views.figures.style import FAINT, QUIET, house_style

    with house_style():
        figure = Figure(figsize=(5.6, 4.2), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2.4))
        above.plot(found["steps"], found["held_out"], color=QUIET)
        above.set_ylabel("loss", color=QUIET)
        best = max(found["right"], key=lambda name: sum(found["right"][name]))
        for name, counts in found["right"].items():
            layer = int(name.split(".")[0])
            shares = [100 * count / found["pairs"] for count in counts]
            strong = {"linewidth": 2.4} if name == best else {"alpha": 0.75, "linewidth": 1.1}
            below.plot(found["steps"], shares, color=f"C{layer}", **strong)
            if name == best:
                below.annotate(name, (found["steps"][-1], shares[-1]), (4, -3), textcoords="offset points")
        below.axhline(100 * found["chance"], color=FAINT, linewidth=0.8)
        below.annotate(
            "chance", (found["steps"][-1], 100 * found["chance"]), (4, -3), textcoords="offset points"
        )
        layers = sorted({int(name.split(".")[0]) for name in found["right"]})
        below.legend(
            [Line2D([], [], color=f"C{layer}") for layer in layers], [f"layer {one}" for one in layers]
        )
        below.set_ylabel("word pairs right (%)", color=QUIET)
        below.set_ylim(0, 100)
        below.set_xlabel("step", color=QUIET)
        above.set_title("Heads of cross-attention learn to align")
        return figure


def main() -> None:
    """Train, measure, draw."""
    from regard.views.figures import save

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as kept:
        found = train_and_measure(options.data, options.out or Path(kept) / "run")
    print(json.dumps(found))
    save(draw(found), DOCS / "pictures" / "alignment-heads.png")


if __name__ == "__main__":
    main()
