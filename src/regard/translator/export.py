"""What a training gives: averaged weights in half precision with vocabularies, recipe and scores."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.translator import log
from regard.translator.aligning import FILE as ALIGNMENT
from regard.translator.aligning import measure_heads
from regard.translator.averaging import average
from regard.translator.card import FILE as CARD
from regard.translator.card import card
from regard.translator.checkpoints import snapshots
from regard.translator.evaluation import evaluate
from regard.translator.files import write_text
from regard.translator.run import Run
from regard.translator.translating import count_parameters, load_translator, save_translator

MODEL, SCORES = "model", "scores.json"


def export(run: Run, *, beams: int = 4, length_penalty: float = 1.0) -> dict[str, Any]:
    """Average the last checkpoints of a run into its ``model`` folder, and measure what stands there.

    The scores are those of the exported model, half precision included, on the held-out sentences.
    """
    folder = run.folder / MODEL
    paths = snapshots(run.folder)
    save_translator(folder, average(paths), run.vocabularies, run.recipe)
    translator = load_translator(folder)
    last = (log.read(run.folder) or [{}])[-1]  # the log may be gone; it holds nothing that is needed
    best = measure_heads(translator)[0]
    write_text(folder / ALIGNMENT, best.to_json())
    scores: dict[str, Any] = {
        "held_out_sentences": len(run.corpus.held_out),
        "training_pairs": len(run.corpus.training),
        "parameters": count_parameters(translator.model),
        "steps": int(last.get("step", run.recipe.steps)),
        "minutes": round(last.get("seconds", 0.0) / 60, 1),
        "averaged": [path.name for path in paths],
        "alignment": {"right": best.right, "pairs": best.pairs},
        "greedy": asdict(evaluate(translator, run.corpus.held_out)),
        "beam": {
            "beams": beams,
            "length_penalty": length_penalty,
            **asdict(evaluate(translator, run.corpus.held_out, beams=beams, length_penalty=length_penalty)),
        },
    }
    write_text(folder / SCORES, json.dumps(scores, indent=2) + "\n")
    write_text(folder / CARD, card(run.recipe, scores, megabytes(folder)))
    return scores


def megabytes(folder: Path) -> float:
    """How much a folder takes, in millions of bytes."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.name != CARD) / 1e6
