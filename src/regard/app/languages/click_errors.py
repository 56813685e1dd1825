"""Errors of the command line in Chinese, as click prints them.

Click formats its messages itself, so these are recognised by their English: ``click.json`` has them, the
specific before the general.

>>> in_chinese("Invalid value for '--heads': 'x' is not a valid integer.")
"'--heads' 的值无效：'x' 不是整数。"
"""

from __future__ import annotations

import os
import re
from typing import IO, Any

import click

from regard.app.languages.option import VARIABLE
from regard.printing import safe
from regard.texts import read_table

_PLACE = re.compile(r"\\\{(\w+)\\\}")


def in_chinese(text: str) -> str:
    """A message of click in Chinese; unchanged if it has no translation."""
    for english, chinese in read_table("click", "zh").items():
        found = re.fullmatch(_PLACE.sub(r"(?P<\1>.*)", re.escape(english)), text, re.DOTALL)
        if found:
            values = found.groupdict()
            if "message" in values:  # all other values are the user's or names
                values["message"] = in_chinese(values["message"])
            return chinese.format(**values)
    return read_table("errors", "zh").get(text, text)  # what the system says of a file


class ChineseMessage(click.UsageError):
    """An error of regard in Chinese."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the usage, where help is, and what is wrong."""
        lines = [f"错误：{self.format_message()}"]
        if self.ctx is not None:
            program = self.ctx.find_root().command_path
            command = self.ctx.command_path.removeprefix(program)
            # Without the variable, help is in Chinese only on request.
            lang = "" if os.environ.get(VARIABLE) == "zh" else " --lang zh"
            lines = [self.ctx.get_usage(), f"帮助：{program}{lang}{command} --help", "", *lines]
        click.echo("\n".join(lines), file=file, err=file is None)


class ChineseUsageMessage(ChineseMessage):
    """A command line that cannot be read, in Chinese, after its usage."""

    exit_code = 2


def chinese_usage_error(error: click.UsageError) -> ChineseUsageMessage:
    """The error as click would print it, in Chinese."""
    from regard.app.languages.help_formatter import ChineseFormatter

    said = in_chinese(error.format_message())
    if error.ctx is not None and isinstance(error, click.BadParameter) and error.param is not None:
        name = error.param.get_error_hint(error.ctx)
        said = said.replace(name, ChineseFormatter().say_names(name))  # as the usage above it has it
    return ChineseUsageMessage(safe(said), error.ctx)
