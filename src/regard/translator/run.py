"""The folder of a training: what it was begun with, so that it goes on with nothing else.

run.json                  recipe, data and number of processes
english.json, chinese.json  the vocabularies
checkpoint.safetensors    where it stands
weights-*.safetensors     the last weights, to be averaged
log.jsonl, loss.png       how it went
model/                    what it gave
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.errors import ModelFileError, TrainingError
from regard.translator.data import Corpus, Pair, digest, split
from regard.translator.files import read_text, write_text
from regard.translator.recipe import Recipe
from regard.translator.translating import read_vocabularies, write_vocabularies
from regard.translator.vocabulary import ChineseCharacters, EnglishTokens, Vocabularies

RUN = "run.json"
FORMAT = "regard training 1"


@dataclass(frozen=True)
class Run:
    """One training: its folder, recipe, sentences and vocabularies."""

    folder: Path
    recipe: Recipe
    corpus: Corpus
    vocabularies: Vocabularies


def recipe_of(folder: str | Path) -> Recipe | None:
    """The recipe that the training in a folder was begun with; None where there is no training."""
    path = Path(folder) / RUN
    return Recipe.from_fields(dict(_read(path)["recipe"])) if path.exists() else None


def begin_run(
    folder: Path, pairs: Sequence[Pair], recipe: Recipe, *, processes: int = 1, resume: bool = False
) -> None:
    """Make the folder of a training, or check that the one in it is this one. Overwrites nothing."""
    path = folder / RUN
    wanted = {"recipe": asdict(recipe), "data": digest(pairs), "processes": processes}
    if path.exists():
        if not resume:
            raise TrainingError(
                "A new training begins in a folder without one.",
                got=str(folder),
                do="Go on with --resume, or name another folder.",
            )
        _check_same(_read(path), wanted)
        return
    if folder.exists() and (not folder.is_dir() or any(folder.glob("*.safetensors"))):
        raise TrainingError(
            "A training has a folder of its own.",
            got=f"{folder}, which holds something else",
            do="Name another folder.",
        )
    corpus = split(pairs, held_out=recipe.held_out, seed=recipe.seed)
    write_vocabularies(folder, _learn(corpus, recipe))
    # Written last: where it stands, everything else does.
    write_text(path, json.dumps({"format": FORMAT, **wanted}, indent=2) + "\n")


def open_run(folder: Path, pairs: Sequence[Pair], recipe: Recipe) -> Run:
    """The training that ``begin_run`` made or checked."""
    corpus = split(pairs, held_out=recipe.held_out, seed=recipe.seed)
    # Read, not learned again: the files are what the checkpoints were trained with.
    return Run(folder, recipe, corpus, read_vocabularies(folder))


def _learn(corpus: Corpus, recipe: Recipe) -> Vocabularies:
    return Vocabularies(
        EnglishTokens.learn((pair.english for pair in corpus.training), recipe.english_tokens),
        ChineseCharacters.learn((pair.chinese for pair in corpus.training), least=recipe.chinese_least),
    )


def _check_same(begun: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    before, now = _flat(begun), _flat(wanted)
    names = [name for name in now if before.get(name) != now[name]]
    if names:
        raise TrainingError(
            f"A training goes on as it began ({_list(before, names)}).",
            got=_list(now, names),
            do="Leave these as they were, or begin anew in another folder.",
        )


def _flat(described: Mapping[str, Any]) -> dict[str, Any]:
    return {**described["recipe"], "data": described["data"], "processes": described["processes"]}


def _list(values: Mapping[str, Any], names: Sequence[str]) -> str:
    return ", ".join(f"{name} = {values.get(name)}" for name in names)


def _read(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        described: dict[str, Any] = json.loads(text)
        if described["format"] != FORMAT:
            raise ValueError(f"format {described['format']!r}")
        _flat(described)
    except (ValueError, KeyError, TypeError) as error:
        raise ModelFileError(
            f"{RUN} describes a training ({FORMAT!r}).",
            got=f"{type(error).__name__} ({error}) in {path}",
            do="Begin anew in another folder.",
        ) from error
    return described
