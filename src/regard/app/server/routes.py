"""The addresses of the server and what each answers. Everything under ``/api`` is in ``/openapi.json``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from regard.app.server.assets import assets, document, etag_of
from regard.app.server.clients import client_of
from regard.app.server.fields import (
    number,
    number_field,
    object_of,
    text_field,
    word,
    word_field,
)
from regard.app.server.jobs import Subscription
from regard.app.server.openapi import schema
from regard.app.server.recording_store import StoredRecording
from regard.app.server.refused import Json, RefusedError, answer_with, wanted_language
from regard.app.server.served_models import Wish
from regard.app.server.tasks import Desk
from regard.errors import RegardError
from regard.version import __version__
from regard.views.map import HIDING, KINDS, TILE, TYPES, Plane, encoded, peak, tile
from regard.views.map.tile_encoding import SCALES

Answer = TypeVar("Answer")

MEDIA = {"png": "image/png"}
DAY = 86_400


class Routes:
    """Answers from one desk."""

    def __init__(self, desk: Desk, *, threads: int = 2) -> None:
        self.desk = desk
        # Tiles have threads of their own, so that they never wait behind a job.
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
            ("GET", "/api/jobs/{job}", self.job),
            ("DELETE", "/api/jobs/{job}", self.cancel),
            ("GET", one, self.recording),
            ("GET", f"{one}/texts", self.texts),
            ("POST", f"{one}/maps", self.build),
            ("POST", f"{one}/pages", self.write_page),
            ("GET", f"{one}/margins/{{call}}/{{head}}", self.margins),
            ("GET", f"{one}/peaks/{{call}}/{{head}}/{{level}}/{{row}}/{{column}}", self.peak),
            ("GET", f"{one}/tiles/{{call}}/{{head}}/{{level}}/{{row}}/{{column}}", self.tile),
        ]
        by_path: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
        for method, path, endpoint in routes:
            by_path.setdefault(path, {})[method] = endpoint
        return [Route(path, _by_method(ends), methods=list(ends)) for path, ends in by_path.items()]

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # ---- documents -------------------------------------------------------------------------------

    async def page(self, name: str, request: Request) -> Response:
        """A document of the app itself."""
        del request
        return Response(
            document(name, self.desk.lang), media_type="text/html", headers={"cache-control": "no-store"}
        )

    async def look(self, request: Request) -> Response:
        """The page of a recording; until it is written, a document that asks for it and waits."""
        entry = self._entry(request)
        call = self._call(entry, request.query_params) if "call" in request.query_params else None
        found = self.desk.pages.get((entry.id, call))
        content = document("wait", self.desk.lang) if found is None else found
        return Response(content, media_type="text/html", headers={"cache-control": "no-store"})

    async def asset(self, request: Request) -> Response:
        """A module or a style sheet."""
        found = assets().get(request.path_params["name"])
        if found is None:
            raise RefusedError(404, "There is no such file.")
        return _cached(request, found.etag, lambda: Response(found.content, media_type=found.type))

    async def openapi(self, request: Request) -> Response:
        """The description of the interface."""
        del request
        return Json(schema(self.desk.limits))

    # ---- what there is ---------------------------------------------------------------------------

    async def state(self, request: Request) -> Response:
        """Models, recordings given at the start, limits."""
        del request
        limits = self.desk.limits
        return Json(
            {
                "version": __version__,
                "models": [model.described() for model in self.desk.models.values()],
                "recordings": [entry.brief() for entry in self.desk.library.given.values()],
                "limits": {
                    "tokens": limits.tokens,
                    "letters": limits.letters,
                    "generated": limits.generated,
                    "tile": TILE,
                },
            },
            headers={"cache-control": "no-store"},
        )

    async def recording(self, request: Request) -> Response:
        """A recording without its numbers."""
        entry = self._entry(request)
        described = {**entry.described(), "whole": self.desk.whole(entry)}
        return Json(described, headers={"cache-control": "no-store"})

    async def texts(self, request: Request) -> Response:
        """The tokens of a recording."""
        entry = self._entry(request)
        return _cached(
            request, etag_of(entry.id, entry.words, "texts"), lambda: Json({"texts": entry.texts()})
        )

    # ---- jobs ------------------------------------------------------------------------------------

    async def read(self, request: Request) -> Response:
        """Begin to read a text."""
        limits = self.desk.limits
        said = object_of(await _json(request), ("model", "text", "pair", "generate"))
        model = self.desk.models.get(word_field(said, "model", list(self.desk.models), ""))
        text = text_field(said, "text", most=limits.letters)
        pair = text_field(said, "pair", most=limits.letters, needed=False)
        generate = number_field(said, "generate", most=limits.generated, default=0)
        assert model is not None
        assert text is not None
        assert generate is not None
        return self._begun(self.desk.read(model, Wish(text, pair, generate), client_of(request.scope)))

    async def build(self, request: Request) -> Response:
        """Begin to build the coarse levels of a head."""
        entry = self._entry(request)
        said = object_of(await _json(request), ("call", "head", "sinks"))
        call = number_field(said, "call", most=len(entry.calls) - 1, default=0)
        head = number_field(said, "head", most=10**6, default=None)
        sinks = word_field(said, "sinks", HIDING, "show")
        assert call is not None
        chosen = entry.calls[call].head_numbers[0] if head is None else head
        client = client_of(request.scope)
        return self._begun(await self._in_thread(lambda: self.desk.build(entry, call, chosen, sinks, client)))

    async def write_page(self, request: Request) -> Response:
        """Begin to write the page of a recording, or of one call of it."""
        entry = self._entry(request)
        said = object_of(await _json(request), ("call",))
        call = number_field(said, "call", most=len(entry.calls) - 1, default=None)
        return self._begun(self.desk.write_page(entry, call, client_of(request.scope)))

    def _begun(self, job: Subscription | None) -> Response:
        if job is None:
            return Json({"job": None})
        return Json({"job": job.described()}, status_code=202)

    async def job(self, request: Request) -> Response:
        """How far a job is: at once, or as soon as it is further than ``after`` says."""
        job = self._job(request)
        after = number(request.query_params, "after", 10**9)
        wait = min(number(request.query_params, "wait", 0), int(self.desk.limits.poll_seconds))
        end = time.monotonic() + wait
        job.watchers += 1
        try:
            while not job.over and job.version <= after and time.monotonic() < end:
                if await request.is_disconnected():
                    break
                await asyncio.sleep(0.1)
        finally:
            # A client that closes its page ends its question, and then the job runs out of patience.
            job.watchers -= 1
            job.asked = time.monotonic()
        return Json(job.described(wanted_language(request.headers)), headers={"cache-control": "no-store"})

    async def cancel(self, request: Request) -> Response:
        """Give a job up; it stops where nobody else wants it."""
        job = self._job(request)
        self.desk.jobs.cancel(job)
        return Json(job.described(wanted_language(request.headers)))

    # ---- the map ---------------------------------------------------------------------------------

    async def tile(self, request: Request) -> Response:
        """The cells of a tile, as numbers or as a picture."""
        entry, call, head, sinks = self._place(request)
        level, row, column = (number(request.path_params, name) for name in ("level", "row", "column"))
        kind = word(request.query_params, "kind", KINDS, "max")
        type_ = word(request.query_params, "type", TYPES, "float32")
        scale = word(request.query_params, "scale", SCALES, "linear")
        etag = etag_of(
            entry.words, str((entry.id, call, head, sinks, level, row, column, kind, type_, scale))
        )
        if _known(request, etag):
            return Response(status_code=304, headers=_marks(etag))

        def work() -> tuple[bytes, tuple[int, int]]:
            plane = self._plane(entry, call, head, sinks)
            levels = self.desk.levels.get((entry.id, call, head, sinks))
            if levels is None and level <= plane.coarsest and self.desk.needs_levels(plane, level):
                raise RefusedError(
                    409,
                    "Level {level} of this head is not built yet.",
                    do="Post to …/maps, and ask again.",
                    level=level,
                )
            cells = tile(plane, level=level, row=row, column=column, kind=kind, levels=levels)
            return encoded(cells, type_, scale), (cells.shape[0], cells.shape[1])

        content, (rows, columns) = await self._in_thread(work)
        headers = {**_marks(etag), "x-regard-rows": str(rows), "x-regard-columns": str(columns)}
        return Response(content, media_type=MEDIA.get(type_, "application/octet-stream"), headers=headers)

    async def peak(self, request: Request) -> Response:
        """The pair with the greatest weight behind one cell."""
        entry, call, head, sinks = self._place(request)
        level, row, column = (number(request.path_params, name) for name in ("level", "row", "column"))
        found = await self._in_thread(
            lambda: peak(self._plane(entry, call, head, sinks), level=level, row=row, column=column)
        )
        return Json(found._asdict(), headers={"cache-control": "no-store"})

    async def margins(self, request: Request) -> Response:
        """Attention received by every key, then the entropy of every query, as float32."""
        entry, call, head, sinks = self._place(request)
        levels = self.desk.levels.get((entry.id, call, head, sinks))
        if levels is None:
            await self._in_thread(lambda: self._plane(entry, call, head, sinks))
            raise RefusedError(
                409, "The margins of this head are not built yet.", do="Post to …/maps, and ask again."
            )
        etag = etag_of(entry.words, str((entry.id, call, head, sinks, "margins")))
        content = levels.received.numpy().tobytes() + levels.entropy.numpy().tobytes()
        return _cached(request, etag, lambda: Response(content, media_type="application/octet-stream"))

    # ---- what a request is about -----------------------------------------------------------------

    def _entry(self, request: Request) -> StoredRecording:
        entry = self.desk.library.get(request.path_params["recording"])
        if entry is None:
            raise RefusedError(404, "There is no such recording here any more.", do="Read the text again.")
        return entry

    def _job(self, request: Request) -> Subscription:
        job = self.desk.jobs.get(request.path_params["job"])
        if job is None:
            raise RefusedError(404, "There is no such job any more.", do="Begin it again.")
        return job

    def _call(self, entry: StoredRecording, said: Any) -> int:
        call = number(said, "call")
        if call >= len(entry.calls):
            raise RefusedError(
                404,
                "There is no such call (0 … {calls_count}).",
                got="{call}",
                calls_count=len(entry.calls) - 1,
                call=call,
            )
        return call

    def _place(self, request: Request) -> tuple[StoredRecording, int, int, str]:
        entry = self._entry(request)
        call = self._call(entry, request.path_params)
        head = number(request.path_params, "head")
        return entry, call, head, word(request.query_params, "sinks", HIDING, "show")

    def _plane(self, entry: StoredRecording, call: int, head: int, sinks: str) -> Plane:
        return self.desk.plane(entry, call, head, sinks)


def _by_method(ends: dict[str, Callable[[Request], Awaitable[Response]]]) -> Any:
    """One endpoint for all methods of a path, with errors said in words."""

    async def endpoint(request: Request) -> Response:
        answer = ends.get(request.method) or ends["GET"]  # HEAD is GET without the body
        try:
            return await answer(request)
        except RegardError as error:
            return answer_with(error, request.headers)

    return endpoint


async def _json(request: Request) -> bytes:
    """The body of a request that says it is JSON: a foreign page cannot say so without asking."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "A request is JSON.", got="another content type", do="Send application/json.")
    return await request.body()


def _marks(etag: str) -> dict[str, str]:
    """May be kept by the browser, which asks each time whether it still holds."""
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
