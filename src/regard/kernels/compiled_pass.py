"""Loads the compiled row pass, ``row_pass.c``, if it was built; statistics work without it, but slower.

    CompiledPass.load() → CompiledPass, or None with the reason in ``reason_without()``

It is a shared library without Python in it, called through ctypes, which releases the GIL. C was chosen
over numba by measuring: both took 1.1 to 1.3 of the time of plain SDPA, but numba takes 208 MB and 1.5 s
for its first call. Set ``REGARD_COMPILED=0`` to disable it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Literal

import torch

FILE = Path(__file__).with_name("row_pass.so")
SOURCE = Path(__file__).with_name("row_pass.c")

SWITCH = "REGARD_COMPILED"
"""The environment variable that disables the compiled pass if it is 0."""

INSTRUCTIONS = ("default", "AVX2", "AVX512")
"""What each version of the pass was compiled for, by its number. ARM has the default only, with NEON."""

Absence = Literal["off", "not_built", "outdated", "not_loaded"]

_P, _I = ctypes.c_void_p, ctypes.c_int64


class RowPassArguments(ctypes.Structure):
    """``struct row_pass`` of ``row_pass.c``, which explains each field."""

    _fields_ = (
        ("scores", _P), ("batch", _I), ("heads", _I), ("rows", _I), ("width", _I),
        ("totals_batch", _I), ("totals_head", _I),
        ("queries", _P), ("query_places", _P), ("key_places", _P), ("key_positions", _P),
        ("special_columns", _P), ("starts", _P), ("stops", _P), ("range_batch", _I), ("range_head", _I),
        ("allowed", _P), ("allowed_batch", _I), ("allowed_head", _I),
        ("counts", _I), ("sinks", _P), ("lse_known", _I), ("received", _P),
        ("lse", _P), ("entropy", _P), ("mass", _P), ("far", _P), ("self_weight", _P), ("previous_weight", _P),
        ("first_weight", _P), ("peak", _P), ("visible", _P), ("peak_key", _P),
    )  # fmt: skip


class CompiledPass:
    """The loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        library.row_pass.argtypes = [ctypes.POINTER(RowPassArguments), ctypes.c_int]
        library.row_pass.restype = None
        self._run = library.row_pass
        # Not more than torch uses: it has found out what the machine allows, and users can limit it.
        allowed = torch.backends.cpu.get_cpu_capability()
        most = INSTRUCTIONS.index(allowed) if allowed in INSTRUCTIONS else 0
        self.version: int = library.row_pass_version(most)

    @property
    def instructions(self) -> str:
        """The instruction set it uses."""
        return INSTRUCTIONS[self.version]

    def run(self, arguments: RowPassArguments) -> None:
        """Rows of scores to weights and statistics."""
        self._run(arguments, self.version)


def compiled_pass() -> CompiledPass | None:
    """The compiled pass, or None if statistics are computed in torch."""
    return None if os.environ.get(SWITCH) == "0" else _load()[0]


def reason_without() -> Absence | None:
    """Why the compiled pass is missing; None if it is loaded."""
    return "off" if os.environ.get(SWITCH) == "0" else _load()[1]


@cache
def _load() -> tuple[CompiledPass | None, Absence | None]:
    if not FILE.exists():
        return None, "not_built"
    try:
        library = ctypes.CDLL(str(FILE))
        library.row_pass_source.restype = ctypes.c_char_p
        built_of: bytes = library.row_pass_source()
        if built_of != hashlib.sha256(SOURCE.read_bytes()).hexdigest().encode():
            return None, "outdated"
        return CompiledPass(library), None
    except (OSError, AttributeError):  # another platform's file, or something else of that name
        return None, "not_loaded"
