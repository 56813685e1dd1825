"""Connections with deadlines and a limit per client, so that idle ones cannot block the server.

A connection that waits for a request (a new one, one that sends its header a byte at a time, one that
is kept alive) may be closed at any time: at its deadline, or to make room for a newer one. So opening many
silent connections blocks nobody: each new connection closes the oldest silent one. Only connections that
are being answered count towards the limit of a client.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.app.server.clients import client_at
from regard.app.server.limits import Limits

BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
    b"content-type: text/plain\r\ncontent-length: 28\r\n\r\nToo many requests under way."
)
LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n"
    b"content-type: text/plain\r\ncontent-length: 26\r\n\r\nThe request came too late."
)


class Connection(H11Protocol):
    """One connection of uvicorn, with deadlines for the header of a request and for receiving the answer."""

    def __init__(self, *args: Any, limits: Limits, **named: Any) -> None:
        super().__init__(*args, **named)
        self.limits = limits
        self.owner = ""
        self.since = 0.0
        self._head_deadline: asyncio.TimerHandle | None = None
        self._stall_deadline: asyncio.TimerHandle | None = None

    @property
    def silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    # ---- what happens to it ----------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Replace an older silent connection if all are taken."""
        super().connection_made(transport)
        self.owner = client_at(self.client[0] if self.client else None)
        self.since = self.loop.time()
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        own = [one for one in others if one.owner == self.owner]
        if len(own) >= self.limits.client_connections:
            self._make_room(own)
        elif len(others) >= self.limits.connections:
            counts = Counter(one.owner for one in others)
            self._make_room(others, lambda one: -counts[one.owner])
        self._head_deadline = self.loop.call_later(self.limits.header_seconds, self._too_late)

    def _make_room(self, others: list[Connection], first: Callable[[Connection], int] | None = None) -> None:
        """Close the oldest silent connection, or this one if all others are being answered."""
        silent = [one for one in others if one.silent]
        if silent:
            chosen = min(silent, key=lambda one: (first(one) if first else 0, one.since))
            chosen.end()
        else:
            self.end(BUSY)

    def data_received(self, data: bytes) -> None:
        """Limit the time from the first byte of a request to the end of its header."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if not self.silent:
            self._stop_waiting()
        elif self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self.limits.header_seconds, self._too_late)

    def pause_writing(self) -> None:
        """The client has stopped receiving the answer; give it some time."""
        super().pause_writing()
        self._stall_deadline = self.loop.call_later(self.limits.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client receives again."""
        super().resume_writing()
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadlines."""
        self._stop_waiting()
        self._go_on()
        super().connection_lost(exc)

    # ---- how it ends -----------------------------------------------------------------------------

    def end(self, answer: bytes = b"") -> None:
        """Close the connection, perhaps with a message, and stop counting it."""
        self._stop_waiting()
        self.connections.discard(self)
        if answer:
            self.transport.write(answer)
        self.transport.close()

    def _too_late(self) -> None:
        self._head_deadline = None
        if self.silent and not self.transport.is_closing():
            # Without a single byte of a request there is nobody to answer.
            self.end(LATE if self.conn.trailing_data[0] and self.cycle is None else b"")

    def _stop_waiting(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _go_on(self) -> None:
        if self._stall_deadline is not None:
            self._stall_deadline.cancel()
            self._stall_deadline = None
