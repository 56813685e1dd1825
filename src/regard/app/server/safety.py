"""Who may talk to the server, and what browsers may do with its answers.

* A page of another site can make a browser send requests here. They carry that site's name as
  ``Origin`` (or ``Sec-Fetch-Site``) and are refused; and requests that change anything must be JSON,
  which a foreign page cannot send without a preflight request.
* A domain can be made to point here (DNS rebinding). Its requests carry that name as ``Host`` and are
  refused.
* On a public address a token is required: once in the URL, then as a cookie, or as
  ``Authorization: Bearer``.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import socket
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.app.server.request_errors import RequestError, answer_with

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class ServerAddress:
    """The names under which the server can be reached, and its token."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    names: frozenset[str] = field(default_factory=frozenset)  # other names of this machine

    @property
    def cookie(self) -> str:
        """The name of the cookie: cookies of one host are shared by all of its ports."""
        return f"regard-{self.port}"

    @property
    def cookie_value(self) -> str:
        """The value of the cookie: a digest of the token, because cookies are ASCII."""
        return hashlib.sha256(f"regard {self.token}".encode()).hexdigest()

    @property
    def address(self) -> str:
        """The URL of the server, with the token if there is one."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        query = "" if self.token is None else f"?{urlencode({'token': self.token})}"
        return f"http://{shown}:{self.port}/{query}"

    def knows(self, said: str) -> bool:
        """Whether a Host header names this server."""
        name, port = _split(said)
        if port not in (self.port, None if self.port == 80 else self.port):
            return False
        if name in LOOPBACK_NAMES or name == self.host or name in self.names:
            return True
        if is_loopback(self.host):
            return False
        # A numeric address cannot be rebound; a name must belong to this machine.
        return _is_numeric(name) or name == socket.gethostname().lower()

    def opens(self, given: str | None) -> bool:
        """Whether this is the token."""
        return self.token is None or (given is not None and _same(given, self.token))

    def admits(self, cookie: str | None) -> bool:
        """Whether this is the cookie for the token."""
        return self.token is None or (cookie is not None and _same(cookie, self.cookie_value))


class RequestGuard:
    """Wraps the app: checks every request, and adds security headers to every answer."""

    def __init__(
        self, app: ASGIApp, server_address: ServerAddress, *, body_bytes: int, body_seconds: float
    ) -> None:
        self.app = app
        self.server_address = server_address
        self.body_bytes = body_bytes
        self.body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in own if name not in known),
                ]
            await send(message)

        try:
            first = self.enter(scope)
            if first is not None:
                await first(scope, receive, guarded)
                return
            body = await self.body(scope, receive)
        except RequestError as error:
            await answer_with(error, Headers(scope=scope))(scope, receive, guarded)
            return
        await self.app(scope, _replayed(body, receive), guarded)

    def enter(self, scope: Scope) -> Response | None:
        """Raise unless the request is allowed; returns where to redirect it, if anywhere."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.server_address.knows(hosts[0]):
            raise RequestError(
                421, "The Host header must name this server.", do="Use the address that it printed."
            )
        method = scope["method"]
        if method not in ("GET", "HEAD"):
            site, origin = headers.get("sec-fetch-site"), headers.get("origin")
            if origin is not None and origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}"):
                raise _foreign()
            if site not in (None, "same-origin", "none"):
                raise _foreign()
        return self._token(scope, headers)

    def _token(self, scope: Scope, headers: Headers) -> Response | None:
        if self.server_address.token is None:
            return None
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer ") and self.server_address.opens(_sent(bearer[7:])):
            return None
        if self.server_address.admits(_cookie(headers, self.server_address.cookie)):
            return None
        said = parse_qsl(scope["query_string"].decode("utf-8", "replace"), keep_blank_values=True)
        given = dict(said).get("token")
        if given is not None and scope["method"] == "GET" and self.server_address.opens(given):
            rest = urlencode([(name, value) for name, value in said if name != "token"])
            # Removed from the URL, where it would be visible, copied and kept in the history.
            place = quote(_local(scope["path"]), safe="/")
            answer = RedirectResponse(place + (f"?{rest}" if rest else ""), status_code=303)
            answer.set_cookie(
                self.server_address.cookie,
                self.server_address.cookie_value,
                httponly=True,
                samesite="strict",
                path="/",
            )
            return answer
        raise RequestError(
            401, "This server requires its token.", do="Open the address that the server printed."
        )

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is small enough and arrives in time."""
        if scope["method"] in ("GET", "HEAD"):
            return b""
        too_large = RequestError(
            413,
            "A request can have at most {body_bytes:,} bytes.",
            do="Shorten the text.",
            body_bytes=self.body_bytes,
        )
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > self.body_bytes:
            raise too_large
        try:
            found = await asyncio.wait_for(_read(receive, self.body_bytes), self.body_seconds)
        except asyncio.TimeoutError:
            raise RequestError(
                408,
                "A request must arrive within {body_seconds:g} seconds.",
                do="Send it again.",
                body_seconds=self.body_seconds,
            ) from None
        if found is None:
            raise too_large
        return found


async def _read(receive: Receive, most: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once, then later messages, for example that the client disconnected."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _same(given: str, wanted: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _sent(value: str) -> str:
    """The value of a header, whose UTF-8 bytes HTTP decodes as Latin-1.

    >>> _sent("çŒ«".encode("cp1252").decode("latin-1")), _sent("caf\xe9")
    ('猫', 'café')
    """
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _foreign() -> RequestError:
    return RequestError(
        403, "Pages of other sites are not allowed to do this.", do="Use the server's own page."
    )


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found: Any = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else str(found.value)


def _local(path: str) -> str:
    """A path on this server: two slashes would name another one."""
    return "/" + path.lstrip("/\\")


def _split(said: str) -> tuple[str, int | None]:
    """Name and port of a Host header.

    >>> _split("[::1]:8000"), _split("LocalHost")
    (('::1', 8000), ('localhost', None))
    """
    name, bracket, rest = said.lower().partition("]")
    if bracket:
        name, port = name.removeprefix("["), rest.removeprefix(":")
    else:
        name, _, port = said.lower().rpartition(":") if ":" in said else (said.lower(), "", "")
    return name, int(port) if port.isdecimal() and len(port) < 6 else None if not port else -1


def _is_numeric(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
