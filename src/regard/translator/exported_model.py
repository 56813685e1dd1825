"""The result of a training run: averaged weights in half precision with vocabularies, recipe and scores."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.checks import check_integer
from regard.deprecation import renamed_arguments
from regard.translator.alignment import FILE as ALIGNMENT
from regard.translator.alignment import measure_heads
from regard.translator.card import FILE as CARD
from regard.translator.card import card
from regard.translator.evaluation import check_scoring, evaluate
from regard.translator.files import write_text
from regard.translator.training_checkpoint import expected_snapshots, load_position
from regard.translator.training_folder import TrainingRun, locked_folder
from regard.translator.translate_text import count_parameters, load_translator, save_translator
from regard.translator.weight_average import average

MODEL, SCORES = "model", "scores.json"


@renamed_arguments(beams="num_beams")
def export(run: TrainingRun, *, num_beams: int = 4, length_penalty: float = 1.0) -> dict[str, Any]:
    """Average the last checkpoints of a run into its ``model`` folder, and measure the result.

    The scores are those of the exported model, half precision included, on the held-out sentences. They
    say which files of weights were averaged, and which were ``missing`` although the run wrote them.
    """
    check_integer("num_beams", num_beams)
    check_scoring()
    with locked_folder(run.folder):
        return _export(run, num_beams, length_penalty)


def _export(run: TrainingRun, num_beams: int, length_penalty: float) -> dict[str, Any]:
    folder, recipe = run.folder / MODEL, run.recipe
    position = load_position(run.folder)
    expected = expected_snapshots(
        run.folder, position.step, every=recipe.checkpoint_every, kept=recipe.averaged
    )
    paths = [path for path in expected if path.exists()]
    save_translator(folder, average(paths), run.vocabularies, run.recipe)
    translator = load_translator(folder)
    best = measure_heads(translator)[0]
    write_text(folder / ALIGNMENT, best.to_json())
    scores: dict[str, Any] = {
        "held_out_sentences": len(run.corpus.held_out),
        "training_pairs": len(run.corpus.training),
        "parameters": count_parameters(translator.model),
        "steps": position.step,
        "minutes": round(position.seconds / 60, 1),
        "averaged": [path.name for path in paths],
        "missing": [path.name for path in expected if path not in paths],
        "alignment": {"right": best.right, "pairs": best.pairs},
        "greedy": asdict(evaluate(translator, run.corpus.held_out)),
        "beam": {
            "beams": num_beams,
            "length_penalty": length_penalty,
            **asdict(
                evaluate(translator, run.corpus.held_out, num_beams=num_beams, length_penalty=length_penalty)
            ),
        },
    }
    write_text(folder / SCORES, json.dumps(scores, indent=2) + "\n")
    write_text(folder / CARD, card(run.recipe, scores, megabytes(folder)))
    return scores


def megabytes(folder: Path) -> float:
    """The size of a folder, in megabytes."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.name != CARD) / 1e6
