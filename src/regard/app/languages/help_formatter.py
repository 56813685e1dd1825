"""The help of the commands in Chinese.

Click writes the help of a command into a formatter, in English. This one looks up what it is given in
``help.json`` and writes the Chinese in its place: paragraphs of a docstring one by one, what options do,
names of arguments (``TEXT``), headings, and what click adds (``[default: 4; x>=1]``). Examples, which
follow a line with ``\\b``, stay unchanged, except for their comments. What is not translated stays
English; a test reports it.

>>> formatter = ChineseFormatter(width=78)
>>> formatter.write_dl([("--steps INTEGER", "Number of queries.  [default: 16; x>=1]")])
>>> formatter.getvalue()
'--steps 整数  查询的数目。  [默认：16；x>=1]\\n'
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

import click

from regard.app.languages.line_breaks import wrap
from regard.languages import columns_of
from regard.texts import read_table

_NARROWEST = 10
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n")
_NAMES = re.compile(r"(?<![\w-])[A-Z]{2,}(?:-[A-Z]+)*(?: RANGE)?(?!\w)")
_WITH_EXTRAS = re.compile(r"(.*?)((?:\s*\[[^\[\]]*\])*)", re.DOTALL)
_EXTRA = re.compile(r"\[([^\[\]]*)\]")


def first_paragraph(command: click.Command) -> str:
    """What a command does, in one sentence, for the list of commands."""
    return " ".join(_PARAGRAPHS.split(inspect.cleandoc(command.help or ""))[0].split("\n"))


class ChineseFormatter(click.HelpFormatter):
    """Writes Chinese where it is given English, and counts the columns of a terminal."""

    def say(self, english: str) -> str:
        """A text in Chinese; unchanged if there is none."""
        return read_table("help", "zh").get(english, english)

    def say_names(self, text: str) -> str:
        """A usage or an option with the names of its arguments in Chinese.

        >>> ChineseFormatter().say_names("--model NAME-OR-PATH")
        '--model 名称或路径'
        """
        return _NAMES.sub(lambda name: self.say(name[0]), text)

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """How a command is called; a long line continues under the arguments."""
        first = f"{self.say('Usage:' if prefix is None else prefix.strip())}{prog} "
        lines = wrap(self.say_names(args), max(self.width - columns_of(first), _NARROWEST))
        self.write(first + ("\n" + " " * columns_of(first)).join(lines) + "\n")

    def write_heading(self, heading: str) -> None:
        """A heading above options or commands."""
        self.write(f"{'':>{self.current_indent}}{self.say(heading)}：\n")

    def write_text(self, text: str) -> None:
        """Paragraphs, wrapped; examples line by line."""
        indent = " " * self.current_indent
        written = []
        for paragraph in _PARAGRAPHS.split(text.strip("\n")):
            head, *lines = paragraph.splitlines()
            if head.strip() == "\b":
                shown = [self._example(line) for line in lines]
            else:
                shown = wrap(self.say(" ".join(paragraph.split())), self.width - self.current_indent)
            written.append("\n".join(indent + line for line in shown))
        self.write("\n\n".join(written) + "\n")

    def _example(self, line: str) -> str:
        code, mark, comment = line.partition(" # ")
        return code + mark + (self.say(comment) if comment else "")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Options or commands, and beside each what it does."""
        said = [(self.say_names(name), self._say_what(what)) for name, what in rows]
        left = min(max(columns_of(name) for name, _ in said), col_max) + col_spacing
        indent = " " * self.current_indent
        for name, what in said:
            lines = wrap(what, max(self.width - self.current_indent - left, _NARROWEST))
            if columns_of(name) > left - col_spacing:
                self.write(f"{indent}{name}\n")
                name = ""
            for line in lines:
                self.write(f"{indent}{name}{' ' * (left - columns_of(name))}{line}".rstrip() + "\n")
                name = ""

    def _say_what(self, what: str) -> str:
        """What an option does, and what click adds in brackets."""
        found = _WITH_EXTRAS.fullmatch(what)
        assert found is not None  # everything is a text and no brackets, if nothing else
        text = " ".join(found[1].split())
        extras = ["；".join(map(self._say_extra, one.split("; "))) for one in _EXTRA.findall(found[2])]
        return "  ".join([*([self.say(text)] if text else []), *(f"[{one}]" for one in extras)])

    def _say_extra(self, extra: str) -> str:
        """What click says about the values of an option: ``default: 4``, ``required`` or ``x>=1``."""
        name, colon, value = extra.partition(": ")
        if colon:
            return self.say(f"{name}: {{0}}").replace("{0}", value)
        return self.say(extra) if extra.isalpha() else extra
