"""In which language a command line is answered: known to all of its commands before they are parsed."""

from __future__ import annotations

import click

LANGUAGE = "regard.language"
"""Where the contexts of one command line keep it."""


class LanguageContext(click.Context):
    """A context that writes help in the language of its command line."""

    def make_formatter(self) -> click.HelpFormatter:
        """What the help is written into. The catalogue is not read for English."""
        if self.meta.get(LANGUAGE) != "zh":
            return super().make_formatter()
        from regard.app.languages.helping import ChineseFormatter

        return ChineseFormatter(width=self.terminal_width, max_width=self.max_content_width)
