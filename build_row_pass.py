"""Compiles src/regard/kernels/row_pass.c, if there is a compiler; regard works without it, but slower.

    python build_row_pass.py        compile it where an installation from source looks for it

Building a wheel or installing from source calls this through hatch_build.py. ``CC`` names the compiler, and
``REGARD_COMPILED=0`` leaves it out.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path("src/regard/kernels/row_pass.c")
INSTALLED = "regard/kernels/row_pass.so"
COMPILERS = ("cc", "gcc", "clang")
COMPILE = ["-O3", "-ffast-math", "-std=gnu11", "-fPIC"]


def compiler() -> list[str] | None:
    """The command of a C compiler, or None."""
    if os.environ.get("REGARD_COMPILED") == "0":
        return None
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        return named if shutil.which(named[0]) else None
    return next(([name] for name in COMPILERS if shutil.which(name)), None)


def compile_row_pass(root: Path, target: Path) -> str:
    """Compile into ``target``. Returns why that was not possible, or an empty string."""
    command = compiler()
    if command is None:
        return "no C compiler"
    source = root / SOURCE
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        built, linked = Path(folder) / "row_pass.o", Path(folder) / target.name
        steps = (
            [*command, *COMPILE, f'-DSOURCE_DIGEST="{digest}"', "-c", str(source), "-o", str(built)],
            # Without -ffast-math: with it, gcc links code that sets flush-to-zero for the whole process.
            [*command, "-shared", str(built), "-o", str(linked), "-lm"],
        )
        for step in steps:
            try:
                done = subprocess.run(step, capture_output=True, text=True, errors="replace")  # noqa: S603
            except OSError as error:
                return str(error)
            if done.returncode:
                return done.stderr.strip() or f"{command[0]} ended with status {done.returncode}"
        # Renamed, never overwritten: a running process may have the old one in memory.
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(target.name + ".new")
        shutil.copyfile(linked, beside)
        beside.replace(target)
    return ""


def add_to_build(root: Path, folder: Path, version: str, build_data: dict[str, Any]) -> str:
    """Compile for a build of hatchling; ``folder`` is for files that the wheel is made from.

    An editable installation gets it beside its source. A wheel with it is for one platform, but for every
    Python, since ctypes loads it. Returns why it was left out, or an empty string.
    """
    editable = version == "editable"
    target = root / "src" / INSTALLED if editable else folder / "row_pass.so"
    failed = compile_row_pass(root, target)
    if not failed and not editable:
        build_data["force_include"][str(target)] = INSTALLED
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    return failed


if __name__ == "__main__":
    here = Path(__file__).parent
    problem = compile_row_pass(here, here / "src" / INSTALLED)
    print(problem or f"built {here / 'src' / INSTALLED}")
    sys.exit(bool(problem))
