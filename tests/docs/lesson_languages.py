"""Runs a lesson in both languages at once: what is the same in both, and means the same, is run once.

The two languages of a lesson have the same code but for what it says to people. So most statements, trainings
and models among them, give the same values in both. Those that differ are run in each language, and so is
everything that depends on them.
"""

import ast
from collections.abc import Iterator
from symtable import symtable
from typing import Any, NamedTuple

LANGUAGES = ("zh", "en")


class Step(NamedTuple):
    """One statement of a cell, as each language writes it."""

    cell: int
    written: dict[str, ast.stmt]
    last: bool
    """Whether it is the last of its cell, whose value a notebook displays."""


def in_step(cells: dict[str, list[str]], name: str) -> Iterator[Step]:
    """The statements of all cells, side by side."""
    for number, sources in enumerate(zip(*(cells[lang] for lang in LANGUAGES), strict=True)):
        trees = [ast.parse(source) for source in sources]
        lengths = [len(tree.body) for tree in trees]
        assert lengths[0] == lengths[1], (name, number, lengths)
        for place, pair in enumerate(zip(*(tree.body for tree in trees)), start=1):
            yield Step(number, dict(zip(LANGUAGES, pair)), place == lengths[0])


def without_docstrings(statement: ast.stmt) -> str:
    """The code as text that two statements share if they do the same."""
    tree = ast.parse(ast.unparse(statement))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def used(statement: ast.stmt) -> set[str]:
    """The names whose values a statement takes from before, also inside its functions."""
    counted = {
        node.id
        for loop in ast.walk(statement)
        if isinstance(loop, ast.For)
        for node in ast.walk(loop.target)
        if isinstance(node, ast.Name)
    }
    found, tables = set(), [symtable(ast.unparse(statement), "", "exec")]
    for table in tables:
        tables += table.get_children()
        top = table.get_type() == "module"
        found |= {
            one.get_name() for one in table.get_symbols() if one.is_referenced() and (top or one.is_global())
        }
    return found - counted


def changed(statement: ast.stmt) -> set[str]:
    """The names that a statement gives values."""
    table = symtable(ast.unparse(statement), "", "exec")
    return {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}


def mutated(statement: ast.stmt) -> set[str]:
    """The names whose values a statement may change in place."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            found |= owner(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found |= owner(node.value.func)  # rows.append(row)
    return found & used(statement)


def owner(node: ast.expr) -> set[str]:
    """The name in front of the dots and brackets, if there are any."""
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return {inner.id} if inner is not node and isinstance(inner, ast.Name) else set()


def apart(steps: list[Step]) -> list[bool]:
    """Which statements to run in each language."""
    chinese = [step.written["zh"] for step in steps]
    uses, sets, mutates = ([find(one) for one in chinese] for find in (used, changed, mutated))
    modules = {name for one, names in zip(chinese, sets) if is_import(one) for name in names}
    found = [differs(step) for step in steps]
    while True:
        spoken = {name for each, names in zip(found, sets) if each for name in names}
        own = {name for each, names in zip(found, mutates) if each for name in names} - modules
        more = [
            each or bool(reads & (spoken | own) or names & own)
            for each, reads, names in zip(found, uses, sets)
        ]
        if more == found:
            return found
        found = more


def is_import(statement: ast.stmt) -> bool:
    """Whether it imports something."""
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def differs(step: Step) -> bool:
    """Whether the languages write different code here."""
    return len({without_docstrings(statement) for statement in step.written.values()}) > 1


def run_in_step(cells: dict[str, list[str]], name: str) -> Iterator[dict[str, Any]]:
    """Run all cells, and yield what each displays in each language."""
    steps = list(in_step(cells, name))
    names: dict[str, dict[str, Any]] = {lang: {"__name__": "__main__"} for lang in LANGUAGES}
    for step, twice in zip(steps, apart(steps)):
        if twice:
            shown = {lang: run(step.written[lang], names[lang], f"{lang}/{name}") for lang in LANGUAGES}
        else:
            shown = dict.fromkeys(LANGUAGES, run(step.written["zh"], names["zh"], f"zh/{name}"))
            names["en"] |= {
                one: names["zh"][one] for one in changed(step.written["zh"]) if one in names["zh"]
            }
        if step.last:
            yield shown


def run(statement: ast.stmt, names: dict[str, Any], where: str) -> Any:
    """Run a statement, and return the value if it has one."""
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), where, "eval"), names)
    exec(compile(ast.Module([statement], []), where, "exec"), names)
    return None
