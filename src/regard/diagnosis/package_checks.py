"""The packages that regard needs or can use: which are there, in which version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

OURS = "regard"
NOT_FOR_USERS = ("test", "docs", "lint")
"""Extras for working on regard itself."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:>=([0-9.]+))?[^;]*(?:;.*?extra == ['\"]([a-z]+)['\"])?.*")


@dataclass(frozen=True)
class RequiredPackage:
    """A package, the least version that regard works with, and the one that is installed."""

    name: str
    least: str
    installed: str | None

    @property
    def fits(self) -> bool:
        """Whether it is there, and new enough.

        >>> RequiredPackage("torch", "2.9", "2.13.0+cpu").fits, RequiredPackage("torch", "2.9", "2.8.1").fits
        (True, False)
        """
        return self.installed is not None and _numbers(self.installed) >= _numbers(self.least)

    def __str__(self) -> str:
        return f"{self.name} {self.installed}" if self.installed else self.name

    @property
    def wanted(self) -> str:
        """What to install, as pip takes it."""
        return f"{self.name}>={self.least}" if self.least else self.name


def requirements() -> dict[str, list[RequiredPackage]]:
    """The packages of each extra by its name; those that are always needed under an empty one."""
    found: dict[str, list[RequiredPackage]] = {}
    try:
        lines = metadata.requires(OURS) or []
    except metadata.PackageNotFoundError:  # run from its sources, without any installation
        lines = []
    for line in lines:
        read = _REQUIREMENT.fullmatch(line)
        if read is not None and (read[3] or "") not in NOT_FOR_USERS:
            package = RequiredPackage(read[1], read[2] or "", installed(read[1]))
            found.setdefault(read[3] or "", []).append(package)
    return found


def installed(name: str) -> str | None:
    """The version of a package that is installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", re.split(r"[+a-z]", version)[0])]
