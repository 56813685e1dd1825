import inspect

import pytest

from regard import errors


def test_the_tree_in_the_docstring_is_the_tree():
    classes = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    for name in classes - {"Phrase"}:
        assert name in errors.__doc__
        assert issubclass(getattr(errors, name), errors.RegardError)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [(errors.ShapeError, ValueError), (errors.DtypeError, TypeError), (errors.MaskSyntaxError, ValueError)],
)
def test_each_is_also_what_python_would_raise(error, builtin):
    assert issubclass(error, builtin)


def test_a_message_has_three_parts():
    assert str(errors.ShapeError("Must hold.", got="this.", do="Do that.")) == "Must hold. Got this. Do that."
    assert str(errors.ShapeError("Must hold.")) == "Must hold."
