"""The languages of the command line: the option ``--lang``, and errors and help in Chinese.

``python -m regard.app.languages`` lists the texts of errors and of help that have no Chinese yet.
"""

from regard.app.languages.click_errors import ChineseMessage, chinese_usage_error
from regard.app.languages.option import HANDED_ON, LANGUAGE, LanguageContext, lang_option, language_of
from regard.languages import Texts

TEXTS = Texts("commands")
"""What commands print."""

__all__ = [
    "HANDED_ON",
    "LANGUAGE",
    "TEXTS",
    "ChineseMessage",
    "LanguageContext",
    "chinese_usage_error",
    "lang_option",
    "language_of",
]
