"""Text for a terminal or a pipe: it cannot control the terminal, and every encoding can write it.

``safe`` is the one place where untrusted text (tokens, file names, messages) is made harmless, and
``tolerate_encodings`` the one where streams learn to write characters that their encoding lacks.
"""

from __future__ import annotations

import codecs
import re
import sys

_STEERING = re.compile(
    # Control characters except line ends and tabs; characters that change the writing direction; lone
    # surrogates, which Python uses for bytes that are not UTF-8.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def safe(text: str) -> str:
    r"""The text with terminal control characters escaped; all other characters are unchanged.

    >>> print(safe("red: \x1b[31m, 猫 👩‍🚀"))
    red: \x1b[31m, 猫 👩‍🚀
    """
    return _STEERING.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


# ---- encodings -------------------------------------------------------------------------------

_HANDLER = "regard.alike"

# Mostly as wide as what they replace, so that tables and drawings keep their columns.
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
    """Error handler for characters that an encoding lacks: a similar one in ASCII, or the code point."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_ALIKE.get(sign) or _numbered(sign) for sign in missing), error.end


def _numbered(sign: str) -> str:
    return sign.encode("ascii", "backslashreplace").decode("ascii")


def tolerate_encodings() -> None:
    """Let standard output and standard error write any text, whatever their encoding.

    A character that the encoding lacks is replaced by a similar one in ASCII, or by its code point.
    """
    codecs.register_error(_HANDLER, _alike)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # None if a stream is closed or not a file
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)
