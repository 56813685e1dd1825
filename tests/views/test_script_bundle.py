"""ES modules joined into one script, and which script a page carries."""

import pytest

from regard.views import script_bundle
from regard.views.script_bundle import BUNDLES, bundle, modules, script


def folder_of(tmp_path, **sources):
    for name, source in sources.items():
        (tmp_path / f"{name}.js").write_text(source)
    return tmp_path


def test_modules_come_after_what_they_import(tmp_path):
    folder = folder_of(
        tmp_path,
        main='import { b } from "./b.js";\nimport {\n  a,\n} from "./a.js";\nb(a);\n',
        b='import { a } from "./a.js";\nexport function b() { return a; }\n',
        a="export const a = 1;\n",
    )
    assert modules(folder, "main.js") == ["a.js", "b.js", "main.js"]
    assert bundle(folder, "main.js").split() == [
        "const",
        "a",
        "=",
        "1;",
        "function",
        "b()",
        "{",
        "return",
        "a;",
        "}",
        "b(a);",
    ]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            {"main": 'import { a } from "./a.js";\nconst b = 1;', "a": "export const a = 1;\nconst b = 2;"},
            "b is in",
        ),
        ({"main": 'import { c } from "./a.js";\n', "a": "export const a = 1;\n"}, "does not export"),
        ({"main": 'import a from "./a.js";\n', "a": ""}, "cannot be joined"),
        ({"main": "export default 1;\n"}, "cannot be joined"),
        ({"main": "const { a, b } = window;\n"}, "cannot be joined"),
        ({"main": 'const a = "</script>";\n'}, "end its own script"),
        (
            {
                "main": 'import { a } from "./a.js";\n',
                "a": 'import { m } from "./main.js";\nexport const a = 1;\n',
            },
            "does not export",
        ),
    ],
)
def test_modules_that_cannot_be_joined(tmp_path, sources, message):
    with pytest.raises(AssertionError, match=message):
        bundle(folder_of(tmp_path, **sources), "main.js")


def test_a_template_string_over_several_lines_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="spans several lines"):
        bundle(folder_of(tmp_path, main="const a = `one\n  two`;\n"), "main.js")


def test_comments_and_indentation_are_removed_and_nothing_else(tmp_path):
    source = """// A module.

/**
 * Twice.
 *
 * @param {number} x
 */
export function twice(x) {
  // Doubled: 2 · x.
  return 2 * x; // "//" in a string stays
}

/** One line. */
const address = "a // b";
"""
    assert bundle(folder_of(tmp_path, main=source), "main.js") == (
        '\nfunction twice(x) {\nreturn 2 * x; // "//" in a string stays\n}\nconst address = "a // b";'
    )


@pytest.fixture
def views(tmp_path, monkeypatch):
    """The folder of an installed package with one module, ``page/assets/main.js``."""
    monkeypatch.setattr(script_bundle, "VIEWS", tmp_path)
    (tmp_path / "page" / "assets").mkdir(parents=True)
    (tmp_path / "page" / "assets" / "main.js").write_text("const source = 1;\n")
    script.cache_clear()
    yield tmp_path
    script.cache_clear()


def test_a_checkout_joins_its_modules(views):
    assert script("page/assets/main.js") == "\nconst source = 1;"


def test_a_wheel_has_them_joined_already(views, monkeypatch):
    (views / "page" / "assets" / "bundled").mkdir()
    (views / "page" / "assets" / "bundled" / "main.js").write_text("const built = 1;\n")
    monkeypatch.setattr(script_bundle, "bundle", None)
    assert script("page/assets/main.js") == "const built = 1;\n"


def test_the_sources_have_no_joined_script():
    """It would be used in place of the modules."""
    assert not list(script_bundle.VIEWS.rglob(script_bundle.BUNDLED))
    assert set(script_bundle.built_scripts().values()) == {script(entry) for entry in BUNDLES}


def test_a_script_that_is_not_bundled():
    with pytest.raises(AssertionError, match="is not one of"):
        script("page/assets/other.js")
