"""The result of a training run: averaged weights with vocabularies, recipe and scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.checks import check_integer
from regard.deprecation import renamed_arguments
from regard.translator.alignment import FILE as ALIGNMENT
from regard.translator.alignment import measure_heads
from regard.translator.card import FILE as CARD
from regard.translator.card import card
from regard.translator.dictionary import DictionaryEntry
from regard.translator.epoch_pairs import EpochPairs
from regard.translator.evaluation import check_scoring
from regard.translator.files import read_text, write_text
from regard.translator.lexicon import learn_lexicon, learned_names, taught_words
from regard.translator.measured_model import measure
from regard.translator.name_learning import learn_name_evidence
from regard.translator.recipe import Recipe
from regard.translator.sentence_batches import encode_pairs
from regard.translator.sentence_pairs import CorpusSplit, Pair
from regard.translator.training_checkpoint import expected_snapshots, load_position
from regard.translator.training_folder import TrainingRun, locked_folder
from regard.translator.training_split import further_pairs, split_by
from regard.translator.translate_text import (
    LENGTH_PENALTY,
    NUM_BEAMS,
    RECIPE,
    count_parameters,
    load_translator,
    save_translator,
    write_vocabularies,
)
from regard.translator.translation_table import TranslationTable
from regard.translator.vocabulary import Vocabularies
from regard.translator.weight_average import average

MODEL, SCORES = "model", "scores.json"
TABLE_EPOCHS = 2
"""The epochs whose pairs teach the table of translations; each draws other words."""


@renamed_arguments(beams="num_beams")
def export(
    run: TrainingRun, *, num_beams: int = NUM_BEAMS, length_penalty: float = LENGTH_PENALTY
) -> dict[str, Any]:
    """Average the last checkpoints of a run into its ``model`` folder, and measure the result.

    The scores are those of the exported model, with its weights in 8 bits, on the held-out sentences. They
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
    table = _learned_table(EpochPairs(run.corpus, recipe, run.lexicon), run.vocabularies, recipe)
    vocabularies = _with_evidence(run.vocabularies, run.corpus, recipe, run.dictionary)
    save_translator(folder, average(paths), vocabularies, run.recipe, table)
    translator = load_translator(folder)
    best = measure_heads(translator)[0]
    write_text(folder / ALIGNMENT, best.to_json())
    scores: dict[str, Any] = {
        "held_out_sentences": len(run.corpus.held_out),
        "training_pairs": len(run.corpus.training) - run.corpus.further,
        "written_pairs": run.corpus.further,
        "dictionary_words": len(run.lexicon.taught) if run.lexicon else 0,
        "parameters": count_parameters(translator.model),
        "steps": position.step,
        "minutes": round(position.seconds / 60, 1),
        "averaged": [path.name for path in paths],
        "missing": [path.name for path in expected if path not in paths],
        "alignment": {"right": best.right, "pairs": best.pairs},
        "copies_names": bool(vocabularies.stand_ins),
        "tells_names": vocabularies.evidence is not None,
        **measure(translator, run.corpus, num_beams=num_beams, length_penalty=length_penalty),
    }
    _write_scores(folder, run.recipe, scores)
    return scores


def evaluate_model(
    folder: str | Path,
    pairs: Sequence[Pair],
    *,
    dictionary: Sequence[DictionaryEntry] | None = None,
    num_beams: int = NUM_BEAMS,
    length_penalty: float = LENGTH_PENALTY,
) -> dict[str, Any]:
    """Measure the model in a folder with the pairs that it was trained on, and rewrite its scores and card.

    A model of an earlier version gets what it lacks: the list of its words, the table by which it chooses
    among candidates and, with a dictionary, the names that can stand in for unknown ones and what tells names
    from words.
    """
    check_integer("num_beams", num_beams)
    check_scoring()
    folder = Path(folder)
    translator = load_translator(folder)
    recipe = Recipe.from_json(read_text(folder / RECIPE))
    corpus = split_by(recipe, pairs)
    vocabularies = _with_words(translator.vocabularies, corpus, dictionary)
    vocabularies = _with_evidence(vocabularies, corpus, recipe, dictionary)
    write_vocabularies(folder, vocabularies)
    scores = json.loads(read_text(folder / SCORES))
    table = translator.table
    if table is None:
        lexicon = None if dictionary is None else learn_lexicon(dictionary, corpus.training)
        table = _learned_table(EpochPairs(corpus, recipe, lexicon), vocabularies, recipe)
        table.write(folder)
    translator = replace(translator, vocabularies=vocabularies, table=table)
    scores["copies_names"] = bool(vocabularies.stand_ins)
    scores["tells_names"] = vocabularies.evidence is not None
    scores |= measure(translator, corpus, num_beams=num_beams, length_penalty=length_penalty)
    _write_scores(folder, recipe, scores)
    return dict(scores)


def _learned_table(drawn: EpochPairs, vocabularies: Vocabularies, recipe: Recipe) -> TranslationTable:
    """The table of translations, from the pairs of the first epochs."""
    pairs = [
        pair
        for epoch in range(TABLE_EPOCHS)
        for pair in encode_pairs(drawn.draw(epoch), vocabularies, longest=recipe.length)
    ]
    return TranslationTable.learn(pairs, pieces=len(vocabularies.english))


def _with_words(
    vocabularies: Vocabularies, corpus: CorpusSplit, dictionary: Sequence[DictionaryEntry] | None
) -> Vocabularies:
    if not vocabularies.words:
        vocabularies = replace(vocabularies, words=taught_words(corpus.training, None))
    if not vocabularies.stand_ins and dictionary is not None:
        names = learned_names(corpus.training, learn_lexicon(dictionary, corpus.training))
        vocabularies = replace(vocabularies, stand_ins=names)
    return vocabularies


def _with_evidence(
    vocabularies: Vocabularies,
    corpus: CorpusSplit,
    recipe: Recipe,
    dictionary: Sequence[DictionaryEntry] | None,
) -> Vocabularies:
    """The vocabularies with what tells names from words: the word vectors of a trained encoder do."""
    if dictionary is None or not recipe.pretrained or not vocabularies.stand_ins or vocabularies.evidence:
        return vocabularies
    # The pairs that come with regard hardly have names, and would say that no capitalized word is one.
    further = set(further_pairs(recipe))
    own = [pair for pair in corpus.training if pair not in further]
    evidence = learn_name_evidence(own, dictionary, vocabularies.words)
    return replace(vocabularies, evidence=evidence)


def _write_scores(folder: Path, recipe: Recipe, scores: dict[str, Any]) -> None:
    write_text(folder / SCORES, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / CARD, card(recipe, scores, megabytes(folder)))


def megabytes(folder: Path) -> float:
    """The size of a folder, in megabytes."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.name != CARD) / 1e6
