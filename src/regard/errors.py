"""All exceptions of regard, as one tree.

::

    RegardError
    ├── ShapeError       (ValueError)   lengths, heads or axes that do not fit together
    ├── DtypeError       (TypeError)    a dtype or type that is not supported
    ├── DeviceError      (ValueError)   tensors on different devices
    ├── ArgumentError    (ValueError)   an option outside its range
    ├── MaskError        (ValueError)   a mask that has no meaning
    │   └── MaskSyntaxError             a mask text that cannot be parsed; points at the character
    ├── RecordingError   (ValueError)   a recording that cannot be made, or lacks what is requested
    │   └── RecordingFileError          a file that is not a recording, or an incomplete one
    ├── FileError        (OSError)      a file that cannot be written: full disk, no permission, no folder
    ├── FontError        (ValueError)   labels in a script for which no font is installed; names the package
    ├── DataError        (ValueError)   a file of sentences that cannot be read; names the line
    ├── TextError        (ValueError)   a text that cannot be translated
    ├── PackageError     (ImportError)  a required package that is not installed
    ├── ProcessError     (RuntimeError) another process of the same group that is gone
    ├── SurveyError      (ValueError)   a survey that cannot begin, continue or end as requested
    └── TrainingError    (ValueError)   a training run that cannot begin or continue as requested
        └── ModelFileError              a model file that is missing, damaged or of another kind

Every message has three parts: what must hold, what was given, and what to do about it.
Each class is also the built-in exception that a Python user would expect, so
``except ValueError`` keeps working.
"""

from __future__ import annotations


class RegardError(Exception):
    """The base class of all errors: a message in three parts.

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
    """A dtype or type that is not supported."""


class DeviceError(RegardError, ValueError):
    """Tensors on different devices."""


class ArgumentError(RegardError, ValueError):
    """An option outside its range."""


class MaskError(RegardError, ValueError):
    """A mask that has no meaning."""


class MaskSyntaxError(MaskError):
    """A mask text that cannot be parsed; shows the text with a mark under the character."""

    def __init__(self, problem: str, *, text: str, position: int) -> None:
        self.text = text
        self.position = position
        shown, mark = _excerpt(text, position)
        super().__init__(f"{problem}\n  {shown}\n  {' ' * mark}^")


AROUND = 60
"""How many characters of a mask text an error shows on either side of the mark."""


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
        " " if character.isspace() else character if character.isprintable() else "\ufffd"
        for character in text[start:stop]
    )
    before, after = "…" if start else "", "…" if stop < len(text) else ""
    return before + line + after, position - start + len(before)


class RecordingError(RegardError, ValueError):
    """A recording that cannot be made, or lacks what is requested."""


class RecordingFileError(RecordingError):
    """A file that is not a recording, or an incomplete one."""


class FileError(RegardError, OSError):
    """A file that cannot be written: full disk, no permission, no such folder."""


class FontError(RegardError, ValueError):
    """Labels in a script for which no font is installed; names the package."""


class DataError(RegardError, ValueError):
    """A file of sentences that cannot be read; names the line."""


class TextError(RegardError, ValueError):
    """A text that cannot be translated."""


class PackageError(RegardError, ImportError):
    """A required package that is not installed."""


class ProcessError(RegardError, RuntimeError):
    """Another process of the same group that is gone."""


class SurveyError(RegardError, ValueError):
    """A survey that cannot begin, continue or end as requested."""


class TrainingError(RegardError, ValueError):
    """A training run that cannot begin or continue as requested."""


class ModelFileError(TrainingError):
    """A model file that is missing, damaged or of another kind."""
