"""The ``regard`` command. Commands import what they need when they run, so that ``--help`` is instant."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from regard.app import output_errors
from regard.app.commands.ablate import ablate
from regard.app.commands.bench import bench
from regard.app.commands.cost import cost
from regard.app.commands.demo import demo
from regard.app.commands.doctor import doctor
from regard.app.commands.explain import explain
from regard.app.commands.heads import heads
from regard.app.commands.look import look
from regard.app.commands.mask import mask
from regard.app.commands.play import play
from regard.app.commands.serve import serve
from regard.app.commands.survey import survey
from regard.app.commands.train import train
from regard.app.commands.translate import translate
from regard.app.commands.why import why
from regard.app.languages import LANGUAGE, click_in, lang_option, language_of, usage_message
from regard.errors import RegardError
from regard.printing import safe
from regard.version import __version__

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _CommandGroup(click.Group):
    """Prints regard's own errors as one clean message; anything else is a bug and keeps its traceback.

    Errors and help are in the language of the command line.
    """

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run a command line; its output can go anywhere, in any encoding."""
        lang = language_of(sys.argv[1:] if args is None else args)
        with click_in(lang), output_errors.guarded(lambda error: _refusal(error, lang).show()):
            return super().main(args, *rest, **options)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        cmd.short_help = inspect.cleandoc(cmd.help or "").partition("\n\n")[0]  # click would cut it
        super().add_command(cmd, name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        lang = ctx.meta[LANGUAGE] = language_of(args)
        if args in (["--lang", lang], [f"--lang={lang}"]):
            args = []  # only a language: show the help, as without arguments
        with _said_in(ctx.meta[LANGUAGE]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        # Threads that spin while waiting take time from other processes on a busy machine.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read once, when torch is loaded
        with _said_in(ctx.meta[LANGUAGE]):
            return super().invoke(ctx)


@contextmanager
def _said_in(lang: str) -> Iterator[None]:
    """Errors inside are reported in this language."""
    try:
        yield
    except RegardError as error:
        raise _refusal(error, lang) from error
    except click.UsageError as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            raise
        raise click.UsageError(safe(usage_message(error, lang)), ctx=error.ctx) from error
    except OSError as error:
        explained = output_errors.explain(error)
        if explained is None:
            raise SystemExit(1) from None  # nobody reads the output any longer
        raise _refusal(explained, lang) from error


def _refusal(error: RegardError, lang: str) -> click.ClickException:
    """The error as click prints it."""
    return click.ClickException(safe(error.in_words(lang)))


@click.group(cls=_CommandGroup, context_settings=CONTEXT)
@click.version_option(__version__, message="regard %(version)s")
@lang_option
def main(lang: str) -> None:
    """Compute, see and measure attention, exactly, at any length."""


for command in (
    look,
    heads,
    why,
    ablate,
    explain,
    play,
    mask,
    cost,
    bench,
    demo,
    translate,
    train,
    survey,
    serve,
    doctor,
):
    main.add_command(command)
