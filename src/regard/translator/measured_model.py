"""All scores of a translator at once: held-out, validation, everyday and development sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from regard.translator.evaluation import evaluate, score, translations_of
from regard.translator.everyday import development_sentences, everyday_sentences
from regard.translator.sentence_pairs import CorpusSplit, HeldOut
from regard.translator.translate_text import LENGTH_PENALTY, NUM_BEAMS, Translator
from regard.translator.translation_judgement import GOOD, UNREAD, WRONG, JudgedTranslation, judge

SHOWN = 8
"""How many good and wrong translations are kept as examples."""


def measure(
    translator: Translator,
    corpus: CorpusSplit,
    *,
    num_beams: int = NUM_BEAMS,
    length_penalty: float = LENGTH_PENALTY,
) -> dict[str, Any]:
    """The scores of a translator, and what readers said about its translations of everyday sentences."""
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
    for name, sentences in (("everyday", everyday_sentences()), ("development", development_sentences())):
        table = judged_table(translator, sentences, num_beams=num_beams, length_penalty=length_penalty)
        found[name] = _judged(table, sentences)
    del found["development"]["examples"]
    return found


def judged_table(
    translator: Translator,
    sentences: Sequence[HeldOut],
    *,
    num_beams: int = NUM_BEAMS,
    length_penalty: float = LENGTH_PENALTY,
) -> list[JudgedTranslation]:
    """Sentences with a model's translations, and what was said about them."""
    texts = [sentence.english for sentence in sentences]
    return judge(translations_of(translator, texts, num_beams=num_beams, length_penalty=length_penalty))


def _judged(table: Sequence[JudgedTranslation], sentences: Sequence[HeldOut]) -> dict[str, Any]:
    rows = {
        judgement: [row for row in table if row.judgement == judgement] for judgement in (GOOD, WRONG, UNREAD)
    }
    references = [sentence.references for sentence in sentences]
    both = [row.readers for row in table if len(row.readers) > 1]
    return {
        "sentences": len(table),
        **asdict(score([row.chinese for row in table], references)),
        **{judgement: len(found) for judgement, found in rows.items()},
        "read_by_one": sum(len(row.readers) == 1 for row in table),
        "good_of_each_reader": [sum(one == GOOD for one in said) for said in zip(*both, strict=True)],
        "examples": {
            name: [[row.english, row.chinese] for row in rows[name][:SHOWN]] for name in (GOOD, WRONG)
        },
    }
