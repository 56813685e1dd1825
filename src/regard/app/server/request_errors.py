"""Error answers: a status, and the reason in the language that the client asks for."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from regard.errors import RegardError


class SafeJsonResponse(JSONResponse):
    """JSON for any text: names of files and models may have lone surrogates."""

    def render(self, content: Any) -> bytes:
        """The answer in UTF-8, with U+FFFD for what cannot be encoded."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


class RequestError(RegardError):
    """A request that is answered with an error."""

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
    """An error as an answer, with status 422 unless it has its own."""
    status, headers = (error.status, error.headers) if isinstance(error, RequestError) else (422, {})
    return SafeJsonResponse(
        {"error": error.in_words(wanted_language(asked))},
        status_code=status,
        headers={"cache-control": "no-store", **headers},
    )


def wanted_language(asked: Headers) -> str:
    """English or Chinese, whichever comes first in ``Accept-Language``; English by default.

    >>> wanted_language(Headers({"accept-language": "fr, zh-CN;q=0.9, en;q=0.8"}))
    'zh'
    """
    named = re.findall(r"(?:^|,)\s*(en|zh)\b", asked.get("accept-language", ""), re.IGNORECASE)
    return str(named[0]).lower() if named else "en"
