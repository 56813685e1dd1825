"""``regard serve``: the web app on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from regard.app.languages import TEXTS, lang_option

if TYPE_CHECKING:
    from regard.app.server.served_models import Model


@click.command()
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="A folder of a model, or its name on the hub; may be repeated.",
)
@click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file that seen.save wrote; may be repeated.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--token", help="What visitors must know; on an address that others reach one is made up without it."
)
@click.option(
    "--max-tokens",
    default=16_384,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="Longest text.",
)
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Folder into which recordings of typed texts are saved."
)
@lang_option
@click.pass_context
def serve(
    context: click.Context,
    models: tuple[str, ...],
    recordings: tuple[Path, ...],
    host: str,
    port: int,
    token: str | None,
    max_tokens: int,
    keep: Path | None,
    lang: str,
) -> None:
    """Look at attention in the browser: type a text, see its views, and zoom through its map.

    Only this machine reaches the server unless --host says otherwise. The browser chooses among the
    models given here; it cannot make the server load or fetch others.

    \b
    regard serve
    regard serve --model ./my-model --recording book.safetensors
    regard serve --host 0.0.0.0 --token "a long secret"
    """
    from regard import machine

    machine.prepare()  # before torch is imported
    from rich.markup import escape

    from regard.app.server.limits import Limits
    from regard.errors import PackageError
    from regard.views.terminal_weights import SafeConsole

    try:
        from regard.app.server.run_server import door_of, make_app, open_library
        from regard.app.server.run_server import serve as answer
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise PackageError(
            "The web app needs starlette and uvicorn.",
            got="an installation without {name}",
            do='Install them: pip install "regard[serve]".',
            name=error.name,
        ) from error
    from regard.app.server.served_models import load_models

    console = SafeConsole()
    limits = Limits(tokens=max_tokens)
    door = door_of(host, port, token)
    skipped: list[str] = []
    with console.status(TEXTS.say("serve.opening", lang)):
        library = open_library(
            recordings,
            keep,
            limits,
            lambda name, error: skipped.append(
                TEXTS.say("serve.skipped", lang, name=name, reason=error.in_words(lang))
            ),
        )
        offered = load_models(models)
    app = make_app(offered, library, door, limits, lang=lang if _asked_for(context) else None)

    def ready() -> None:
        said = TEXTS.say("serve.ready", lang, address=escape(door.address))
        console.print(said, highlight=False, soft_wrap=True)
        for line in skipped:
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
        names = [*(_name(model, lang) for model in offered), *(one.title for one in library.given.values())]
        for line in names or [TEXTS.say("serve.nothing", lang)]:
            console.print(f"  {line}", highlight=False, markup=False)
        console.print(TEXTS.say("serve.ends", lang), highlight=False)

    answer(app, door, ready, limits)


def _asked_for(context: click.Context) -> bool:
    """Whether somebody chose the language; else pages begin in that of the browser."""
    return context.get_parameter_source("lang") is not ParameterSource.DEFAULT


def _name(model: Model, lang: str) -> str:
    """The name of a model; the embedded one has a name in every language."""
    return TEXTS.say("serve.translator", lang) if model.id == "translator" else model.label
