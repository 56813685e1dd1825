"""Runs every check in turn. If one raises, the error is its finding."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator

from regard import machine
from regard.diagnosis import package_checks, system_checks
from regard.diagnosis.finding import TEXTS, Check, Diagnosis, Status
from regard.languages import check_language
from regard.version import __version__

TOLERANCE = 1e-4
"""How far the fast path may be from the definition: float32, and a machine that sums in another order."""

LEAST_PYTHON = (3, 10)


def doctor(*, lang: str = "en") -> Diagnosis:
    """Examine this machine: versions, CPU, kernels, half precision, extras, caches, speed.

    Half precision is tried in a child process, so that this one survives; it takes a few seconds. If
    torch dies in them, ``diagnosis["half_precision"].do`` says what to set before torch is imported.

    >>> import regard
    >>> regard.doctor  # doctest: +ELLIPSIS
    <function doctor at ...>
    """
    return Diagnosis(tuple(examine(lang)))


def examine(lang: str = "en") -> Iterator[Check]:
    """Every check as soon as it ends."""
    check_language(lang)
    say = _CheckTexts(lang)
    # Before torch is imported here, because what it finds must be set by then.
    half = _guarded("half_precision", _half_precision, say)
    for name, check in (("regard", _regard), ("python", _python), ("torch", _torch), ("packages", _packages)):
        yield _guarded(name, check, say)
    yield from _extras(say)
    yield _guarded("cpu", _cpu, say)
    yield half
    if _has_torch():
        for name, check in (
            ("threads", _threads),
            ("gpu", _gpu),
            ("kernel", _kernel),
            ("row_pass", _row_pass),
        ):
            yield _guarded(name, check, say)
    for name, check in (("caches", _caches), ("browser", _browser), ("output", _output)):
        yield _guarded(name, check, say)
    if _has_torch():
        yield _guarded("speed", _speed, say)


class _CheckTexts:
    """Makes checks in one language."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def __call__(self, key: str, **values: object) -> str:
        return TEXTS.say(key, self.lang, **values)

    def check(self, name: str, status: Status, found: str, do: str = "", /, **values: object) -> Check:
        return Check(name, status, self(f"title.{name}"), found, do, values)

    @property
    def comma(self) -> str:
        return self("comma")


def _guarded(name: str, check: Callable[[_CheckTexts], Check], say: _CheckTexts) -> Check:
    try:
        return check(say)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was found
        return say.check(name, "broken", f"{type(error).__name__}: {error}", say("do.report"))


# ---- what is installed -----------------------------------------------------------------------


def _regard(say: _CheckTexts) -> Check:
    return say.check("regard", "ok", __version__, version=__version__)


def _python(say: _CheckTexts) -> Check:
    version = platform.python_version()
    found = f"{version}{say.comma}{platform.system()} {platform.release()} {platform.machine()}"
    values = {"version": version, "platform": platform.platform()}
    if sys.version_info < LEAST_PYTHON:
        return say.check("python", "broken", found, say("do.python"), **values)
    return say.check("python", "ok", found, **values)


def _has_torch() -> bool:
    try:
        import torch
    except Exception:  # noqa: BLE001 - a library that cannot be loaded raises what it likes
        return False
    return bool(torch.__version__)


def _torch(say: _CheckTexts) -> Check:
    import torch

    needed = [one for one in package_checks.requirements().get("", []) if one.name == "torch"]
    version = str(torch.__version__)
    if needed and not package_checks.RequiredPackage("torch", needed[0].least, version).fits:
        return say.check("torch", "broken", version, _install(say, needed), version=version)
    return say.check("torch", "ok", version, version=version)


def _packages(say: _CheckTexts) -> Check:
    needed = [one for one in package_checks.requirements().get("", []) if one.name != "torch"]
    values = {one.name: one.installed for one in needed}
    found = say.comma.join(map(str, needed)) or say("packages.unknown")
    lacking = [one for one in needed if not one.fits]
    if lacking:
        return say.check("packages", "broken", found, _install(say, lacking), **values)
    return say.check("packages", "ok", found, **values)


def _install(say: _CheckTexts, lacking: list[package_checks.RequiredPackage]) -> str:
    return say("do.install", packages=" ".join(f'"{one.wanted}"' for one in lacking))


def _extras(say: _CheckTexts) -> Iterator[Check]:
    for extra, needed in package_checks.requirements().items():
        if extra:
            name = f"extra.{extra}"
            values = {one.name: one.installed for one in needed}
            there = [str(one) for one in needed if one.installed] or [say("missing")]
            lacking = not all(one.fits for one in needed)
            do = say("do.extra", extra=extra, what=say(f"for.{extra}")) if lacking else ""
            yield say.check(name, "note" if lacking else "ok", say.comma.join(there), do, **values)


# ---- the machine -----------------------------------------------------------------------------


def _cpu(say: _CheckTexts) -> Check:
    name, usable, cores = machine.cpu_name(), machine.usable_cores(), os.cpu_count() or 1
    values: dict[str, object] = {"name": name, "usable": usable, "cores": cores}
    found = f"{name}{say.comma}{say('cpu.cores', usable=usable, cores=cores)}"
    if _has_torch():
        import torch

        values["capability"] = torch.backends.cpu.get_cpu_capability()
        found += f"{say.comma}{values['capability']}"
    return say.check("cpu", "ok", found, **values)


def _threads(say: _CheckTexts) -> Check:
    import torch

    threads, usable = torch.get_num_threads(), machine.usable_cores()
    policy = os.environ.get("OMP_WAIT_POLICY", "")
    values = {"threads": threads, "usable": usable, "wait_policy": policy or None}
    found = say("threads.found", threads=threads, policy=policy.lower() or say("threads.default"))
    if threads > usable:
        return say.check("threads", "note", found, say("do.threads", usable=usable), **values)
    if policy.lower() != "passive":
        return say.check("threads", "note", found, say("do.policy"), **values)
    return say.check("threads", "ok", found, **values)


def _gpu(say: _CheckTexts) -> Check:
    import torch

    names = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    return say.check("gpu", "ok", say.comma.join(names) or say("gpu.none"), devices=names)


def _half_precision(say: _CheckTexts) -> Check:
    chosen = os.environ.get(machine.SETTING, "")
    half = machine.half_precision(again=True)
    values = {"outcome": half.outcome, "setting": half.setting or None, "detail": half.detail}
    if half.limit:
        if "torch" not in sys.modules:
            os.environ[machine.SETTING] = half.limit  # in time for the checks that import it
        do = say("do.half.limited", setting=half.setting)
        return say.check("half_precision", "note", say("half.limited", detail=half.detail), do, **values)
    if half.outcome == "dies":
        return say.check(
            "half_precision", "broken", say("half.dies", detail=half.detail), say("do.half.dies"), **values
        )
    if half.outcome == "unknown":
        found = say("half.unknown", detail=half.detail)
        return say.check("half_precision", "note", found, say("do.half.unknown"), **values)
    found = say("half.set", setting=f"{machine.SETTING}={chosen}") if chosen else say("half.works")
    return say.check("half_precision", "ok", found, **values)


def _caches(say: _CheckTexts) -> Check:
    folders = system_checks.caches()
    closed = [folder for folder in folders.values() if not system_checks.writable(folder)]
    values = {
        name: {"folder": str(folder), "writable": folder not in closed} for name, folder in folders.items()
    }
    if closed:
        found = say("caches.closed", folders=say.comma.join(map(str, closed)))
        return say.check("caches", "note", found, say("do.caches"), **values)
    return say.check("caches", "ok", say("caches.open", names=say.comma.join(folders)), **values)


def _browser(say: _CheckTexts) -> Check:
    found = system_checks.browser()
    if found is None:
        return say.check("browser", "note", say("missing"), say("do.browser"), path=None)
    return say.check("browser", "ok", found, path=found)


def _output(say: _CheckTexts) -> Check:
    encoding, whole = system_checks.output_encoding()
    if not whole:
        return say.check("output", "note", encoding, say("do.output"), encoding=encoding)
    return say.check("output", "ok", encoding, encoding=encoding)


# ---- computing -------------------------------------------------------------------------------


def _kernel(say: _CheckTexts) -> Check:
    from regard.diagnosis import kernel_checks
    from regard.kernels import fused_kernel

    there, error = fused_kernel.available(), kernel_checks.error()
    values = {"fused": there, "error": error}
    found = say("kernel.fused" if there else "kernel.plain", error=error)
    if not error <= TOLERANCE:
        return say.check("kernel", "broken", found, say("do.report"), **values)
    if not there:
        return say.check("kernel", "note", found, say("do.kernel"), **values)
    return say.check("kernel", "ok", found, **values)


def _row_pass(say: _CheckTexts) -> Check:
    from regard.diagnosis import kernel_checks
    from regard.kernels.compiled_pass import compiled_pass, reason_without

    compiled, error = compiled_pass(), kernel_checks.statistics_error()
    instructions = None if compiled is None else compiled.instructions
    why = reason_without()
    values = {"instructions": instructions, "absence": why, "error": error}
    key = "row_pass.torch" if why else "row_pass.compiled"
    found = say(key, why=say(f"row_pass.{why}") if why else "", instructions=instructions, error=error)
    if not error <= TOLERANCE:
        return say.check("row_pass", "broken", found, say("do.report"), **values)
    if why:
        return say.check("row_pass", "note", found, say(f"do.row_pass.{why}"), **values)
    return say.check("row_pass", "ok", found, **values)


def _speed(say: _CheckTexts) -> Check:
    from regard.diagnosis import kernel_checks

    found = kernel_checks.ratios()
    said = say("speed.found", **found)
    if found["window"] < 1:
        return say.check("speed", "note", said, say("do.speed"), **found)
    return say.check("speed", "ok", said, **found)
