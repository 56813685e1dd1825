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
    ├── EditError        (ValueError)   an edit of a model that cannot be made, or that changes nothing
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

from copy import copy
from typing import TYPE_CHECKING

from regard.texts import LANGUAGES, read_table

if TYPE_CHECKING:
    from typing_extensions import Self


class Phrase:
    """A sentence, or a part of one, that keeps its template and its values and can be said in any language.

    >>> phrase = Phrase("Got {given}.", given=3)
    >>> str(phrase), phrase.in_words("zh")
    ('Got 3.', '实际为：3。')
    """

    def __init__(self, template: str, /, **values: object) -> None:
        self.template, self.values = template, _kept(values)

    def __str__(self) -> str:
        return self.in_words("en")

    def in_words(self, lang: str) -> str:
        """The template of a language with its values, which may be phrases, lists of them, or errors."""
        check_language(lang)
        said = {name: _said(value, lang) for name, value in self.values.items()}
        return read_table("errors", lang).get(self.template, self.template).format(**said)


class RegardError(Exception):
    """The base class of all errors: a message in three parts, each a template, and the values for them.

    >>> error = RegardError("There is a value for every key (keys = {keys}).", got="{count}", keys=5, count=4)
    >>> print(error)
    There is a value for every key (keys = 5). Got 4.
    >>> error.values
    {'keys': 5, 'count': 4}

    ``str(error)`` is English; ``error.in_words("zh")`` looks the templates up in the table of that language.
    A template is never put together from pieces: what varies is a value, and a value that is itself text
    to translate is a ``Phrase``. Another error may be a value too: it is kept as its words.
    """

    def __init__(self, must: str, *, got: str = "", do: str = "", **values: object) -> None:
        self.must, self.got, self.do, self.values = must, got, do, _kept(values)
        super().__init__(self.in_words("en"))

    def in_words(self, lang: str) -> str:
        """The message in a language: ``"en"`` or ``"zh"``.

        >>> RegardError("The text must have at least one word.", got="{text!r}", text="").in_words("zh")
        "文本至少要有一个词。实际为：''。"
        """
        parts = [Phrase(self.must, **self.values).in_words(lang)]
        if self.got:
            got = Phrase(self.got, **self.values).in_words(lang)
            parts.append(Phrase("Got {given}.", given=got.rstrip(".。")).in_words(lang))
        if self.do:
            parts.append(Phrase(self.do, **self.values).in_words(lang))
        return ("" if lang == "zh" else " ").join(part for part in parts if part)

    @property
    def given(self) -> Phrase:
        """What was given, as a value for another error."""
        return Phrase(self.got, **self.values)

    def but(self, *, got: str | None = None, do: str | None = None, **values: object) -> Self:
        """The same error with another part or with more values.

        >>> error = RegardError("A text has words.", got="none", do="Write one.")
        >>> print(error.but(do="Read {file}.", file="a.txt"))
        A text has words. Got none. Read a.txt.
        """
        changed = copy(self)
        changed.got, changed.do = self.got if got is None else got, self.do if do is None else do
        changed.values = {**self.values, **_kept(values)}
        changed.args = (changed.in_words("en"),)
        return changed

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt from their arguments by default, here from a finished message.
        return _rebuilt, (type(self), self.args, self.__dict__)


def reason(error: Exception) -> Phrase | RegardError:
    """What an error says, without the frames that it holds; in any language if regard or the system says it.

    >>> reason(FileNotFoundError(2, "No such file or directory")).in_words("zh")
    '没有这个文件或文件夹'
    """
    if isinstance(error, RegardError):
        return error.but()
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Phrase(words.replace("{", "{{").replace("}", "}}"))


def _said(value: object, lang: str) -> object:
    if isinstance(value, list) and any(isinstance(one, Phrase) for one in value):
        return ("；" if lang == "zh" else "; ").join(str(_said(one, lang)) for one in value)
    return value.in_words(lang) if isinstance(value, (Phrase, RegardError)) else value


def _kept(values: dict[str, object]) -> dict[str, object]:
    return {name: reason(one) if isinstance(one, Exception) else one for name, one in values.items()}


def _rebuilt(kind: type[RegardError], args: tuple[object, ...], state: dict[str, object]) -> RegardError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ShapeError(RegardError, ValueError):
    """Lengths, heads or axes that do not fit together."""


class DtypeError(RegardError, TypeError):
    """A dtype or type that is not supported."""


class DeviceError(RegardError, ValueError):
    """Tensors on different devices."""


class ArgumentError(RegardError, ValueError):
    """An option outside its range."""


def check_language(lang: object) -> None:
    """Raise unless this is one of the languages.

    >>> check_language("fr")
    Traceback (most recent call last):
    regard.errors.ArgumentError: lang must be one of en, zh. Got lang = 'fr'. Choose one of them.
    """
    if lang not in LANGUAGES:
        raise ArgumentError(
            "lang must be one of {languages}.",
            got="lang = {language!r}",
            do="Choose one of them.",
            languages=", ".join(LANGUAGES),
            language=lang,
        )


class MaskError(RegardError, ValueError):
    """A mask that has no meaning."""


class MaskSyntaxError(MaskError):
    """A mask text that cannot be parsed; shows the text with a mark under the character."""

    def __init__(self, problem: str, *, text: str, position: int, **values: object) -> None:
        self.text = text
        self.position = position
        super().__init__(problem, got="", do="", **values)

    def in_words(self, lang: str) -> str:
        """The problem, and below it the text with the mark."""
        shown, mark = _excerpt(self.text, self.position)
        return f"{super().in_words(lang)}\n  {shown}\n  {' ' * mark}^"


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


class EditError(RegardError, ValueError):
    """An edit of a model that cannot be made, or that changes nothing."""


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
