"""The package as a whole: which part may import which, what is public, what is loaded at the start."""

import ast
import functools
import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

import regard

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "regard"

# Data flows down this list and imports only point up it.
ROOMS = [
    "texts",
    "errors",
    "checks",
    "version",
    "deprecation",
    "languages",
    "printing",
    "atomic",
    "notebook_table",
    "checked_files",
    "folder_lock",
    "machine",
    "processes",
    "openmp",
    "threads",
    "masks",
    "table",
    "kernels",
    "nn",
    "interception",
    "recording",
    "edits",
    "model_outcome",
    "metrics",
    "ablation",
    "heads",
    "speech",
    "translator",
    "views",
    "lessons",
    "diagnosis",
    "app",
]


@functools.cache
def definitions(file: Path) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements at the top of a file, and all its imports and classes, nested ones too; parsed once."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef)):
            found.append(node)
        # Statements are never inside expressions, which are most of a file.
        waiting += (inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.expr))
    return tree.body, found


def imported_rooms(file: Path) -> set[str]:
    """The parts of regard that a file imports, anywhere in it."""
    found = set()
    for node in definitions(file)[1]:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "regard" else [module]
        found |= {name.split(".")[1] for name in names if name.startswith("regard.")}
    return found


def test_imports_only_point_up_the_list_of_rooms():
    wrong = {}
    for file in SOURCE.rglob("*.py"):
        name = file.relative_to(SOURCE)
        room = name.parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue  # the package itself imports from every room
        assert room in ROOMS, f"{room} is not in the list of rooms"
        if below := imported_rooms(file) - set(ROOMS[: ROOMS.index(room) + 1]):
            wrong[str(name)] = below
    assert wrong == {}


def test_contributing_lists_the_rooms_in_this_order():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| in `src/regard/` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)(?:\.py|/)`", table, re.MULTILINE) == ROOMS


def test_the_order_test_would_notice(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from regard import app\nimport regard.views.terminal_weights\nfrom regard.masks.mask import Mask\n"
    )
    assert imported_rooms(wrong) == {"app", "views", "masks"}


# ---- one name, one meaning -------------------------------------------------------------------

# Names that still have two meanings. These sets only shrink: the tests fail for a new duplicate, and for
# an entry that is no longer one.
DUPLICATE_CLASSES: set[str] = set()
DUPLICATE_MODULES: set[str] = set()


def duplicates(names: dict[str, set[str]]) -> set[str]:
    return {name for name, places in names.items() if len(places) > 1}


def classes_in(folder: Path) -> dict[str, set[str]]:
    """Every class, nested ones too, with the places that define it."""
    found = defaultdict(set)
    for file in folder.rglob("*.py"):
        for node in definitions(file)[1]:
            if isinstance(node, ast.ClassDef):
                found[node.name].add(f"{file.relative_to(folder)}:{node.lineno}")
    return found


def modules_in(folder: Path) -> dict[str, set[str]]:
    """Every module with its paths. A command is named after what the user types, so it does not count."""
    found = defaultdict(set)
    for file in folder.rglob("*.py"):
        path = file.relative_to(folder)
        if path.stem not in ("__init__", "__main__") and path.parts[:2] != ("app", "commands"):
            found[path.stem].add(path.as_posix())
    return found


def aliases_in(folder: Path) -> dict[str, set[str]]:
    """Every type alias or type variable of a module, and every class, with what it stands for."""
    found = classes_in(folder)
    for file in folder.rglob("*.py"):
        for node in definitions(file)[0]:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name) and re.fullmatch("[A-Z]+[a-z]+[A-Za-z]*", target.id):
                found[target.id].add(ast.unparse(node.value))
    return found


def test_class_names_are_unique():
    names = classes_in(SOURCE)
    assert duplicates(names) == DUPLICATE_CLASSES, {
        name: names[name] for name in duplicates(names) ^ DUPLICATE_CLASSES
    }


def test_type_aliases_mean_one_thing():
    names = aliases_in(SOURCE)
    assert {name: names[name] for name in duplicates(names)} == {}


def test_module_names_are_unique():
    names = modules_in(SOURCE)
    assert duplicates(names) == DUPLICATE_MODULES, {
        name: names[name] for name in duplicates(names) ^ DUPLICATE_MODULES
    }


def hidden_modules(package: ModuleType) -> set[str]:
    """The modules of a package that cannot be reached by their names, because something else has the name."""
    modules = [module.name for module in pkgutil.iter_modules(package.__path__)]
    found = {name: getattr(package, name, None) for name in modules}
    return {name for name, value in found.items() if value is not None and not isinstance(value, ModuleType)}


def packages_in(folder: Path) -> list[str]:
    inner = [file.parent.relative_to(folder) for file in sorted(folder.rglob("__init__.py"))]
    return [".".join(("regard", *path.parts)) for path in inner]


@pytest.mark.parametrize("package", packages_in(SOURCE))
def test_no_name_hides_a_module(package):
    # If kernels.attention is a function, there must not be a module kernels/attention.py.
    assert hidden_modules(importlib.import_module(package)) == set()


def test_the_test_of_hidden_modules_would_notice(tmp_path, monkeypatch):
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "__init__.py").write_text(
        "from hiding.plan import plan\nfrom hiding import cost\n"
    )
    (tmp_path / "hiding" / "plan.py").write_text("def plan(): ...\n")
    (tmp_path / "hiding" / "cost.py").write_text("def other(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert hidden_modules(importlib.import_module("hiding")) == {"plan"}


def test_the_tests_of_names_would_notice(tmp_path):
    for path, source in {
        "one/__init__.py": "class Tile: ...",
        "two/__init__.py": "def make():\n    class Tile: ...",
        "one/plan.py": "class Plan: ...\nNumbers = list[int]\nWords = list[str]",
        "two/plan.py": "class Other: ...\nNumbers = list[int]\nWords: TypeAlias = str\nPlan = int",
        "two/cost.py": "",
        "app/commands/cost.py": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(source, encoding="utf-8")
    assert duplicates(classes_in(tmp_path)) == {"Tile"}
    assert duplicates(aliases_in(tmp_path)) == {"Tile", "Words", "Plan"}
    assert duplicates(modules_in(tmp_path)) == {"plan"}


def test_all_is_what_is_public():
    # What type checkers see, what users can reach and what __all__ lists must agree.
    for_types = {
        alias.name
        for node in ast.walk(ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.If)
        for inner in node.body
        if isinstance(inner, ast.ImportFrom)
        for alias in inner.names
    }
    assert for_types | {"__version__"} == set(regard.__all__)
    assert set(regard._ROOMS) <= set(regard.__all__)
    for name in regard.__all__:
        assert getattr(regard, name) is not None


@pytest.mark.parametrize(
    "room",
    ["masks", "kernels", "nn", "recording", "edits", "heads", "speech", "translator", "lessons", "diagnosis"],
)
def test_a_package_shows_only_its_public_names(room):
    module = importlib.import_module(f"regard.{room}")
    files = {file.stem for file in (SOURCE / room).iterdir()}
    shown = {name for name in vars(module) if not name.startswith("_")}
    # Python adds the modules of a room to its namespace; every other name must be in __all__.
    assert shown - (files - set(module.__all__)) - {"annotations"} == set(module.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = regard.nonsense


def test_attention_is_a_plain_function():
    assert inspect.isfunction(regard.attention)
    assert list(inspect.signature(regard.attention).parameters)[:3] == ["q", "k", "v"]


def test_the_version_is_in_one_place():
    assert regard.__version__ not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"## {regard.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    said = subprocess.run(
        [sys.executable, "-m", "regard", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == f"regard {regard.__version__}"


@functools.cache
def imported_modules(*arguments: str) -> set[str]:
    """The modules that a new Python process imports while it runs."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    return {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines() if "|" in line}


@pytest.mark.parametrize(
    "call",
    [
        ["-c", "import regard"],
        ["-m", "regard", "--help"],
        ["-m", "regard", "--lang", "zh", "--help"],
        ["-m", "regard", "explain", "--help"],
        ["-m", "regard", "train", "--help"],
        ["-m", "regard", "cost", "--help"],
        ["-m", "regard", "bench", "--help"],
        ["-m", "regard", "survey", "--help"],
        ["-m", "regard", "serve", "--help"],
        ["-m", "regard", "doctor", "--help"],
    ],
    ids=str,
)
def test_torch_is_not_imported_before_it_is_needed(call):
    imported = imported_modules(*call)
    assert "regard" in imported
    assert not imported & {"torch", "numpy", "rich", "matplotlib"}


@pytest.mark.parametrize(
    ("call", "own", "total"),
    [
        # The package, its version, and what importlib and typing bring along: 27 modules.
        (["-c", "import regard"], 2, 40),
        # click (13), every command (30) and the standard library they need: 149 modules.
        (["-m", "regard", "--help"], 40, 190),
        (["-m", "regard", "--lang", "zh", "--help"], 40, 190),
    ],
    ids=str,
)
def test_few_modules_are_imported_at_the_start(call, own, total):
    # What start-up costs, without a clock: torch alone would add more than a thousand modules.
    # A bare interpreter is subtracted, so that site customisations and coverage do not count.
    imported = imported_modules(*call) - imported_modules("-c", "pass")
    assert len({name for name in imported if name.partition(".")[0] == "regard"}) <= own
    assert len(imported) <= total


def test_the_count_of_modules_would_notice():
    # One room that is loaded on first use, and NumPy with it.
    assert len(imported_modules("-c", "import regard.masks") - imported_modules("-c", "pass")) > 40


def test_ci_calls_only_commands_that_the_readme_names():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    called = [
        line
        for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
        if line.startswith("make ")
    ]
    assert called
    for line in called:
        assert line in readme


def test_torch_is_pinned_and_the_pin_satisfies_the_requirement():
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "torch==2.13.0\n" in pins
    needed = [one for one in importlib.metadata.requires("regard") or () if "extra ==" not in one]
    assert needed
    names = {line.partition("==")[0].lower() for line in pins.splitlines() if "==" in line}
    assert {re.split(r"[<>=! ]", need)[0].lower() for need in needed} <= names
