"""The language of a command line: the option ``--lang``, and click's help and errors in Chinese.

``python -m regard.app.languages`` lists the texts of errors and of help that have no Chinese yet.

``--lang`` sets it, before the command or after it; otherwise the environment variable ``REGARD_LANG``;
otherwise it is English. The system's language is ignored, so that scripts read the same output on
every machine.
"""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

import click

from regard.languages import VARIABLE, Texts
from regard.texts import LANGUAGES, read_table

TEXTS = Texts("commands")
"""What commands print."""

LANGUAGE = "regard.language"
"""Where the contexts of one command line keep its language."""

lang_option = click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    default="en",
    envvar=VARIABLE,
    show_default=True,
    show_envvar=True,
    callback=lambda ctx, _, value: ctx.meta.get(LANGUAGE, value),  # --lang before the command counts, too
    help="Language of the texts: English or Chinese.",
)


def language_of(arguments: Sequence[str]) -> str:
    """The language of a command line, known before it is parsed, for errors; the last ``--lang`` wins.

    >>> language_of(["demo", "words", "--lang", "zh"]), language_of(["demo", "--lang=zh"])
    ('zh', 'zh')
    """
    before = "\0".join(["", *takewhile(lambda one: one != "--", arguments), ""])
    asked = [os.environ.get(VARIABLE), *re.findall("\0--lang[=\0]([^\0]*)", before)][-1]
    return asked if asked in LANGUAGES else "en"


class _Template(str):
    """A message of click in Chinese; the kind of number or path that it names is translated, too."""

    def format(self, *values: object, **named: Any) -> str:
        for kind in {"number_type", *(["name"] if "filename" in named else [])} & named.keys():
            named[kind] = read_table("click", "zh").get(named[kind], named[kind])
        return super().format(*values, **named)


@contextmanager
def click_in(lang: str) -> Iterator[None]:
    """Inside this block, click writes its messages, which it gets from gettext, and help in this language."""
    table = {**read_table("errors", lang), **read_table("click", lang)}
    plain = gettext.dgettext, gettext.dngettext, click.Context.formatter_class

    def say(text: str) -> str:
        return _Template(table[text]) if text in table else text

    if lang == "zh":
        gettext.dgettext = lambda domain, message: say(message)
        gettext.dngettext = lambda domain, msgid1, msgid2, n: say(msgid1 if n == 1 else msgid2)
        click.Context.formatter_class = ChineseFormatter
    try:
        yield
    finally:
        gettext.dgettext, gettext.dngettext, click.Context.formatter_class = plain


def usage_message(error: click.UsageError, lang: str) -> str:
    """What is wrong with a command line; in Chinese, arguments are named as in the usage."""
    if lang != "zh":
        return error.format_message()
    if isinstance(error, click.BadParameter) and error.param is not None and error.ctx is not None:
        error.param_hint = ChineseFormatter().say_names(error.param.get_error_hint(error.ctx))
    problem = error.format_message()  # click's own are in Chinese already
    return re.sub(r"(?<=')\.$", "。", gettext.gettext(problem)).replace("。 ", "。")


# ---- help -----------------------------------------------------------------------------------------

_WIDE = "⺀-鿿＀-￦"
_BREAK = re.compile(rf"[{_WIDE}](?!\0)((?<![：（《「『【])(?![，。、；：！？）》」』】”’…—,;!?)\]}}]))?")
_WHOLE = re.compile(r'\[[^\[\]]*\]|"[^"]*"')  # stays on one line: [默认：4], "window(1, 1)"
_TEXT = re.compile(r"^(?!\[).+?(?=(?:\s*\[[^\[\]]*\])*$)", re.DOTALL)  # without [default: 4; x>=1]
_NAMES = re.compile(r"(?<![\w-])[A-Z]{2,}(?:-[A-Z]+)*(?: RANGE)?(?!\w)")


class ChineseFormatter(click.HelpFormatter):
    """Writes Chinese where click gives it English.

    It looks up in ``help.json`` what it is given: paragraphs, what options do, names of arguments. Click
    then lays the Chinese out. It counts characters and breaks lines at spaces, so each wide character is
    followed by a filler until the help is complete: a space where a line may end, otherwise NUL.

    >>> formatter = ChineseFormatter(width=78)
    >>> formatter.write_dl([("--steps INTEGER", "Number of queries.  [默认：16; x>=1]")])
    >>> formatter.getvalue()
    '--steps 整数  查询的数目。  [默认：16；x>=1]\\n'
    """

    def __init__(self, **sizes: Any) -> None:
        super().__init__(**sizes)
        self.width -= 1  # a line may end with a wide character whose filler is not counted

    def say(self, english: str) -> str:
        """A text in Chinese; unchanged if there is none."""
        return read_table("help", "zh").get(english, english)

    def say_names(self, text: str) -> str:
        """A usage or an option with the names of its arguments in Chinese: ``--model 名称或路径``."""
        return _NAMES.sub(lambda name: self.say(name[0]), text)

    def _filled(self, text: str) -> str:
        """The text with fillers, and without the spaces and hyphens at which a line may not end."""

        def joined(whole: re.Match[str]) -> str:
            found = re.sub(f"[{_WIDE}]", "\\g<0>\0", whole[0]).replace(" ", "\1")
            return found if len(found) < self.width - 33 else whole[0]  # beside the widest column of options

        found = _BREAK.sub(lambda it: it[0] + ("\0" if it[1] is None else " "), _WHOLE.sub(joined, text))
        return found.replace("-", "\2")

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """How a command is called."""
        prefix = self._filled(prefix or gettext.gettext("Usage:"))
        super().write_usage(prog, self._filled(self.say_names(args)), prefix)

    def write_heading(self, heading: str) -> None:
        """A heading above options or commands."""
        self.write(f"{heading}：\n")

    def write_text(self, text: str) -> None:
        """Paragraphs; examples, which follow a line with ``\\b``, stay, except for their comments."""
        said = [
            re.sub("(?<= # ).*", lambda comment: self.say(comment[0]), one)
            if one.lstrip().startswith("\b")
            else self.say(" ".join(one.split()))
            for one in re.split(r"\n\s*\n", text)
        ]
        super().write_text(self._filled("\n\n".join(said)))

    def write_dl(self, rows: Iterable[tuple[str, str]], *sizes: Any) -> None:
        """Options or commands, what each does, and what click adds in brackets."""
        default = gettext.gettext("default: {default}").format(default="")
        said = []
        for name, what in rows:
            told = _TEXT.sub(lambda text: self.say(" ".join(text[0].split())), what)
            told = told.replace("default: ", default).replace("; ", "；")
            said.append((self._filled(self.say_names(name)), self._filled(told)))
        super().write_dl(said, *sizes)

    def getvalue(self) -> str:
        """The help, without fillers."""
        shown = re.sub(rf"(?<=[{_WIDE}])[\0 ]|\0", "", super().getvalue())
        return shown.replace("\1", " ").replace("\2", "-")
