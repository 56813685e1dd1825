"""Tokens as people read them: their display form, which are special, and which make up a word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import ShapeError

_SPECIAL = re.compile(
    r"\[(CLS|SEP|PAD|BOS|EOS|START|END)\]|</?s>|<(pad|bos|eos|cls|sep|start_of_turn|end_of_turn|start_of_text|end_of_text)>"
    r"|<\|[^<>|]*\|>|<(begin|end)[_▁]of[_▁]sentence>"
)
# East Asian scripts without spaces: every such piece is read by itself.
_UNSPACED = re.compile(
    "[\u2e80-\u2fdf\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_SIGNS = {"\n": "⏎", "\r": "␍", "\t": "⇥"}


@dataclass(frozen=True)
class SideTokens:
    """The tokens of one side of a call."""

    tokens: tuple[str, ...]
    special: tuple[bool, ...]
    words: tuple[int, ...]  # the word of each token; −1 for special ones, which stay alone
    spaces: tuple[bool, ...]  # whether a space goes before each token in running text


def text_of(
    tokens: Sequence[str], words: Sequence[int] | None = None, *, prettify: bool = True
) -> SideTokens:
    """Tokens of any tokenizer made readable.

    >>> text = text_of(["[CLS]", "un", "##seen", "words", "[SEP]"])
    >>> text.tokens
    ('[CLS]', 'un', 'seen', 'words', '[SEP]')
    >>> text.words
    (-1, 0, 0, 1, -1)
    >>> text_of(["The", "Ġcaf", "Ã©", "Ċ", "."]).tokens
    ('The', 'caf', 'é', '⏎', '.')
    """
    marks = {token: bool(_SPECIAL.fullmatch(token)) for token in set(tokens)}
    special = tuple(marks[token] for token in tokens)
    if words is not None and len(words) != len(tokens):
        raise ShapeError(
            "words must have one number for each token (tokens = {tokens}).",
            got="{words_count} numbers",
            do="Use −1 for special tokens, and the same number for all pieces of a word.",
            tokens=len(tokens),
            words_count=len(words),
        )
    readable = _readable(tokens, special)
    of_words = _words(tokens, readable, special) if words is None else [int(word) for word in words]
    shown = readable if prettify else [_visible(token) for token in tokens]
    spaces = _spaces(tokens, readable, special, of_words)
    return SideTokens(tuple(shown), special, tuple(of_words), tuple(spaces))


def typed_token(token: str) -> str:
    """A token as one would type it: with the space that belongs to it, so that two tokens never look alike.

    >>> [typed_token(token) for token in ("ĠParis", "Paris", "▁Paris", "Paris</w>", "##is", "Par@@", "Ġ")]
    [' Paris', 'Paris', ' Paris', 'Paris ', '##is', 'Par@@', '␣']
    """
    if _SPECIAL.fullmatch(token) or (len(token) > 2 and (token.startswith("##") or token.endswith("@@"))):
        return _visible(token)
    shown = _readable([token], [False])[0]
    before = len(token) - len(token.lstrip("Ġ▁"))
    return shown if before == len(token) else " " * before + shown + " " * token.endswith("</w>")


def numbered(count: int) -> SideTokens:
    """Positions, where there are no tokens.

    >>> numbered(3).tokens
    ('0', '1', '2')
    """
    return SideTokens(tuple(map(str, range(count))), (False,) * count, tuple(range(count)), (True,) * count)


# ---- display ---------------------------------------------------------------------------------


def _readable(tokens: Sequence[str], special: Sequence[bool]) -> list[str]:
    byte_level = any(("Ġ" in token or "Ċ" in token) for token in tokens)

    def shown(token: str, is_special: bool) -> str:
        if is_special:
            return _visible(token)
        text = _from_bytes(token) if byte_level else _from_byte_name(token)
        bare = text.replace("▁", " ").removeprefix("##").removesuffix("</w>").removesuffix("@@")
        return _visible(bare.strip(" ") or bare or text or "∅")

    # A long text has many tokens, but few different ones.
    known = {token: shown(token, is_special) for token, is_special in dict(zip(tokens, special)).items()}
    return [known[token] for token in tokens]


def _byte_alphabet() -> dict[str, int]:
    """The characters that byte-level tokenizers use for bytes; printable ones stand for themselves."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_alphabet()


def _from_bytes(token: str) -> str:
    """The text that a byte-level token stands for; an incomplete character is shown as its bytes."""
    if any(character not in _BYTES for character in token):
        return token
    raw = bytes(_BYTES[character] for character in token)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "⟨" + raw.hex(" ").upper() + "⟩"


def _from_byte_name(token: str) -> str:
    """Sentencepiece writes single bytes as ``<0x0A>``."""
    named = re.fullmatch("<0x([0-9A-Fa-f]{2})>", token)
    if named is None:
        return token
    byte = int(named[1], 16)
    return chr(byte) if byte < 128 else f"⟨{byte:02X}⟩"


def _visible(text: str) -> str:
    """Line breaks, lone spaces and control characters as visible signs."""
    if text and not text.strip(" "):
        return "␣" * len(text)
    return "".join(_SIGNS.get(character) or _named(character) for character in text)


def _named(character: str) -> str:
    # Cc: control characters; Cf has those that change the writing direction, but also the joiner of emoji.
    kind = unicodedata.category(character)
    return (
        f"⟨{ord(character):02X}⟩"
        if kind == "Cc" or (kind == "Cf" and character not in "\u200c\u200d")
        else character
    )


# ---- words -----------------------------------------------------------------------------------


def _words(tokens: Sequence[str], readable: Sequence[str], special: Sequence[bool]) -> list[int]:
    """The word of each token, from the marks that tokenizers leave on pieces."""
    starts_marked = any(token[:1] in ("Ġ", "▁") for token in tokens)
    ends_marked = any(token.endswith("</w>") for token in tokens)
    numbers: list[int] = []
    word, before = -1, -1  # the latest word, and the token before, unless it is special
    for place, token in enumerate(tokens):
        if special[place]:
            numbers.append(-1)
            before = -1
            continue
        joins = False
        if before >= 0:
            if (token.startswith("##") and len(token) > 2) or tokens[before].endswith("@@"):
                joins = True
            elif ends_marked:
                joins = not tokens[before].endswith("</w>")
            elif starts_marked and token[:1] not in ("Ġ", "▁"):
                joins = _is_word(readable[place]) and _is_word(readable[before])
        word += not joins
        numbers.append(word)
        before = place
    return numbers


def is_unspaced(token: str) -> bool:
    """Whether a token has characters of a script that is written without spaces.

    >>> is_unspaced("猫"), is_unspaced("cat")
    (True, False)
    """
    return bool(_UNSPACED.search(token))


def _is_word(token: str) -> bool:
    """Whether a piece can be part of a longer word; punctuation and ideographs stand alone."""
    return any(character.isalnum() for character in token) and not _UNSPACED.search(token)


# ---- spaces ----------------------------------------------------------------------------------

_CLOSING = re.compile(r"[,.;:!?%)\]}…’”»、。，；：！？）】》」』]+")
_OPENING = re.compile(r"[(\[{“‘«（【《「『]+")
_QUOTE = '"'
_JOINING = re.compile("['’/@‑-]")


def _spaces(
    tokens: Sequence[str], readable: Sequence[str], special: Sequence[bool], words: Sequence[int]
) -> list[bool]:
    """Whether a space goes before each token: as the tokenizer marks it, otherwise as people write.

    >>> tokens = ["[CLS]", "don", "'", "t", "go", "(", "home", ")", ".", "猫", "坐"]
    >>> _spaces(tokens, tokens, [True] + [False] * 10, range(11))[1:]
    [True, False, False, True, True, False, False, False, False, False]
    >>> tokens = ["he", "said", '"', "go", '"', "twice"]
    >>> _spaces(tokens, tokens, [False] * 6, range(6))
    [False, True, True, False, False, True]
    """
    marked = any(token[:1] in ("Ġ", "▁") for token in tokens)
    found = []
    quoted = False  # inside of straight quotes, which look the same at both ends
    for place, token in enumerate(tokens):
        if readable[place] == _QUOTE:
            quoted = not quoted
        if place == 0 or special[place] or special[place - 1]:
            found.append(place > 0)
        elif marked:
            found.append(token[:1] in ("Ġ", "▁"))
        elif _QUOTE in (readable[place], readable[place - 1]):
            inner = quoted != (readable[place] == _QUOTE)
            found.append(
                not (inner or _CLOSING.fullmatch(readable[place]) or _OPENING.fullmatch(readable[place - 1]))
            )
        else:
            found.append(_apart(readable, words, place))
    return found


def _apart(readable: Sequence[str], words: Sequence[int], place: int) -> bool:
    """Whether people write a space between a token and the one before."""
    before, here = readable[place - 1], readable[place]
    if words[place] >= 0 and words[place] == words[place - 1]:
        return False
    if _CLOSING.fullmatch(here) or _OPENING.fullmatch(before):
        return False
    if _JOINING.fullmatch(here) or _JOINING.fullmatch(before):
        return False
    # No space between ideographs, nor between them and punctuation or digits.
    return not (_UNSPACED.search(here) and (_UNSPACED.search(before) or _CLOSING.fullmatch(before)))
