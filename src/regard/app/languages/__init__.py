"""The languages of the command line: the option ``--lang``, and errors in Chinese.

``python -m regard.app.languages`` lists the texts of errors that have no Chinese yet.
"""

from regard.app.languages.option import lang_option, language_of
from regard.app.languages.refusing import chinese_refusal, chinese_usage_error

__all__ = ["chinese_refusal", "chinese_usage_error", "lang_option", "language_of"]
