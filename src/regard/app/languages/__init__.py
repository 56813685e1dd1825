"""The languages of the command line: the option ``--lang``, and errors and help in Chinese.

``python -m regard.app.languages`` lists the texts of errors and of help that have no Chinese yet.
"""

from regard.app.languages.context import LANGUAGE, LanguageContext
from regard.app.languages.option import HANDED_ON, lang_option, language_of
from regard.app.languages.refusing import chinese_refusal, chinese_usage_error

__all__ = [
    "HANDED_ON",
    "LANGUAGE",
    "LanguageContext",
    "chinese_refusal",
    "chinese_usage_error",
    "lang_option",
    "language_of",
]
