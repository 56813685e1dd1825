"""How good translations are: BLEU and chrF of sentences that the model has never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from regard.errors import ArgumentError
from regard.translator.sentence_pairs import HeldOut
from regard.translator.translate_text import Translator


@dataclass(frozen=True)
class Scores:
    """BLEU (``tokenize="zh"``, so by characters) and chrF, from 0 to 100, over all references.

    >>> score(["我爱你。"], [["我爱你。"]]).bleu
    100.0
    """

    bleu: float
    chrf: float


def check_scoring() -> None:
    """Raise now, rather than after training, if the scores could not be computed."""
    try:
        import_module("sacrebleu")
    except ImportError as error:
        raise ArgumentError(
            "Computing scores needs sacrebleu.",
            got="no such package",
            do='Install it with pip install "regard[train]".',
        ) from error


def score(translations: Sequence[str], references: Sequence[Sequence[str]]) -> Scores:
    """The scores of translations against all references of each, by sacrebleu.

    >>> score(["猫坐在垫子上。"], [["狗在跑。", "猫坐在垫子上。"]])
    Scores(bleu=100.0, chrf=100.0)
    """
    check_scoring()
    import sacrebleu

    if not translations or len(translations) != len(references) or not all(references):
        raise ArgumentError(
            "Every translation needs references (translations = {translations}).",
            got="{references} with references",
            do="Pass one list of references for each translation.",
            translations=len(translations),
            references=sum(map(bool, references)),
        )
    most = max(len(each) for each in references)
    # sacrebleu takes the first references of all sentences, then the second ones, None where there is none.
    columns: Any = [[each[n] if n < len(each) else None for each in references] for n in range(most)]
    return Scores(
        round(sacrebleu.corpus_bleu(translations, columns, tokenize="zh").score, 2),
        round(sacrebleu.corpus_chrf(translations, columns).score, 2),
    )


def evaluate(
    translator: Translator, held_out: Sequence[HeldOut], *, num_beams: int = 1, length_penalty: float = 1.0
) -> Scores:
    """The scores of a translator on held-out sentences; one that it cannot read counts as empty.

    >>> from regard.translator import HeldOut, embedded
    >>> evaluate(embedded(), [HeldOut("The cat sat on the mat.", ("猫坐在垫子上。",))]).bleu > 0
    True
    """
    texts = [sentence.english for sentence in held_out]
    found = translations_of(translator, texts, num_beams=num_beams, length_penalty=length_penalty)
    return score([found[text] for text in texts], [sentence.references for sentence in held_out])


def translations_of(
    translator: Translator, texts: Sequence[str], *, num_beams: int = 1, length_penalty: float = 1.0
) -> dict[str, str]:
    """The translation of each text; empty for one that the model cannot read."""
    readable = [text for text in texts if translator.reads(text)]
    made = translator.translate_all(readable, num_beams=num_beams, length_penalty=length_penalty)
    return dict.fromkeys(texts, "") | dict(zip(readable, made, strict=True))
