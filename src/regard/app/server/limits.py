"""How much the server does for anybody, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Every bound in one place; the tests make them small."""

    tokens: int = 16_384
    """Tokens of a text."""
    generated: int = 256
    """Tokens that a decoder may go on with."""
    waiting: int = 8
    """Jobs that wait; one more is refused."""
    workers: int = 3
    """Jobs that run at one time: a short one need not wait for a long one."""
    client_running: int = 2
    """Jobs of one client that run at one time: the others' jobs need not wait for all of one client's."""
    client_jobs: int = 5
    """Jobs of one client that run or wait; one more is refused."""
    job_seconds: float = 900.0
    """How long a job may run."""
    patience: float = 15.0
    """Seconds after which a job ends that nobody asks about."""
    poll_seconds: float = 20.0
    """How long a question about a job may wait for an answer."""
    header_seconds: float = 10.0
    """How long the head of a request may take to arrive, from the connection or the answer before."""
    body_seconds: float = 20.0
    """How long the body of a request may take to arrive."""
    idle_seconds: float = 30.0
    """How long a connection may wait for its next request."""
    stall_seconds: float = 60.0
    """How long a client may take nothing of an answer that it asked for."""
    connections: int = 256
    """Connections at one time."""
    client_connections: int = 64
    """Connections of one client at one time."""
    recording_bytes: int = 1_500_000_000
    """Recordings of texts that were typed; those given at the start do not count."""
    level_bytes: int = 500_000_000
    """Levels of maps."""
    plane_bytes: int = 250_000_000
    """Heads made ready for tiles."""
    page_bytes: int = 250_000_000
    """Pages."""

    @property
    def letters(self) -> int:
        """Letters of a text: a token of ordinary text has four or five."""
        return 8 * self.tokens

    @property
    def body_bytes(self) -> int:
        """A request: the letters, each written as an escape of JSON at worst."""
        return 12 * self.letters + 4096
