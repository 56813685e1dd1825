from click.testing import CliRunner

from regard.app.main import main


def run(*arguments):
    return CliRunner().invoke(main, arguments)


def test_help_names_every_command():
    shown = run("--help")
    assert shown.exit_code == 0
    for name in main.commands:
        assert name in shown.output
        assert run(name, "--help").exit_code == 0


def test_explain_shows_every_step_with_shapes():
    shown = run("explain", "I love AI", "--mask", "causal", "--heads", "2")
    assert shown.exit_code == 0
    for name in (
        "queries",
        "keys",
        "values",
        "scores",
        "masked",
        "weights",
        "output",
        "which words attend to which",
    ):
        assert name in shown.output
    assert "(2 × 3 × 3)" in shown.output
    assert "−∞" in shown.output
    assert "head 1" in shown.output


def test_a_query_that_sees_nothing_is_said_so():
    assert "sees nothing" in run("explain", "a b", "--mask", "causal & ~window(0, 0)").output


def test_errors_are_clean():
    for arguments, says in (
        (["explain", ""], "at least one word"),
        (["explain", "a b", "--mask", "causal & widow(1)"], "Did you mean window?"),
        (["explain", "a b", "--heads", "3"], "heads must divide width"),
        (["explain", "x " * 99], "at most 64 words"),
    ):
        shown = run(*arguments)
        assert shown.exit_code == 1
        assert shown.output.startswith("Error: ")
        assert says in shown.output
        assert "Traceback" not in shown.output


def test_a_mask_error_keeps_its_mark():
    lines = run("explain", "a b", "--mask", "causal & widow(1)").output.splitlines()
    assert lines[-1].index("^") == lines[-2].index("widow")
