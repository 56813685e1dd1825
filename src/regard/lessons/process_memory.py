"""How much memory is available, and how much a process has used, as the operating system reports it."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """Memory that new work can use without swapping; None if unknown.

    On Linux the estimate of the kernel (``MemAvailable``: free, or cached and easily released), bounded by a
    limit on the process. Elsewhere all the memory of the machine.
    """
    found = [size for size in (_estimated(), _limit()) if size is not None]
    return min(found) if found else None


def _estimated() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):  # not Linux, or in another format
        for line in MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _limit() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def peak_bytes() -> int | None:
    """The peak memory of this process; None if the system does not report it.

    >>> peak = peak_bytes()
    >>> peak is None or peak > 1 << 20
    True
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Linux counts in KiB
