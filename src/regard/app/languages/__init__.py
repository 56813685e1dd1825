"""The languages of the command line: the option ``--lang``, and errors in Chinese."""

from regard.app.languages.option import lang_option, language_of

__all__ = ["lang_option", "language_of"]
