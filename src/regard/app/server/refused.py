"""How the server says no: a status, and the reason in words of the language that the client asks for."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from regard.errors import RegardError


class Json(JSONResponse):
    """JSON for any text: what a file or a model calls itself may hold halves of characters."""

    def render(self, content: Any) -> bytes:
        """The answer in UTF-8, with a mark in place of what cannot be written in it."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


class RefusedError(RegardError):
    """A request that is answered with an error, in words."""

    def __init__(
        self,
        status: int,
        must: str,
        *,
        got: str = "",
        do: str = "",
        headers: dict[str, str] | None = None,
        **values: object,
    ) -> None:
        self.status = status
        self.headers = headers or {}
        super().__init__(must, got=got, do=do, **values)


def answer_with(error: RegardError, asked: Headers) -> Response:
    """An error as an answer; one that is not the server's own refuses what was asked for, 422."""
    status, headers = (error.status, error.headers) if isinstance(error, RefusedError) else (422, {})
    return Json(
        {"error": error.in_words(wanted_language(asked))},
        status_code=status,
        headers={"cache-control": "no-store", **headers},
    )


def wanted_language(asked: Headers) -> str:
    """English or Chinese, whichever the client names first in ``Accept-Language``; English without it.

    >>> wanted_language(Headers({"accept-language": "fr, zh-CN;q=0.9, en;q=0.8"}))
    'zh'
    """
    named = re.findall(r"(?:^|,)\s*(en|zh)\b", asked.get("accept-language", ""), re.IGNORECASE)
    return str(named[0]).lower() if named else "en"
