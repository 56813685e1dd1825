"""The translator, English to Chinese: data, vocabularies, recipe, training, scores, translating.

>>> from regard.translator import Recipe
>>> Recipe().width
192
"""

from regard.translator.alignment import Alignment, AlignmentHead, align, measure_heads
from regard.translator.embedded import embedded, embedded_alignment_head, translate
from regard.translator.evaluation import Scores, evaluate, score
from regard.translator.export import export
from regard.translator.recipe import Recipe
from regard.translator.sentence_pairs import Corpus, HeldOut, Pair, read_pairs, split
from regard.translator.training import Report, train
from regard.translator.training_folder import Run, recipe_of
from regard.translator.translate_text import Translator, load_translator
from regard.translator.vocabulary import ChineseCharacters, EnglishTokens, Vocabularies
from regard.translator.watched_translation import Look, look
from regard.translator.weight_average import average

__all__ = [
    "Alignment",
    "AlignmentHead",
    "ChineseCharacters",
    "Corpus",
    "EnglishTokens",
    "HeldOut",
    "Look",
    "Pair",
    "Recipe",
    "Report",
    "Run",
    "Scores",
    "Translator",
    "Vocabularies",
    "align",
    "average",
    "embedded",
    "embedded_alignment_head",
    "evaluate",
    "export",
    "load_translator",
    "look",
    "measure_heads",
    "read_pairs",
    "recipe_of",
    "score",
    "split",
    "train",
    "translate",
]
