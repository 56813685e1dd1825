"""What the command line says when it refuses, in Chinese."""

from __future__ import annotations

from typing import IO, Any

import click

from regard.errors import RegardError


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
            pieces = " ".join(self.ctx.command.collect_usage_pieces(self.ctx))
            click.echo(f"用法：{self.ctx.command_path} {pieces}", file=file, err=err)
            click.echo(f"帮助：{self.ctx.command_path} --help\n", file=file, err=err)
        click.echo(f"错误：{self.format_message()}", file=file, err=err)


def chinese_refusal(error: RegardError) -> ChineseRefusal:
    """The error as click prints it."""
    from regard.app.languages.catalogue import error_in_chinese

    return ChineseRefusal(error_in_chinese(error))


def chinese_usage_error(error: click.UsageError) -> ChineseUsageError:
    """The error as click prints it."""
    from regard.app.languages.catalogue import say_in_chinese

    return ChineseUsageError(say_in_chinese(error.format_message()), ctx=error.ctx)
