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
    workers: int = 2
    """Jobs that run at one time: a short one need not wait for a long one."""
    job_seconds: float = 900.0
    """How long a job may run."""
    patience: float = 15.0
    """Seconds after which a job ends that nobody asks about."""
    poll_seconds: float = 20.0
    """How long a question about a job may wait for an answer."""
    body_seconds: float = 20.0
    """How long a request may take to arrive."""
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
