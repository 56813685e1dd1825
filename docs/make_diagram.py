"""Draw the encoder and the decoder of a transformer, in English and Chinese.

python docs/make_diagram.py

Writes docs/pictures/transformer-en.svg and transformer-zh.svg, which lesson 7 shows.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from pathlib import Path

PICTURES = Path(__file__).parent / "pictures"

WORDS = {
    "en": {
        "alt": "Encoder and decoder of a transformer, from the tokens at the bottom to the probabilities",
        "source": "source tokens",
        "target": "target tokens so far",
        "embedding": "embedding + positions",
        "attention": "self-attention",
        "causal": "causal self-attention",
        "cross": "cross-attention",
        "forward": "feed-forward",
        "add": "add & layer norm",
        "output": "linear + softmax",
        "next": "probability of the next token",
        "encoder": "encoder × N",
        "decoder": "decoder × N",
        "memory": "keys and values",
        "queries": "queries",
    },
    "zh": {
        "alt": "Transformer 的编码器与解码器：从底部的词元到顶部的概率",
        "source": "源语言词元",
        "target": "已写出的词元",
        "embedding": "词嵌入 + 位置编码",
        "attention": "自注意力",
        "causal": "因果自注意力",
        "cross": "交叉注意力",
        "forward": "前馈网络",
        "add": "残差相加与层归一化",
        "output": "线性层 + softmax",
        "next": "下一个词元的概率",
        "encoder": "编码器 × N",
        "decoder": "解码器 × N",
        "memory": "键和值",
        "queries": "查询",
    },
}

COLOURS = {
    "embedding": "#f3d9e6",
    "attention": "#cfe3f1",
    "causal": "#cfe3f1",
    "cross": "#b3d4ea",
    "forward": "#d5ecdf",
    "add": "#fbf3d0",
    "output": "#e6e6e4",
}

WIDE, TALL, LEFT, RIGHT = 190, 34, 70, 400
"""Sizes of a box, and the left edges of both columns, in pixels."""


def diagram(lang: str) -> str:
    """The whole drawing as SVG."""
    say = WORDS[lang]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 640" role="img" lang="{lang}">',
        f"<title>{escape(say['alt'])}</title>",
        "<style>text{font:14px 'DejaVu Sans','Noto Sans CJK SC',sans-serif;fill:#222;text-anchor:middle}"
        ".name{font-weight:bold;text-anchor:end}.small{font-size:12.5px;fill:#555}"
        "path{fill:none;stroke:#555;stroke-width:1.5}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" style="fill:#555;stroke:none"/></marker></defs>',
        '<rect width="680" height="640" fill="#fff"/>',
    ]
    parts += _frame(LEFT - 42, 270, 216, say["encoder"]) + _frame(RIGHT - 42, 132, 354, say["decoder"])
    encoder = _column(LEFT, [("add", 284), ("forward", 336), ("add", 388), ("attention", 440)], say)
    rows = [("add", 146), ("forward", 198), ("add", 250), ("cross", 302), ("add", 354), ("causal", 440)]
    decoder = _column(RIGHT, rows, say)
    parts += encoder + decoder
    for left, name in ((LEFT, "source"), (RIGHT, "target")):
        parts += _box("embedding", left, 520, say) + _text(left + WIDE / 2, 606, say[name])
        parts += _arrow(left + WIDE / 2, 590, 556) + _arrow(left + WIDE / 2, 520, 476)
    parts += _box("output", RIGHT, 78, say) + _text(RIGHT + WIDE / 2, 34, say["next"])
    parts += _arrow(RIGHT + WIDE / 2, 146, 114) + _arrow(RIGHT + WIDE / 2, 78, 42)
    # What the encoder found goes to every cross-attention of the decoder.
    middle = LEFT + WIDE / 2
    parts.append(f'<path d="M{middle} 284V240H330V319H{RIGHT - 4}" marker-end="url(#tip)"/>')
    parts += _text(middle + 86, 232, say["memory"], "small")
    parts += _text(RIGHT + WIDE / 2 + 40, 350, say["queries"], "small")
    residuals = [(LEFT, 388, 512), (LEFT, 284, 380), (RIGHT, 354, 512), (RIGHT, 250, 346), (RIGHT, 146, 242)]
    parts += [_residual(*one) for one in residuals]
    return "\n".join([*parts, "</svg>\n"])


def _frame(left: float, top: float, height: float, name: str) -> list[str]:
    box = f'<rect x="{left}" y="{top}" width="270" height="{height}" rx="10" fill="#fafafa" stroke="#bbb"/>'
    return [box, f'<text class="name" x="{left + 266}" y="{top - 8}">{escape(name)}</text>']


def _column(left: float, rows: list[tuple[str, int]], say: dict[str, str]) -> list[str]:
    parts = [piece for name, top in rows for piece in _box(name, left, top, say)]
    for (_, upper), (_, lower) in pairwise(rows):
        parts += _arrow(left + WIDE / 2, lower, upper + TALL + 2)
    return parts


def _box(name: str, left: float, top: float, say: dict[str, str]) -> list[str]:
    box = (
        f'<rect x="{left}" y="{top}" width="{WIDE}" height="{TALL}" rx="5" '
        f'fill="{COLOURS[name]}" stroke="#888"/>'
    )
    return [box, *_text(left + WIDE / 2, top + 22, say[name])]


def _text(x: float, y: float, text: str, kind: str = "") -> list[str]:
    return [
        f'<text x="{x}" y="{y}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(text)}</text>'
    ]


def _arrow(x: float, start: float, end: float) -> list[str]:
    return [f'<path d="M{x} {start}V{end}" marker-end="url(#tip)"/>']


def _residual(left: float, top: float, start: float) -> str:
    """The way around a block: what came in is added to what came out."""
    middle = left + WIDE / 2
    return (
        f'<path d="M{middle} {start}H{left - 22}V{top + TALL / 2}H{left - 3}" stroke-dasharray="5 3" '
        'marker-end="url(#tip)"/>'
    )


if __name__ == "__main__":
    for language in WORDS:
        path = PICTURES / f"transformer-{language}.svg"
        path.write_text(diagram(language), encoding="utf-8")
        print(path)
