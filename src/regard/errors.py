"""What can go wrong, as one tree.

::

    RegardError
    ├── ShapeError       (ValueError)   lengths, heads or axes that do not fit together
    ├── DtypeError       (TypeError)    a kind of number or object that cannot be attended with
    ├── DeviceError      (ValueError)   tensors that do not live in one place
    ├── ArgumentError    (ValueError)   an option out of its range
    ├── MaskError        (ValueError)   a mask that cannot mean anything
    │   └── MaskSyntaxError             a mask text that cannot be read; points at the character
    ├── RecordingError   (ValueError)   a recording that cannot be taken, or does not hold what is asked
    │   └── RecordingFileError          a file that is no recording, or no whole one
    ├── FileError        (OSError)      a file that cannot be written: full disk, no rights, no such place
    ├── FontError        (ValueError)   labels in a script for which no font is installed; names the package
    ├── DataError        (ValueError)   a file of sentences that cannot be read; names the line
    ├── TextError        (ValueError)   a text that cannot be translated
    ├── PackageError     (ImportError)  a package that is needed for this, and not installed
    ├── ProcessError     (RuntimeError) another process of the same work that is gone
    ├── SurveyError      (ValueError)   a survey that cannot begin, go on or end as asked
    └── TrainingError    (ValueError)   a training that cannot begin or go on as asked
        └── ModelFileError              a file of a trained model that is missing, damaged or no such file

Every message has three parts: what must hold, what was given, what to do about it.
Each class is also the built-in exception that a Python reader would expect, so
``except ValueError`` keeps working.
"""

from __future__ import annotations


class RegardError(Exception):
    """Something regard refuses, said in three parts.

    >>> print(RegardError("Keys and values have one length (keys = 5).", got="values = 4", do="Pass both."))
    Keys and values have one length (keys = 5). Got values = 4. Pass both.
    """

    def __init__(self, must: str, *, got: str = "", do: str = "") -> None:
        self.must, self.got, self.do = must, got, do
        parts = [must, f"Got {got.rstrip('.')}." if got else "", do]
        super().__init__(" ".join(part for part in parts if part))


class ShapeError(RegardError, ValueError):
    """Lengths, heads or axes that do not fit together."""


class DtypeError(RegardError, TypeError):
    """A kind of number or object that cannot be attended with."""


class DeviceError(RegardError, ValueError):
    """Tensors that do not live in one place."""


class ArgumentError(RegardError, ValueError):
    """An option out of its range."""


class MaskError(RegardError, ValueError):
    """A mask that cannot mean anything."""


class MaskSyntaxError(MaskError):
    """A mask text that cannot be read; shows the text with a mark under the character."""

    def __init__(self, problem: str, *, text: str, position: int) -> None:
        self.text = text
        self.position = position
        shown, mark = _excerpt(text, position)
        super().__init__(f"{problem}\n  {shown}\n  {' ' * mark}^")


AROUND = 60
"""Characters of a mask text that an error shows on either side of its mark."""


def _excerpt(text: str, position: int) -> tuple[str, int]:
    """The text around a position on one line, and where the position is in it.

    >>> _excerpt("causal\\n& widow(3)", 9)
    ('causal & widow(3)', 9)
    >>> excerpt, mark = _excerpt("causal | " * 1000, 4500)
    >>> len(excerpt), excerpt[mark:mark + 6]
    (120, 'causal')
    """
    start = 0 if len(text) <= 2 * AROUND else max(0, position - AROUND + 1)
    stop = len(text) if len(text) <= 2 * AROUND else position + AROUND - 1
    line = "".join(
        " " if letter.isspace() else letter if letter.isprintable() else "\ufffd"
        for letter in text[start:stop]
    )
    before, after = "…" if start else "", "…" if stop < len(text) else ""
    return before + line + after, position - start + len(before)


class RecordingError(RegardError, ValueError):
    """A recording that cannot be taken, or does not hold what is asked of it."""


class RecordingFileError(RecordingError):
    """A file that is no recording, or no whole one."""


class FileError(RegardError, OSError):
    """A file that cannot be written: a full disk, no rights, no such place."""


class FontError(RegardError, ValueError):
    """Labels in a script for which no font is installed; names the package."""


class DataError(RegardError, ValueError):
    """A file of sentences that cannot be read; names the line."""


class TextError(RegardError, ValueError):
    """A text that cannot be translated."""


class PackageError(RegardError, ImportError):
    """A package that is needed for this, and not installed."""


class ProcessError(RegardError, RuntimeError):
    """Another process of the same work that is gone."""


class SurveyError(RegardError, ValueError):
    """A survey that cannot begin, go on or end as asked."""


class TrainingError(RegardError, ValueError):
    """A training that cannot begin or go on as asked."""


class ModelFileError(TrainingError):
    """A file of a trained model that is missing, damaged or no such file."""
