"""Text on its way to a terminal or a pipe: nothing in it steers the terminal, every encoding can carry it.

``safe`` is the one place where text of others (tokens, names of files, messages) is made harmless, and
``tolerate_encodings`` the one where streams learn to write characters that their encoding lacks.
"""

from __future__ import annotations

import codecs
import re
import sys

_STEERING = re.compile(
    # Controls apart from line ends and tabs; what turns the direction of writing; halves of characters, which
    # are what Python makes of bytes that are not UTF-8.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def safe(text: str) -> str:
    r"""The text with everything that steers a terminal written out; all other characters stay as they are.

    >>> print(safe("red: \x1b[31m, 猫 👩‍🚀"))
    red: \x1b[31m, 猫 👩‍🚀
    """
    return _STEERING.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


# ---- encodings -------------------------------------------------------------------------------

_HANDLER = "regard.alike"

# As wide as what they replace, so that tables and drawings keep their columns.
_ALIKE = {
    **dict.fromkeys("█▉▊▋▌▇▆▅■●", "#"),
    **dict.fromkeys("▍▎▏▄▃▂▁", "-"),
    **dict.fromkeys("▒░▓", "+"),
    **dict.fromkeys("─━╌╴╶╸╺–—−‐‑―", "-"),
    **dict.fromkeys("│┃╎", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰┏┓┗┛", "+"),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys("·•∙", "."),
    "→": ">", "←": "<", "↑": "^", "↓": "v", "×": "x", "≈": "~", "…": "~", "∅": "0", "✓": "+", "✗": "x",
    "√": "sqrt", "∞": "inf", "≤": "<=", "≥": ">=", "Σ": "sum", "σ": "sigma", "φ": "phi", "ᵀ": "^T",
    "°": " deg", "⁻": "^-", "⁰": "^0", "¹": "^1", "²": "^2", "³": "^3", "₀": "_0", "₁": "_1", "₂": "_2",
}  # fmt: skip


def _alike(error: UnicodeError) -> tuple[str | bytes, int]:
    """The handler of characters that an encoding lacks: a similar one in ASCII, or its number."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_ALIKE.get(sign) or _numbered(sign) for sign in missing), error.end


def _numbered(sign: str) -> str:
    return sign.encode("ascii", "backslashreplace").decode("ascii")


def tolerate_encodings() -> None:
    """Let standard output and error write whatever they are given, in whatever encoding they have.

    A character that the encoding lacks is written as a similar one in ASCII, else by its number.
    """
    codecs.register_error(_HANDLER, _alike)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # None where a stream is closed or not a file
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)
