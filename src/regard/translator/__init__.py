"""The English–Chinese translator: data, vocabularies, recipe, training, scores, translation.

>>> from regard.translator import Recipe
>>> Recipe().width
192
"""

from regard.deprecation import renamed_names as _renamed_names
from regard.translator.alignment import AlignmentHead, TranslationAlignment, align, measure_heads
from regard.translator.built_in import UnknownWordsWarning, embedded, embedded_alignment_head, translate
from regard.translator.dictionary import DictionaryEntry, read_dictionary
from regard.translator.evaluation import Scores, evaluate, score
from regard.translator.everyday import development_sentences, everyday_sentences
from regard.translator.exported_model import export
from regard.translator.recipe import Recipe
from regard.translator.sentence_pairs import CorpusSplit, HeldOut, Pair, read_pairs, split
from regard.translator.training import TrainingProgress, train
from regard.translator.training_folder import TrainingRun, recipe_of
from regard.translator.training_split import written_pairs
from regard.translator.translate_text import Translator, load_translator
from regard.translator.vocabulary import ChineseCharacters, EnglishTokens, Vocabularies
from regard.translator.watched_translation import WatchedTranslation, look
from regard.translator.weight_average import average

__all__ = [
    "AlignmentHead",
    "ChineseCharacters",
    "CorpusSplit",
    "DictionaryEntry",
    "EnglishTokens",
    "HeldOut",
    "Pair",
    "Recipe",
    "Scores",
    "TrainingProgress",
    "TrainingRun",
    "TranslationAlignment",
    "Translator",
    "UnknownWordsWarning",
    "Vocabularies",
    "WatchedTranslation",
    "align",
    "average",
    "development_sentences",
    "embedded",
    "embedded_alignment_head",
    "evaluate",
    "everyday_sentences",
    "export",
    "load_translator",
    "look",
    "measure_heads",
    "read_dictionary",
    "read_pairs",
    "recipe_of",
    "score",
    "split",
    "train",
    "translate",
    "written_pairs",
]

__getattr__ = _renamed_names(
    __name__, Corpus="CorpusSplit", Look="WatchedTranslation", Report="TrainingProgress", Run="TrainingRun"
)
