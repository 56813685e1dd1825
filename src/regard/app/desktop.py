"""Whether there is a desktop on which a page can be opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def has_desktop(environment: Mapping[str, str] | None = None, platform: str | None = None) -> bool:
    """Whether somebody sits in front of a screen: never in CI or over SSH.

    On Linux and its relatives a display server says so; Windows and macOS always have one.

    >>> has_desktop({"DISPLAY": ":0"}, "linux"), has_desktop({}, "linux"), has_desktop({}, "darwin")
    (True, False, True)
    >>> has_desktop({"DISPLAY": ":0", "CI": "true"}, "linux")
    False
    """
    known = os.environ if environment is None else environment
    if any(known.get(name) for name in ("CI", "SSH_CONNECTION", "SSH_TTY")):
        return False
    if (platform or sys.platform) in ("darwin", "win32"):
        return True
    return any(known.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
