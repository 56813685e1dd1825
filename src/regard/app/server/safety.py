"""Who may talk to the server, and what browsers may do with its answers.

* A page of another site can make a browser send requests here. Its requests carry its own name as
  ``Origin`` (or ``Sec-Fetch-Site``) and are refused; and what changes anything is JSON, which a
  foreign page cannot send without asking first.
* A name on the internet can be made to point here (DNS rebinding). Its requests carry that name as
  ``Host`` and are refused.
* On an address that others reach, a token is required: once in the address, then as a cookie, or as
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

from regard.app.server.refused import RefusedError, answer_with

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
    """Whether an address is reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Door:
    """Under which names the server is reached, and with which token."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    names: frozenset[str] = field(default_factory=frozenset)  # further names of this machine

    @property
    def cookie(self) -> str:
        """The name of the cookie: cookies of one host are shared by all of its ports."""
        return f"regard-{self.port}"

    @property
    def cookie_value(self) -> str:
        """What the cookie says: the digest of the token, because cookies take ASCII only."""
        return hashlib.sha256(f"regard {self.token}".encode()).hexdigest()

    @property
    def address(self) -> str:
        """Where a browser finds the server, with the token if there is one."""
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
        # A numeric address cannot be made to point elsewhere; a name must be the machine's own.
        return _is_numeric(name) or name == socket.gethostname().lower()

    def opens(self, given: str | None) -> bool:
        """Whether this is the token."""
        return self.token is None or (given is not None and _same(given, self.token))

    def admits(self, cookie: str | None) -> bool:
        """Whether this is the cookie that was given for the token."""
        return self.token is None or (cookie is not None and _same(cookie, self.cookie_value))


class Guard:
    """Stands before the app: checks every request, and puts its headers on every answer."""

    def __init__(self, app: ASGIApp, door: Door, *, body_bytes: int, body_seconds: float) -> None:
        self.app = app
        self.door = door
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
        except RefusedError as error:
            await answer_with(error, Headers(scope=scope))(scope, receive, guarded)
            return
        await self.app(scope, _replayed(body, receive), guarded)

    def enter(self, scope: Scope) -> Response | None:
        """Raise unless the request may come in; where it is sent first, if anywhere."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.door.knows(hosts[0]):
            raise RefusedError(
                421, "This server is not known by that name.", do="Use the address that it printed."
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
        if self.door.token is None:
            return None
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer ") and self.door.opens(_sent(bearer[7:])):
            return None
        if self.door.admits(_cookie(headers, self.door.cookie)):
            return None
        said = parse_qsl(scope["query_string"].decode("utf-8", "replace"), keep_blank_values=True)
        given = dict(said).get("token")
        if given is not None and scope["method"] == "GET" and self.door.opens(given):
            rest = urlencode([(name, value) for name, value in said if name != "token"])
            # Not left in the address, where it would be seen, copied and kept in the history.
            place = quote(_local(scope["path"]), safe="/")
            answer = RedirectResponse(place + (f"?{rest}" if rest else ""), status_code=303)
            answer.set_cookie(
                self.door.cookie, self.door.cookie_value, httponly=True, samesite="strict", path="/"
            )
            return answer
        raise RefusedError(401, "This server asks for its token.", do="Open the address that it printed.")

    async def body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is small enough and comes soon enough."""
        if scope["method"] in ("GET", "HEAD"):
            return b""
        too_large = RefusedError(
            413,
            "A request has at most {body_bytes:,} bytes.",
            do="Shorten the text.",
            body_bytes=self.body_bytes,
        )
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > self.body_bytes:
            raise too_large
        try:
            found = await asyncio.wait_for(_read(receive, self.body_bytes), self.body_seconds)
        except asyncio.TimeoutError:
            raise RefusedError(
                408,
                "A request arrives within {body_seconds:g} seconds.",
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
    """The body once, then whatever else comes: that the client has gone, say."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _same(given: str, wanted: str) -> bool:
    """Whether two texts are equal, found out in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _sent(value: str) -> str:
    """A value of a header as it was meant: bytes of UTF-8, which HTTP reads as Latin letters.

    >>> _sent("çŒ«".encode("cp1252").decode("latin-1")), _sent("caf\xe9")
    ('猫', 'café')
    """
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _foreign() -> RefusedError:
    return RefusedError(403, "Pages of other sites may not do this.", do="Use the server's own page.")


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found: Any = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else str(found.value)


def _local(path: str) -> str:
    """A path that stays here: two slashes would name another server."""
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
