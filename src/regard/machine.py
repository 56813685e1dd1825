"""This machine, before torch is imported: whether half precision works on its CPU, and where caches are.

Some virtual machines advertise CPU instructions (AMX) that they do not allow. torch trusts them, and a
product of two bfloat16 matrices kills the whole process with *Illegal instruction*. Nothing inside the
process can catch that, so a child process tries it first; if the child dies, ``ONEDNN_MAX_CPU_ISA``
keeps torch's kernels from using these instructions, provided it is set before torch computes anything.

The child is started whatever the CPU reports: the kernel's list of flags omits AMX on exactly those
machines where the CPU reports it and the system does not allow it, so a short list proves nothing. The
trial costs one import of torch (2 s), once: the result is cached per machine, CPU and version of torch.

Nothing here raises: if nothing can be tried or cached, nothing is changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from regard import atomic

SETTING = "ONEDNN_MAX_CPU_ISA"
"""The environment variable that keeps oneDNN, torch's kernel library, from using newer instructions."""

LIMITS = ("AVX512_CORE_FP16", "AVX512_CORE", "AVX2")
"""Its values, mildest first: without AMX, without the half precisions of AVX-512, without AVX-512."""

CACHE = "REGARD_CACHE"
"""The environment variable that names the cache folder."""

CPUINFO = Path("/proc/cpuinfo")
TIMEOUT = 120.0
"""How many seconds a child may take; importing torch from a cold disk is slow."""

RETRY = 24 * 3600.0
"""How many seconds until a trial without a result is repeated."""

CHILD = """
import sys
if sys.path and not sys.path[0]:
    del sys.path[0]  # the current folder, whose files are not ours to run
if sys.platform == "win32":
    import ctypes
    ctypes.windll.kernel32.SetErrorMode(0x8007)  # no dialog that waits for a click when this dies
else:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dump either
import torch
torch.set_num_threads(1)
F = torch.nn.functional
generator = torch.Generator().manual_seed(0)

def product(dtype):
    for rows in (1, 64, 256):
        x, w = (torch.randn(n, 64, generator=generator).to(dtype) for n in (rows, 96))
        yield x @ w.T, x.float() @ w.float().T
        yield F.linear(x, w, w[:, 0]), F.linear(x.float(), w.float(), w[:, 0].float())

def sdpa(dtype):
    for causal in (False, True):
        q, k, v = (torch.randn(1, 4, 128, 64, generator=generator).to(dtype) for _ in range(3))
        exact = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
        yield F.scaled_dot_product_attention(q, k, v, is_causal=causal), exact

for work in (product, sdpa):
    for dtype in (torch.bfloat16, torch.float16):
        print("trying", str(dtype)[6:], work.__name__, flush=True)
        for found, exact in work(dtype):
            if not torch.allclose(found.float(), exact, rtol=0.05, atol=0.5):
                sys.exit("wrong numbers")
print("done", flush=True)
"""
"""What the child runs: products and SDPA in both half precisions, each named before it is tried."""


# ---- the result ------------------------------------------------------------------------------


@dataclass(frozen=True)
class HalfPrecision:
    """The result of trying bfloat16 and float16 on this machine.

    ``outcome`` is "works"; "limited" if the process dies unless ``setting`` is in the environment;
    "dies" if no setting helps; or "unknown" if it could not be tried. ``detail`` says where it died,
    or why the outcome is unknown.
    """

    outcome: str
    limit: str = ""
    detail: str = ""

    @property
    def setting(self) -> str:
        """What to set before torch is imported; empty if nothing is needed.

        >>> HalfPrecision("limited", limit="AVX2").setting
        'ONEDNN_MAX_CPU_ISA=AVX2'
        """
        return f"{SETTING}={self.limit}" if self.limit else ""


def prepare() -> HalfPrecision | None:
    """Prepare this process for half precision; call it before torch is imported.

    Sets ``ONEDNN_MAX_CPU_ISA`` if the machine needs it. If the user has set it, or torch is already
    imported, nothing is tried and None is returned.
    """
    if SETTING in os.environ or "torch" in sys.modules:
        return None
    found = half_precision()
    if found.limit:
        os.environ[SETTING] = found.limit
    return found


def half_precision(*, again: bool = False) -> HalfPrecision:
    """Whether half precision works on this machine: the cached result, or that of a child process.

    ``again=True`` ignores the cache. If ``ONEDNN_MAX_CPU_ISA`` is set, only that value is tried.
    """
    kept = None if again else _kept()
    if kept is not None:
        return kept
    found = _tried()
    _keep(found)
    return found


# ---- trying it -------------------------------------------------------------------------------


def _tried() -> HalfPrecision:
    first = _run_child()
    if first.outcome != "dies" or SETTING in os.environ:
        return first
    for limit in LIMITS:
        if _run_child(limit).outcome == "works":
            return HalfPrecision("limited", limit, first.detail)
    return first


def _run_child(limit: str = "") -> HalfPrecision:
    """Try it once, in a separate process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({SETTING: limit} if limit else {})}
    if not sys.executable or getattr(sys, "frozen", False):
        return HalfPrecision("unknown", detail="no Python to start a process with")
    try:
        run = subprocess.run(  # noqa: S603 - this Python, and the text above
            [sys.executable, "-c", CHILD],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired:
        return HalfPrecision("unknown", detail=f"no answer within {TIMEOUT:.0f} s")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return HalfPrecision("unknown", detail=f"{type(error).__name__}: {error}")
    if run.returncode == 0:
        return HalfPrecision("works")
    lines = run.stdout.decode("utf-8", "replace").splitlines()
    tried = next((line.removeprefix("trying ") for line in lines[::-1] if line.startswith("trying ")), "")
    cause = death(run.returncode)
    if cause:
        return HalfPrecision("dies", detail=f"{tried or 'import torch'}: {cause}")
    said = run.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return HalfPrecision("unknown", detail=": ".join([*([tried] if tried else []), *said]))


_DEADLY = ("SIGILL", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGTRAP", "SIGABRT")
_ILLEGAL = "illegal instruction"
_WINDOWS = {0xC000001D: _ILLEGAL, 0xC0000096: _ILLEGAL, 0xC0000005: "access violation"}


def death(returncode: int) -> str:
    """What killed a process; empty if it ended by itself or was terminated from outside.

    >>> death(-signal.SIGILL), death(1)
    ('illegal instruction', '')
    """
    if returncode & 0xFFFFFFFF in _WINDOWS:
        return _WINDOWS[returncode & 0xFFFFFFFF]
    number = -returncode if returncode < 0 else returncode - 128  # as shells report it
    for name in _DEADLY:
        known = getattr(signal, name, None)  # Windows has only some of them
        if known is not None and number == known:
            return _ILLEGAL if name == "SIGILL" else name
    return ""


# ---- caching it ------------------------------------------------------------------------------


def cache_folder() -> Path:
    """The cache folder: ``REGARD_CACHE``, or the default of the operating system."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home) / "regard" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "regard"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "regard"


def _file() -> Path:
    """The cache file; each machine, CPU and version of torch has its own, so a home folder can be shared."""
    about = [platform.node(), cpu_text(), torch_version(), os.environ.get(SETTING, ""), CHILD]
    digest = hashlib.blake2b("\0".join(about).encode("utf-8", "replace"), digest_size=12).hexdigest()
    return cache_folder() / f"half-precision-{digest}.json"


def _kept() -> HalfPrecision | None:
    try:
        path = _file()
        found = json.loads(path.read_text(encoding="utf-8"))
        answer = HalfPrecision(**found)
        known = answer.outcome in ("works", "limited", "dies", "unknown")
        whole = all(isinstance(value, str) for value in found.values())
        fitting = (answer.limit in LIMITS) == (answer.outcome == "limited")
        fresh = answer.outcome != "unknown" or 0 <= time.time() - path.stat().st_mtime < RETRY
    except (OSError, ValueError, TypeError, RecursionError):
        return None  # missing or damaged
    return answer if known and whole and fitting and fresh else None


def _keep(found: HalfPrecision) -> None:
    with contextlib.suppress(OSError, ValueError):  # if it fails, the next process tries again
        atomic.write_text(_file(), json.dumps(asdict(found)) + "\n")


# ---- facts about the machine -----------------------------------------------------------------


def cpu_text() -> str:
    """The system's description of its first CPU, without values that vary over time."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    steady = [line for line in lines if line.partition(":")[0].strip().lower() not in ("cpu mhz", "bogomips")]
    return "\n".join(steady) or f"{platform.machine()} {os.environ.get('PROCESSOR_IDENTIFIER', '')}".strip()


def cpu_name() -> str:
    """The name of the CPU.

    >>> bool(cpu_name())
    True
    """
    for line in cpu_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() in ("model name", "hardware", "cpu model") and value.strip():
            return value.strip()
    return os.environ.get("PROCESSOR_IDENTIFIER") or platform.machine() or "?"


def usable_cores() -> int:
    """The number of cores that this process may use, which can be fewer than the machine has.

    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):  # only on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def torch_version() -> str:
    """The version of the installed torch, without importing it; empty if there is none."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""
