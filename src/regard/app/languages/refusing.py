"""What the command line says when it refuses, in Chinese."""

from __future__ import annotations

import os
from typing import IO, Any

import click

from regard.app.languages.option import VARIABLE
from regard.errors import RegardError
from regard.printing import safe


class ChineseRefusal(click.ClickException):
    """An error of regard, said in Chinese."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it as click would."""
        click.echo(f"错误：{self.format_message()}", file=file, err=file is None)


class ChineseUsageError(click.UsageError):
    """A command line that cannot be read, said in Chinese."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the usage, where help is, and what is wrong."""
        err = file is None
        if self.ctx is not None:
            program = self.ctx.find_root().command_path
            command = self.ctx.command_path.removeprefix(program)
            # Without the variable, help is in Chinese only if it is asked for so.
            lang = "" if os.environ.get(VARIABLE) == "zh" else " --lang zh"
            click.echo(self.ctx.get_usage(), file=file, err=err)
            click.echo(f"帮助：{program}{lang}{command} --help\n", file=file, err=err)
        click.echo(f"错误：{self.format_message()}", file=file, err=err)


def chinese_refusal(error: RegardError) -> ChineseRefusal:
    """The error as click prints it."""
    return ChineseRefusal(safe(error.in_words("zh")))


def chinese_usage_error(error: click.UsageError) -> ChineseUsageError:
    """The error as click prints it."""
    from regard.app.languages.catalogue import say_in_chinese
    from regard.app.languages.helping import ChineseFormatter

    said = say_in_chinese(error.format_message())
    if error.ctx is not None and isinstance(error, click.BadParameter) and error.param is not None:
        name = error.param.get_error_hint(error.ctx)
        said = said.replace(name, ChineseFormatter().say_names(name))  # as the usage above it has it
    return ChineseUsageError(safe(said), ctx=error.ctx)
