"""The texts that figures write themselves, in English and Chinese."""

from __future__ import annotations

from regard.languages import Texts

TEXTS = Texts("figures")


def place_name(layer: int | None, head: int | None, kind: str = "", lang: str = "en") -> str:
    """Which head of which layer is shown; empty where nothing is known.

    >>> place_name(2, 3), place_name(2, None, "cross"), place_name(None, 0), place_name(2, 3, lang="zh")
    ('layer 2, head 3', 'layer 2 (cross)', 'head 0', '第 2 层，第 3 头')
    """
    across = kind == "cross"
    if layer is not None and head is not None:
        return TEXTS.say("place.cross" if across else "place", lang, layer=layer, head=head)
    if layer is not None:
        return TEXTS.say("layer.cross" if across else "layer.n", lang, layer=layer)
    return "" if head is None else TEXTS.say("head.n", lang, head=head)
