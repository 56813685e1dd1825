"""The server put together, and run."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from regard.app.server.library import Library, remove_parts
from regard.app.server.limits import Limits
from regard.app.server.models import Model
from regard.app.server.refusing import RefusedError, answer_with
from regard.app.server.routes import Routes
from regard.app.server.safety import Door, Guard, is_loopback
from regard.app.server.work import Desk
from regard.errors import ArgumentError, RecordingFileError


def make_app(
    models: list[Model],
    library: Library,
    door: Door,
    limits: Limits | None = None,
    *,
    lang: str | None = None,
) -> ASGIApp:
    """The app with its guard; ``app.desk`` is what stands behind it.

    ``lang`` is the language in which its pages begin; without it, that of the reader's browser.
    """
    limits = limits or Limits()
    desk = Desk(models, library, limits, lang)
    routes = Routes(desk)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        del app
        yield
        desk.jobs.close()
        routes.close()

    app = Starlette(
        routes=routes.all(),
        lifespan=life,
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    guard = Guard(app, door, body_bytes=limits.body_bytes, body_seconds=limits.body_seconds)
    guard.desk = desk  # type: ignore[attr-defined]
    return guard


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        refused = RefusedError(405, "This address does not take that method.", headers=headers)
    else:
        refused = RefusedError(error.status_code, "There is nothing at this address.", headers=headers)
    return answer_with(refused, request.headers)


async def _failed(request: Request, error: Exception) -> Response:
    """Starlette has put it into the log; it may name files, so the browser hears no more than this."""
    del error
    return answer_with(
        RefusedError(500, "Something went wrong; the server's terminal says what."), request.headers
    )


def open_library(paths: Sequence[Path], keep: Path | None, limits: Limits) -> Library:
    """The recordings at these paths, and the folder for new ones."""
    from regard.recording import load

    library = Library(limits.recording_bytes, keep)
    for path in paths:
        recording = load(path)
        if not recording.calls:
            raise RecordingFileError(
                "A recording to look at has calls.", got=f"none in {path}", do="Record it again."
            )
        library.give(path, recording)
    if keep is not None:
        if not keep.is_dir():
            raise ArgumentError("--keep names a folder.", got=str(keep), do="Make it first.")
        remove_parts(keep)
    return library


def door_of(host: str, port: int, token: str | None) -> Door:
    """The door of an address; one that others reach has a token, made up if none was given."""
    if token is not None and len(token) < 8:
        raise ArgumentError(
            "A token has at least 8 letters.", got=f"{len(token)}", do="Leave it out to have one made."
        )
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    return Door(host, port, token)


def serve(app: ASGIApp, door: Door, ready: Callable[[], None]) -> None:
    """Answer until somebody ends it; ``ready`` is called when the address is taken."""
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((door.host, door.port))
    except OSError as error:
        listener.close()
        raise ArgumentError(
            "The server takes an address that is free.",
            got=f"{door.host}:{door.port}: {error.strerror}",
            do="Choose another --port.",
        ) from error
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=30,
        limit_concurrency=256,
        h11_max_incomplete_event_size=32_768,
        timeout_graceful_shutdown=3,
    )
    ready()
    # uvicorn hands the signal on after it has ended everything; that is how this is meant to end.
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])
