"""All scores of a translator at once: held-out, validation and everyday sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from regard.translator.evaluation import evaluate, score, translations_of
from regard.translator.everyday import everyday_sentences
from regard.translator.everyday_judgement import GOOD, UNREAD, WRONG, JudgedTranslation, judge
from regard.translator.sentence_pairs import CorpusSplit
from regard.translator.translate_text import LENGTH_PENALTY, NUM_BEAMS, Translator

SHOWN = 8
"""How many good and wrong translations are kept as examples."""


def measure(
    translator: Translator,
    corpus: CorpusSplit,
    *,
    num_beams: int = NUM_BEAMS,
    length_penalty: float = LENGTH_PENALTY,
) -> dict[str, Any]:
    """The scores of a translator, and what a reader said about its translations of everyday sentences."""
    found: dict[str, Any] = {
        "greedy": asdict(evaluate(translator, corpus.held_out)),
        "beam": {
            "beams": num_beams,
            "length_penalty": length_penalty,
            **asdict(
                evaluate(translator, corpus.held_out, num_beams=num_beams, length_penalty=length_penalty)
            ),
        },
    }
    if corpus.validation:
        scores = evaluate(translator, corpus.validation, num_beams=num_beams, length_penalty=length_penalty)
        found["validation"] = {"sentences": len(corpus.validation), **asdict(scores)}
    table = everyday_table(translator, num_beams=num_beams, length_penalty=length_penalty)
    return {**found, "everyday": _everyday(table)}


def everyday_table(
    translator: Translator, *, num_beams: int = NUM_BEAMS, length_penalty: float = LENGTH_PENALTY
) -> list[JudgedTranslation]:
    """The everyday sentences with a model's translations, and what was said about them."""
    texts = [sentence.english for sentence in everyday_sentences()]
    return judge(translations_of(translator, texts, num_beams=num_beams, length_penalty=length_penalty))


def _everyday(table: Sequence[JudgedTranslation]) -> dict[str, Any]:
    rows = {
        judgement: [row for row in table if row.judgement == judgement] for judgement in (GOOD, WRONG, UNREAD)
    }
    references = [sentence.references for sentence in everyday_sentences()]
    return {
        "sentences": len(table),
        **asdict(score([row.chinese for row in table], references)),
        **{judgement: len(found) for judgement, found in rows.items()},
        "examples": {
            name: [[row.english, row.chinese] for row in rows[name][:SHOWN]] for name in (GOOD, WRONG)
        },
    }
