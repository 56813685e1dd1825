"""Chinese as printed on the mainland: simplified characters and full-width punctuation.

Half of the pairs of Tatoeba are in traditional characters, and some have the punctuation of an English
keyboard. A model that is trained on both writes both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from regard.errors import DataError

HALF_WIDTH = re.compile(r"(?<![A-Za-z0-9])[,?!;:]|[,?!;:](?![A-Za-z0-9])")
"""Marks of an English keyboard, except within something like 10:30 or 1,000."""

FULL_WIDTH = str.maketrans(",?!;:", "，？！；：")
QUOTES = str.maketrans("「」『』", "“”‘’")
WIDE = r"[\u2018-\u201d\u2026\u3000-\u9fff\uff00-\uffef]"
SPACE = re.compile(rf"(?<={WIDE})\s+|\s+(?={WIDE})")
STRAIGHT = re.compile(r'"([^"]*)"')
DOTS = re.compile(r"\.{3,}|。{2,}")
STOP = re.compile(r"(?<=[\u3400-\u9fff”])\.(?=$|[”\u3400-\u9fff])")


def simplified(texts: Sequence[str]) -> list[str]:
    """The same texts, each one line, in simplified characters.

    >>> simplified(["她睡著了。", "他寫了一本著名的書。", "我在看著你"])
    ['她睡着了。', '他写了一本著名的书。', '我在看着你']
    """
    # One call for all, because each call is slow to start; no word crosses a line.
    text = "\n".join(texts)
    folded = _converter("t2s")(text)
    # In Taiwan 著 is also what is 着 on the mainland, and only the other table knows which one it is. That
    # table is for traditional texts alone: it changes 什么, so nothing else is taken from it.
    mainland = _converter("tw2s")(text)
    if "著" in folded and len(mainland) == len(folded):
        pairs = zip(folded, mainland, strict=True)
        folded = "".join(there if here == "著" else here for here, there in pairs)
    return folded.split("\n")


def punctuated(text: str) -> str:
    """The text with full-width marks, curly quotes and no spaces beside Chinese characters.

    >>> punctuated('他說: "走吧!"'), punctuated("10:30 到, 1,000 米."), punctuated("他是一个 DJ 。")
    ('他說：“走吧！”', '10:30到，1,000米。', '他是一个DJ。')
    """
    text = STRAIGHT.sub(r"“\1”", text.translate(QUOTES))
    text = HALF_WIDTH.sub(lambda found: found[0].translate(FULL_WIDTH), text)
    text = DOTS.sub("…", SPACE.sub("", text))
    return STOP.sub("。", text)


def _converter(name: str) -> Callable[[str], str]:
    try:
        from opencc import OpenCC
    except ImportError as error:
        raise DataError(
            "Converting Chinese to simplified characters needs opencc-python-reimplemented.",
            got="no such package",
            do='Install it with pip install "regard[train]".',
        ) from error
    convert: Callable[[str], str] = OpenCC(name).convert
    return convert
