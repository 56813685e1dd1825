"""Assembles and runs the server."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from regard.app.server.connections import Connection
from regard.app.server.limits import Limits
from regard.app.server.recording_store import RecordingStore, remove_parts
from regard.app.server.request_errors import RequestError, answer_with
from regard.app.server.routes import Routes
from regard.app.server.safety import RequestGuard, ServerAddress, is_loopback
from regard.app.server.served_models import ServedModel
from regard.app.server.server_state import ServerState
from regard.errors import ArgumentError, RecordingFileError, RegardError, reason
from regard.views.html import visible_text


def make_app(
    models: list[ServedModel],
    library: RecordingStore,
    server_address: ServerAddress,
    limits: Limits | None = None,
    *,
    lang: str | None = None,
) -> ASGIApp:
    """The app behind its guard; ``app.server_state`` has its models, recordings and jobs.

    ``lang`` is the initial language of its pages; by default that of the reader's browser.
    """
    limits = limits or Limits()
    server_state = ServerState(models, library, limits, lang)
    routes = Routes(server_state)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        del app
        yield
        server_state.jobs.close()
        routes.close()

    app = Starlette(
        routes=routes.all(),
        lifespan=life,
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    guard = RequestGuard(app, server_address, body_bytes=limits.body_bytes, body_seconds=limits.body_seconds)
    guard.server_state = server_state  # type: ignore[attr-defined]
    return guard


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        refused = RequestError(405, "This address does not support that method.", headers=headers)
    else:
        refused = RequestError(error.status_code, "There is nothing at this address.", headers=headers)
    return answer_with(refused, request.headers)


async def _failed(request: Request, error: Exception) -> Response:
    """Starlette has logged the error; it may name files, so the browser gets no details."""
    del error
    return answer_with(
        RequestError(500, "Something went wrong; see the server's terminal for details."), request.headers
    )


def open_library(
    paths: Sequence[Path],
    keep: Path | None,
    limits: Limits,
    skipped: Callable[[str, RegardError], None] | None = None,
) -> RecordingStore:
    """The recordings at these paths, those that an earlier server kept, and the folder for new ones.

    ``skipped`` is called with the name of each kept file that cannot be shown, and why.
    """
    from regard.recording import load

    library = RecordingStore(limits.recording_bytes, keep)
    for path in paths:
        recording = load(path)
        if not recording.calls:
            raise RecordingFileError(
                "A recording needs at least one call to be shown.",
                got="none in {path}",
                do="Record it again.",
                path=path,
            )
        library.give(path, recording)
    if keep is not None:
        if not keep.is_dir():
            raise ArgumentError(
                "--keep must name an existing folder.", got="{keep}", do="Create it first.", keep=keep
            )
        remove_parts(keep)
        known = {path.resolve() for path in paths}
        for file, error in library.offer_kept(known):
            if skipped is not None:
                skipped(visible_text(file.name), error)
    return library


def server_address_of(host: str, port: int, token: str | None) -> ServerAddress:
    """The names and token of a server; a public address needs a token, generated if none is given."""
    if token is not None and len(token) < 8:
        raise ArgumentError(
            "A token needs at least 8 characters.",
            got="{token_count}",
            do="Omit it to have one generated.",
            token_count=len(token),
        )
    if token is not None and not token.isprintable():
        # Lone surrogates or line breaks: no browser can send these.
        raise ArgumentError(
            "A token can only have characters that can be typed.",
            got="{ascii}",
            do="Choose another.",
            ascii=ascii(token)[:60],
        )
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    return ServerAddress(host, port, token)


def serve(
    app: ASGIApp, server_address: ServerAddress, ready: Callable[[], None], limits: Limits | None = None
) -> None:
    """Serve until interrupted; ``ready`` is called when the address is bound."""
    family = socket.AF_INET6 if ":" in server_address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((server_address.host, server_address.port))
    except OSError as error:
        listener.close()
        raise ArgumentError(
            "The server needs a free address.",
            got="{host}:{port}: {reason}",
            do="Choose another --port.",
            host=server_address.host,
            port=server_address.port,
            reason=reason(error),
        ) from error
    server = Server(app, limits or Limits())
    ready()
    # uvicorn re-raises the signal after a clean shutdown, which is the normal end.
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


class Server(uvicorn.Server):
    """uvicorn with the connections and deadlines of this app."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        connection: Any = partial(Connection, limits=limits)
        super().__init__(
            uvicorn.Config(
                app,
                http=connection,
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="on",
                timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
                h11_max_incomplete_event_size=32_768,
                timeout_graceful_shutdown=3,
                # Anyone can send X-Forwarded-For; it only counts if the user names a proxy.
                proxy_headers="FORWARDED_ALLOW_IPS" in os.environ,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the jobs first, so that pending requests about them are answered."""
        jobs = getattr(getattr(self._app, "server_state", None), "jobs", None)
        if jobs is not None:
            jobs.stop()
        await super().shutdown(sockets)
