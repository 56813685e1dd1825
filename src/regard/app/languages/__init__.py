"""The languages of the command line: the option ``--lang``, and errors and help in Chinese.

``python -m regard.app.languages`` lists the texts of errors and of help that have no Chinese yet.
"""

from regard.app.languages.command_line import lang_option
from regard.languages import Texts

TEXTS = Texts("commands")
"""What commands print."""

__all__ = ["TEXTS", "lang_option"]
