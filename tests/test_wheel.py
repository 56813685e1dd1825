"""The built wheel in an environment that has its declared dependencies and nothing else."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from regard.views.script_bundle import built_scripts

ROOT = Path(__file__).parent.parent

TRY_IT = """
import regard, torch
from pathlib import Path
from regard import masks
assert Path(regard.__file__).is_relative_to(Path({venv!r})), regard.__file__
assert Path(regard.__file__).with_name("py.typed").exists()
x = torch.randn(2, 300, 8)
from regard.views import script_bundle
script_bundle.bundle = None  # the wheel has its scripts joined already
assert len(script_bundle.script("page/assets/main.js")) > 50_000
print(tuple(regard.attention(x, x, x, mask=masks.parse("causal & window(9, 0)")).shape))
# The command as it was installed; here, because another process would import torch again.
import runpy, sys
sys.argv = [str(Path({venv!r}, "bin", "regard")), "explain", "I love AI"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # What pip and build call, without their own processes.
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], check=True, capture_output=True, cwd=ROOT)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory) -> Path:
    """A new environment with the wheel in it. Nothing is downloaded: what it requires is linked from here."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-compile",  # Python compiles what it imports
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True, env=environment())
    (packages,) = folder.glob("lib/python*/site-packages")
    (installed,) = packages.glob("regard-*.dist-info")
    for dependency in dependencies(Distribution.at(installed)).values():
        link(dependency, packages)
    return folder


def environment() -> dict[str, str]:
    """The variables of this process without those that lead Python back to the clone."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def dependencies(package: Distribution) -> dict[str, Distribution]:
    """What a package requires without extras, and what that requires, as it is installed here."""
    found: dict[str, Distribution] = {}
    waiting = [package]
    while waiting:
        for text in waiting.pop().requires or ():
            need = Requirement(text)
            if need.name.lower() not in found and (
                need.marker is None or need.marker.evaluate({"extra": ""})
            ):
                found[need.name.lower()] = distribution(need.name)
                waiting.append(found[need.name.lower()])
    return found


def link(package: Distribution, packages: Path) -> None:
    """Make an installed package importable from another folder of packages."""
    for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        if not (packages / name).exists():
            (packages / name).symlink_to(package.locate_file(name))


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("regard/", "regard-")) for name in names)
    assert {"regard/py.typed", "regard/masks/parser.py", "regard/kernels/reference.py"} <= set(names)
    assert {"regard/views/page/assets/style.css", "regard/views/page/assets/data/call.js"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_has_the_scripts_of_pages_joined(wheel):
    archive = zipfile.ZipFile(wheel)
    found = {name for name in archive.namelist() if "/bundled/" in name}
    assert found == {f"regard/views/{name}" for name in built_scripts()}
    for name, text in built_scripts().items():
        assert archive.read(f"regard/views/{name}").decode() == text


def test_the_environment_has_only_what_the_wheel_declares(venv):
    (packages,) = venv.glob("lib/python*/site-packages")
    assert (packages / "torch").exists()
    assert not (packages / "transformers").exists()
    assert not (packages / "pytest").exists()


def test_the_wheel_works_with_its_declared_dependencies(venv, tmp_path):
    tried = subprocess.run(
        [str(venv / "bin" / "python"), "-c", TRY_IT.format(venv=str(venv))],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    shape, explained = tried.stdout.split("\n", 1)
    assert shape == "(2, 300, 8)"
    assert "which words attend to which" in explained


def test_the_command_is_installed(venv, tmp_path):
    shown = subprocess.run(
        [str(venv / "bin" / "regard"), "--version"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert shown.stdout.startswith("regard ")
