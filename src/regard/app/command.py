"""The ``regard`` command. Rooms are imported inside the commands, so that ``--help`` is instant."""

from __future__ import annotations

import click

from regard.app.bench import bench
from regard.app.cost import cost
from regard.app.demo import demo
from regard.app.explain import explain
from regard.app.heads import heads
from regard.app.look import look
from regard.app.mask import mask
from regard.app.survey import survey
from regard.app.train import train
from regard.app.translate import translate
from regard.errors import RegardError
from regard.version import __version__

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Clean(click.Group):
    """Turns regard's own errors into one clean message; everything else is a bug and shows itself."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except RegardError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Clean, context_settings=CONTEXT)
@click.version_option(__version__, message="regard %(version)s")
def main() -> None:
    """Compute, see and measure attention, exactly, at any length."""


for command in (look, heads, explain, mask, cost, bench, demo, translate, train, survey):
    main.add_command(command)
