"""How much the server does for a client, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Every limit in one place; tests make them small."""

    tokens: int = 16_384
    """The most tokens of a text."""
    generated: int = 256
    """The most tokens that a decoder may generate."""
    picture: int = 1_000_000
    """The most bytes of a picture; models make it small anyway."""
    waiting: int = 8
    """The most waiting jobs; one more is refused."""
    workers: int = 3
    """Jobs that run at the same time, so that a short one need not wait for a long one."""
    client_running: int = 2
    """Jobs of one client that run at the same time, so that one client cannot block the others."""
    client_jobs: int = 5
    """The most running and waiting jobs of one client; one more is refused."""
    job_seconds: float = 900.0
    """How long a job may run."""
    patience: float = 15.0
    """Seconds after which a job stops that nobody asks about."""
    poll_seconds: float = 20.0
    """How long a request for the state of a job may wait."""
    header_seconds: float = 10.0
    """How long the header of a request may take, from the connection or the previous answer."""
    body_seconds: float = 20.0
    """How long the body of a request may take to arrive."""
    idle_seconds: float = 30.0
    """How long a connection may wait for its next request."""
    stall_seconds: float = 60.0
    """How long a client may stop receiving an answer."""
    connections: int = 256
    """Connections at the same time."""
    client_connections: int = 64
    """Connections of one client at the same time."""
    recording_bytes: int = 1_500_000_000
    """Memory for recordings of typed texts; those given at the start do not count."""
    level_bytes: int = 500_000_000
    """Memory for the levels of maps."""
    matrix_bytes: int = 250_000_000
    """Memory for heads prepared for tiles."""
    page_bytes: int = 250_000_000
    """Memory for pages."""
    summary_bytes: int = 50_000_000
    """Memory for the small pictures of all heads of long texts."""

    @property
    def characters(self) -> int:
        """Characters of a text: a token of ordinary text has four or five."""
        return 8 * self.tokens

    @property
    def picture_characters(self) -> int:
        """Characters of a picture in base 64."""
        return 4 * (-(-self.picture // 3))

    @property
    def body_bytes(self) -> int:
        """Bytes of a request: at worst each character is a JSON escape."""
        return max(12 * self.characters, self.picture_characters) + 4096
