"""The built wheel in an empty environment, away from the clone."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

TRY_IT = """
import regard, torch
from pathlib import Path
from regard import masks
assert Path(regard.__file__).is_relative_to(Path({venv!r})), regard.__file__
assert Path(regard.__file__).with_name("py.typed").exists()
x = torch.randn(2, 300, 8)
print(tuple(regard.attention(x, x, x, mask=masks.parse("causal & window(9, 0)")).shape))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("regard/", "regard-")) for name in names)
    assert {"regard/py.typed", "regard/masks/text.py", "regard/attention/reference.py"} <= set(names)
    assert {"regard/views/page/assets/page.html", "regard/views/page/assets/data/call.js"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = venv / "bin" / "python"
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        str(ROOT / "constraints.txt"),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True, cwd=tmp_path, env=outside)
    tried = subprocess.run(
        [str(python), "-c", TRY_IT.format(venv=str(venv))],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=outside,
    )
    assert tried.stdout.strip() == "(2, 300, 8)"
    explained = subprocess.run(
        [str(venv / "bin" / "regard"), "explain", "I love AI"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=outside,
    )
    assert "who looks at whom" in explained.stdout
