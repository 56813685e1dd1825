"""The results: single checks, and all of them together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from rich.cells import cell_len, set_cell_size

from regard.languages import Texts

TEXTS = Texts("diagnosis")

Status = Literal["ok", "note", "broken"]
MARKS: dict[Status, str] = {"ok": "✓", "note": "!", "broken": "✗"}


@dataclass(frozen=True)
class Check:
    """One check: what was found, and what to do if something could be better.

    A "note" costs speed or an extra; what is "broken" keeps regard from working. ``values`` has what was
    found for programs to read.

    >>> Check("torch", "ok", "torch", "2.13.0").found
    '2.13.0'
    """

    name: str
    status: Status
    title: str
    found: str
    do: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """All checks in order. ``print(diagnosis)`` shows one line for each; a notebook does so automatically.

    >>> checks = (Check("torch", "ok", "torch", "2.13.0"), Check("cpu", "note", "CPU", "slow", "Wait."))
    >>> print(Diagnosis(checks))
    ✓ torch  2.13.0
    ! CPU    slow  Wait.
    """

    checks: tuple[Check, ...]

    @property
    def broken(self) -> bool:
        """Whether anything keeps regard from working."""
        return any(check.status == "broken" for check in self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __getitem__(self, name: str) -> Check:
        """The check of a name, "torch" or "half_precision"."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def __str__(self) -> str:
        widest = max((cell_len(check.title) for check in self.checks), default=0)
        return "\n".join(
            f"{MARKS[check.status]} {set_cell_size(check.title, widest)}  {check.found}  {check.do}".rstrip()
            for check in self.checks
        )

    def __repr__(self) -> str:
        return str(self)

    def to_json(self) -> str:
        """All of it as JSON."""
        told = {"broken": self.broken, "checks": [asdict(check) for check in self.checks]}
        return json.dumps(told, ensure_ascii=False, indent=2) + "\n"
