"""The routes of the server. Everything under ``/api`` is described in ``/openapi.json``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from regard.app.server.api_types import (
    CellParameters,
    HeadParameters,
    JobPollParameters,
    LineParameters,
    MapRequest,
    PageParameters,
    PageRequest,
    RowParameters,
    SummaryParameters,
    SummaryRequest,
    TileParameters,
    count_request,
    reading_request,
)
from regard.app.server.assets import assets, document, etag_of
from regard.app.server.clients import client_of
from regard.app.server.jobs import Subscription
from regard.app.server.openapi import schema
from regard.app.server.recording_store import StoredRecording
from regard.app.server.request_errors import RequestError, SafeJsonResponse, answer_with, wanted_language
from regard.app.server.request_validation import check_choice, parsed_body, parsed_parameters
from regard.app.server.server_state import ServerState
from regard.errors import RegardError
from regard.version import __version__
from regard.views.map import TILE, HeadMatrix, Levels, encoded, line_of, peak, strongest_key, tile

Computed = TypeVar("Computed")
Parameters = TypeVar("Parameters", bound=Struct)
AnyHead = TypeVar("AnyHead", bound=HeadParameters)
CallIndex = TypeVar("CallIndex", int, "int | None")

MEDIA = {"png": "image/png"}
DAY = 86_400


class Routes:
    """The endpoints, over the models, recordings and jobs of one ``ServerState``."""

    def __init__(self, server_state: ServerState, *, threads: int = 2) -> None:
        self.server_state = server_state
        # Tiles have their own threads, so that they never wait for a job.
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="regard-tile")

    def all(self) -> list[Route]:
        """Every route."""
        one = "/api/recordings/{recording}"
        routes: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/", partial(self.page, "home")),
            ("GET", "/map/{recording}", partial(self.page, "map")),
            ("GET", "/look/{recording}", self.look),
            ("GET", "/assets/{name:path}", self.asset),
            ("GET", "/openapi.json", self.openapi),
            ("GET", "/api/state", self.state),
            ("POST", "/api/readings", self.read),
            ("POST", "/api/counts", self.count),
            ("GET", "/api/jobs/{job}", self.job),
            ("DELETE", "/api/jobs/{job}", self.cancel),
            ("GET", one, self.recording),
            ("GET", f"{one}/texts", self.texts),
            ("POST", f"{one}/maps", self.build),
            ("POST", f"{one}/pages", self.write_page),
            ("POST", f"{one}/summaries", self.summarise),
            ("GET", f"{one}/summaries", self.summaries),
            ("GET", f"{one}/margins/{{call}}/{{head}}", self.margins),
            ("GET", f"{one}/peaks/{{call}}/{{head}}/{{level}}/{{row}}/{{column}}", self.peak),
            ("GET", f"{one}/rows/{{call}}/{{head}}/{{row}}", self.row),
            ("GET", f"{one}/lines/{{call}}/{{head}}/{{side}}/{{token}}", self.line),
            ("GET", f"{one}/tiles/{{call}}/{{head}}/{{level}}/{{row}}/{{column}}", self.tile),
        ]
        by_path: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
        for method, path, endpoint in routes:
            by_path.setdefault(path, {})[method] = endpoint
        return [Route(path, _by_method(ends), methods=list(ends)) for path, ends in by_path.items()]

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], Computed]) -> Computed:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # ---- documents -------------------------------------------------------------------------------

    async def page(self, name: str, request: Request) -> Response:
        """One of the documents of the app."""
        del request
        return Response(
            document(name, self.server_state.lang),
            media_type="text/html",
            headers={"cache-control": "no-store"},
        )

    async def look(self, request: Request) -> Response:
        """The page of a recording; until it is written, a document that requests it and waits."""
        entry = self._entry(request)
        call = self._call(entry, _parameters(request, PageParameters).call)
        found = self.server_state.pages.get((entry.id, call))
        content = document("wait", self.server_state.lang) if found is None else found
        return Response(content, media_type="text/html", headers={"cache-control": "no-store"})

    async def asset(self, request: Request) -> Response:
        """A module or a style sheet."""
        found = assets().get(request.path_params["name"])
        if found is None:
            raise RequestError(404, "This file does not exist.")
        return _cached(request, found.etag, lambda: Response(found.content, media_type=found.type))

    async def openapi(self, request: Request) -> Response:
        """The description of the interface."""
        del request
        return SafeJsonResponse(schema(self.server_state.limits))

    # ---- what there is ---------------------------------------------------------------------------

    async def state(self, request: Request) -> Response:
        """Models, recordings given at the start, limits."""
        del request
        limits = self.server_state.limits
        return SafeJsonResponse(
            {
                "version": __version__,
                "models": [model.described() for model in self.server_state.models.values()],
                "recordings": [entry.brief() for entry in self.server_state.library.given.values()],
                "limits": {
                    "tokens": limits.tokens,
                    "letters": limits.characters,
                    "generated": limits.generated,
                    "picture": limits.picture,
                    "tile": TILE,
                },
            },
            headers={"cache-control": "no-store"},
        )

    async def recording(self, request: Request) -> Response:
        """The description of a recording."""
        entry = self._entry(request)
        described = {**entry.described(), "whole": self.server_state.whole(entry)}
        return SafeJsonResponse(described, headers={"cache-control": "no-store"})

    async def texts(self, request: Request) -> Response:
        """The tokens of a recording."""
        entry = self._entry(request)
        return _cached(
            request,
            etag_of(entry.id, entry.words, "texts"),
            lambda: SafeJsonResponse({"texts": entry.texts()}),
        )

    async def count(self, request: Request) -> Response:
        """The number of tokens of a text, before it is read."""
        limits = self.server_state.limits
        said = parsed_body(await _json(request), count_request(limits))
        check_choice("model", said.model, list(self.server_state.models))
        model = self.server_state.models[said.model]
        most = min(model.longest, limits.tokens)
        found = await self._in_thread(lambda: model.count(said.text, most))
        return SafeJsonResponse(
            {"tokens": found.tokens, "most": most, "characters": found.characters},
            headers={"cache-control": "no-store"},
        )

    # ---- jobs ------------------------------------------------------------------------------------

    async def read(self, request: Request) -> Response:
        """Start reading a text."""
        said = parsed_body(await _json(request), reading_request(self.server_state.limits))
        check_choice("model", said.model, list(self.server_state.models))
        return self._begun(
            self.server_state.read(self.server_state.models[said.model], said, client_of(request.scope))
        )

    async def build(self, request: Request) -> Response:
        """Start building the coarse levels of a head."""
        entry = self._entry(request)
        said = parsed_body(await _json(request), MapRequest)
        call = self._call(entry, said.call)
        head = entry.calls[call].head_numbers[0] if said.head is None else said.head
        client = client_of(request.scope)
        return self._begun(
            await self._in_thread(
                lambda: self.server_state.build(entry, call, head, said.sinks, client, what=said.what)
            )
        )

    async def write_page(self, request: Request) -> Response:
        """Start writing the page of a recording, or of one of its calls."""
        entry = self._entry(request)
        call = self._call(entry, parsed_body(await _json(request), PageRequest).call)
        return self._begun(self.server_state.write_page(entry, call, client_of(request.scope)))

    async def summarise(self, request: Request) -> Response:
        """Start making pictures, statistics and roles of all heads."""
        entry = self._entry(request)
        call = self._call(entry, parsed_body(await _json(request), SummaryRequest).call)
        return self._begun(self.server_state.summarise(entry, call, client_of(request.scope)))

    async def summaries(self, request: Request) -> Response:
        """The pictures, statistics and roles that are ready."""
        entry = self._entry(request)
        first = _parameters(request, SummaryParameters).first
        found = await self._in_thread(lambda: self.server_state.summary(entry).described(first))
        return SafeJsonResponse(found, headers={"cache-control": "no-store"})

    def _begun(self, job: Subscription | None) -> Response:
        if job is None:
            return SafeJsonResponse({"job": None})
        return SafeJsonResponse({"job": job.described()}, status_code=202)

    async def job(self, request: Request) -> Response:
        """The progress of a job, now or as soon as its version is greater than ``after``."""
        job = self._job(request)
        said = _parameters(request, JobPollParameters)
        end = time.monotonic() + min(said.wait, self.server_state.limits.poll_seconds)
        job.watchers += 1
        try:
            while not job.over and job.version <= said.after and time.monotonic() < end:
                if await request.is_disconnected():
                    break
                await asyncio.sleep(0.1)
        finally:
            # A client that closes its page no longer waits, so the job will stop.
            job.watchers -= 1
            job.asked = time.monotonic()
        return SafeJsonResponse(
            job.described(wanted_language(request.headers)), headers={"cache-control": "no-store"}
        )

    async def cancel(self, request: Request) -> Response:
        """Cancel a job; it stops unless another client waits for it."""
        job = self._job(request)
        self.server_state.jobs.cancel(job)
        return SafeJsonResponse(job.described(wanted_language(request.headers)))

    # ---- the map ---------------------------------------------------------------------------------

    async def tile(self, request: Request) -> Response:
        """The cells of a tile, as numbers or as a picture."""
        entry, said = self._place(request, TileParameters)
        etag = etag_of(entry.words, str((entry.id, structs.astuple(said))))
        if _known(request, etag):
            return Response(status_code=304, headers=_marks(etag))

        if said.what != "weight" and said.type != "float32":
            raise RequestError(
                422, "Tiles of {what} must be float32.", got="type = {type}", what=said.what, type=said.type
            )

        def work() -> tuple[bytes, tuple[int, int]]:
            matrix = self._matrix(entry, said)
            levels = self._levels(entry, said)
            if (
                levels is None
                and said.level <= matrix.coarsest
                and self.server_state.needs_levels(matrix, said.level)
            ):
                raise RequestError(
                    409,
                    "Level {level} of this head is not built yet.",
                    do="Post to …/maps, then ask again.",
                    level=said.level,
                )
            cells = tile(
                matrix, level=said.level, row=said.row, column=said.column, kind=said.kind, levels=levels
            )
            return encoded(cells, said.type, said.scale), (cells.shape[0], cells.shape[1])

        content, (rows, columns) = await self._in_thread(work)
        headers = {**_marks(etag), "x-regard-rows": str(rows), "x-regard-columns": str(columns)}
        return Response(content, media_type=MEDIA.get(said.type, "application/octet-stream"), headers=headers)

    async def peak(self, request: Request) -> Response:
        """The pair with the largest weight in one cell."""
        entry, said = self._place(request, CellParameters)
        found = await self._in_thread(
            lambda: peak(self._matrix(entry, said), level=said.level, row=said.row, column=said.column)
        )
        return SafeJsonResponse(found._asdict(), headers={"cache-control": "no-store"})

    async def row(self, request: Request) -> Response:
        """The key that one query attends to most."""
        entry, said = self._place(request, RowParameters)
        found = await self._in_thread(lambda: strongest_key(self._matrix(entry, said), row=said.row))
        return SafeJsonResponse(found._asdict(), headers={"cache-control": "no-store"})

    async def line(self, request: Request) -> Response:
        """What one query attends to, or what attends to one key, as float32."""
        entry, said = self._place(request, LineParameters)

        def work() -> bytes:
            found = line_of(self._matrix(entry, said), side=said.side, token=said.token)
            return found.float().numpy().tobytes()

        content = await self._in_thread(work)
        headers = {"cache-control": "no-store"}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def margins(self, request: Request) -> Response:
        """Attention received by every key, then the entropy of every query, as float32."""
        entry, said = self._place(request, HeadParameters)
        levels = self._levels(entry, said)
        if levels is None:
            await self._in_thread(lambda: self._matrix(entry, said))
            raise RequestError(
                409, "The margins of this head are not built yet.", do="Post to …/maps, then ask again."
            )
        etag = etag_of(entry.words, str((entry.id, structs.astuple(said), "margins")))
        content = levels.received.numpy().tobytes() + levels.entropy.numpy().tobytes()
        headers = {"x-regard-greatest": repr(levels.greatest)}
        return _cached(
            request, etag, lambda: Response(content, media_type="application/octet-stream", headers=headers)
        )

    # ---- what a request is about -----------------------------------------------------------------

    def _entry(self, request: Request) -> StoredRecording:
        entry = self.server_state.library.get(request.path_params["recording"])
        if entry is None:
            raise RequestError(404, "The server does not have this recording.", do="Read the text again.")
        return entry

    def _job(self, request: Request) -> Subscription:
        job = self.server_state.jobs.get(request.path_params["job"])
        if job is None:
            raise RequestError(404, "This job no longer exists.", do="Start it again.")
        return job

    def _call(self, entry: StoredRecording, call: CallIndex) -> CallIndex:
        if call is not None and call >= len(entry.calls):
            raise RequestError(
                404,
                "This call does not exist (0 … {last}).",
                got="{call}",
                last=len(entry.calls) - 1,
                call=call,
            )
        return call

    def _place(self, request: Request, kind: type[AnyHead]) -> tuple[StoredRecording, AnyHead]:
        entry = self._entry(request)
        said = _parameters(request, kind)
        self._call(entry, said.call)
        return entry, said

    def _matrix(self, entry: StoredRecording, said: HeadParameters) -> HeadMatrix:
        return self.server_state.matrix(entry, said.call, said.head, said.sinks, said.what)

    def _levels(self, entry: StoredRecording, said: HeadParameters) -> Levels | None:
        return self.server_state.levels.get((entry.id, said.call, said.head, said.sinks, said.what))


def _by_method(ends: dict[str, Callable[[Request], Awaitable[Response]]]) -> Any:
    """One endpoint for all methods of a path; errors become answers."""

    async def endpoint(request: Request) -> Response:
        answer = ends.get(request.method) or ends["GET"]  # HEAD is GET without the body
        try:
            return await answer(request)
        except RegardError as error:
            return answer_with(error, request.headers)

    return endpoint


def _parameters(request: Request, kind: type[Parameters]) -> Parameters:
    """The parameters in the path and the query of a URL."""
    return parsed_parameters({**request.query_params, **request.path_params}, kind)


async def _json(request: Request) -> bytes:
    """The body, if it is declared as JSON: a foreign page cannot send that without a preflight request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(
            415,
            "The body of a request must be JSON.",
            got="another content type",
            do="Send application/json.",
        )
    return await request.body()


def _marks(etag: str) -> dict[str, str]:
    """The browser may cache the answer, but must revalidate it each time."""
    return {"etag": etag, "cache-control": "private, no-cache"}


def _known(request: Request, etag: str) -> bool:
    said = request.headers.get("if-none-match", "")
    return etag in (one.strip().removeprefix("W/") for one in said.split(","))


def _cached(request: Request, etag: str, answer: Callable[[], Response]) -> Response:
    if _known(request, etag):
        return Response(status_code=304, headers=_marks(etag))
    found = answer()
    found.headers.update(_marks(etag))
    return found
