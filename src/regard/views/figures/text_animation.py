"""``animate``: a text that is being written, token by token, each step shaded by what it attends to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from regard import atomic
from regard.checks import check_integer
from regard.errors import ArgumentError, RecordingError
from regard.languages import check_language
from regard.recording import Call, Recording
from regard.recording.call import check_sequence
from regard.views.figures.figure_texts import TEXTS, place_name
from regard.views.figures.fonts import families_for, readable
from regard.views.figures.style import ACCENT, DOTS, QUIET, TEXT, StyledFigure, house_style
from regard.views.figures.text_sizes import text_sizes
from regard.views.figures.weight_matrix import call_of
from regard.views.page.display_tokens import SideTokens, numbered, text_of
from regard.views.page.opening import head_roles, opening

MOST_FRAMES = 300
"""More steps than this make a file that nobody watches to its end."""

RESTING = 0.25
"""A head whose mean weight on the first key is at least this rests there; then that key is not shaded."""

WIDTH = 6.4  # inches
SIZE = 13.0  # points of the text
LINE = 1.75  # lines per font size
MARGIN = 0.25  # inches
LAST = 3.0  # times as long as the others


def animate(
    recording: Recording,
    path: str | Path,
    *,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    batch: int = 0,
    start: int | None = None,
    seconds: float = 0.6,
    lang: str = "en",
) -> Path:
    """Write a GIF of a text being written, step by step, and return its path.

    Each step shows the token that is read, the earlier ones shaded by what it attends to, and the token that
    comes next. For cross-attention the source is shaded while the target grows.

    Args:
        recording: of a generation, or of a text that was read.
        path: the file, ending in .gif.
        kind: "encoder", "decoder" or "cross".
        layer: the layer; by default a head worth seeing is chosen, as a page does.
        head: the head; with ``layer`` alone, the mean of its heads.
        batch: which sequence.
        start: the first row shown; by default where the generation begins.
        seconds: how long each step is shown.
        lang: the language of the title.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 4, 16))
    >>> animate(seen, getfixture("tmp_path") / "x.gif", layer=0, head=1).name
    'x.gif'
    """
    path = Path(path)
    check_language(lang)
    if path.suffix.lower() != ".gif":
        raise ArgumentError(
            "An animation must be saved as .gif.", got="{name}", do="Rename it.", name=path.name
        )
    if not seconds > 0:
        raise ArgumentError(
            "seconds must be more than 0.", got="seconds = {seconds!r}", do="Try 0.6.", seconds=seconds
        )
    steps = _steps_of(recording, kind, layer, head, batch, start, lang)
    with house_style():
        frames = list(_frames(steps))
    durations = [round(1000 * seconds)] * (len(frames) - 1) + [round(1000 * seconds * LAST)]
    drawn = BytesIO()
    frames[0].save(
        drawn, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True
    )
    atomic.write_bytes(path, drawn.getvalue())
    return path


@dataclass(frozen=True, eq=False)
class _Steps:
    """What an animation shows: rows of weights, and the two texts."""

    title: str
    keys: SideTokens
    written: SideTokens | None  # the target of cross-attention; None where queries and keys are one text
    rows: range
    weights: NDArray[np.float32]  # (row of the animation, key), sinks without any
    offset: int  # the key at which row 0 stands
    lang: str


def _steps_of(
    recording: Recording,
    kind: str | None,
    layer: int | None,
    head: int | None,
    batch: int,
    start: int | None,
    lang: str,
) -> _Steps:
    call, chosen = _head_of(recording, kind, layer, head, batch)
    if not call.has_weights:
        raise RecordingError(
            "An animation needs weights, but {name} has only statistics.",
            do="Record with watch(model) instead of watch(model, statistics=True).",
            name=call.name,
        )
    check_sequence(batch, call.batch)
    cross = call.kind == "cross"
    keys = _text(recording.key_tokens(call, batch), call.keys)
    written = _text(recording.row_tokens(call, batch), call.queries) if cross else None
    first = (
        _first_row(recording, call) if start is None else check_integer("start", start, least=0, example=0)
    )
    # The last row of a generation writes a token that is not part of the text.
    last = call.queries if not cross else max(1, call.queries - 1)
    rows = range(min(first, last - 1), last)
    if len(rows) > MOST_FRAMES:
        raise ArgumentError(
            "An animation must have at most {most} steps.",
            got="{steps:,} steps",
            do="Begin later with start=.",
            most=MOST_FRAMES,
            steps=len(rows),
        )
    part = slice(rows.start, rows.stop)
    weights = np.mean([call.weights(one, part, batch=batch).float().numpy() for one in chosen], axis=0)
    rests = weights[:, 0].mean() >= RESTING
    quiet = np.array([special or (at == 0 and rests) for at, special in enumerate(keys.special)])
    title = place_name(call.layer, chosen[0] if len(chosen) == 1 else None, call.kind, lang)
    shown = np.where(quiet & ~quiet.all(), 0.0, weights).astype(np.float32)
    return _Steps(title, keys, written, rows, shown, call.extent.offset, lang)


def _head_of(
    recording: Recording, kind: str | None, layer: int | None, head: int | None, batch: int
) -> tuple[Call, Sequence[int]]:
    """The call, and the heads whose mean is shown."""
    if layer is None and head is None and batch == 0:
        calls = [call for call in recording.calls if kind in (None, call.kind) and call.has_weights]
        texts = [
            (
                _text(recording.row_tokens(call, batch), call.queries),
                _text(recording.key_tokens(call, batch), call.keys),
            )
            for call in calls
        ]
        if calls:
            found = opening(calls, texts, head_roles(recording, calls, batch), {})
            call = calls[found.get("call", 0)]
            return call, [call.head_numbers[found.get("head", 0)]]
    call = call_of(recording, layer=0 if layer is None else layer, kind=kind, run=None)
    if head is not None and head not in call.head_numbers:
        raise ArgumentError(
            "head must be one of the recorded heads ({known}).",
            got="head = {head!r}",
            do="Choose one of them.",
            known=", ".join(map(str, call.head_numbers)),
            head=head,
        )
    return call, call.head_numbers if head is None else [head]


def _first_row(recording: Recording, call: Call) -> int:
    """The row that writes the first generated token; the first row where nothing was generated."""
    found = recording.next_tokens
    if found is None or found.generated is None or call.kind != "decoder":
        return 0
    return max(0, found.generated - 1 - call.extent.offset)


def _text(tokens: Sequence[str] | None, count: int) -> SideTokens:
    return numbered(count) if tokens is None else text_of(tokens)


# ---- drawing ---------------------------------------------------------------------------------


class _AnimatedText:
    """A text on a figure, laid out once; each step colours its tokens and hides those that come later."""

    def __init__(
        self,
        figure: StyledFigure,
        text: SideTokens,
        names: Sequence[str],
        families: Sequence[str],
        top: float,
    ) -> None:
        self.tokens: list[Text] = []
        renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        width, height = figure.get_size_inches() * figure.dpi
        usual = text_sizes().small(SIZE)
        margin, line = MARGIN * figure.dpi, usual * LINE * figure.dpi / 72
        space = usual * 0.32 * figure.dpi / 72
        x, y = margin, top
        for name, apart, special in zip(names, text.spaces, text.special):
            size = usual * (0.7 if special else 1)
            token = figure.text(0, 0, name, fontsize=size, va="baseline", fontfamily=families, color=TEXT)
            wide = token.get_window_extent(renderer).width
            x += space if apart and x > margin else 0.0
            if x + wide > width - margin and x > margin:
                x, y = margin, y - line
            token.set_position((x / width, y / height))
            x += wide + (0.0 if not name.endswith(("⏎", "↵")) else width)
            self.tokens.append(token)
        self.bottom = y

    def show(self, count: int, weights: NDArray[np.float32] | None, here: int = -1, new: int = -1) -> None:
        """The first ``count`` tokens, shaded; ``here`` attends, ``new`` is written."""
        strongest = max(0.05, float(weights.max(initial=0.0))) if weights is not None else 1.0
        for at, token in enumerate(self.tokens):
            token.set_visible(at < count)
            share = 0.0 if weights is None else float(weights[at]) / strongest
            token.set_bbox(_box(share, at == here))
            token.set_color("white" if share > 0.55 else ACCENT if at in (here, new) else TEXT)
            token.set_fontweight("bold" if at == new else "normal")


def _box(share: float, here: bool) -> dict[str, Any] | None:
    if share < 0.02 and not here:
        return None
    shade = colormaps["Blues"](0.08 + 0.87 * share) if share >= 0.02 else "none"
    return {
        "facecolor": shade,
        "edgecolor": ACCENT if here else "none",
        "linewidth": 1.4 if here else 0.0,
        "boxstyle": "round,pad=0.16",
    }


def _frames(steps: _Steps) -> Iterator[Image.Image]:
    """One picture for each step, all of the same size."""
    texts = [steps.keys, *([steps.written] if steps.written else [])]
    families = families_for([steps.title, *(token for text in texts for token in text.tokens)])
    names = [readable(text.tokens, families) for text in texts]
    # Laid out twice: the first time to learn how high the text is.
    height = 40.0
    drawn: list[_AnimatedText] = []
    for _ in range(2):
        figure = StyledFigure(figsize=(WIDTH, height), dpi=DOTS)
        top = height * DOTS - (MARGIN + text_sizes().small(0.55)) * DOTS
        drawn = []
        for text, shown in zip(texts, names):
            if drawn:
                top = drawn[-1].bottom - text_sizes().small(SIZE) * 3.2 * DOTS / 72
            drawn.append(_AnimatedText(figure, text, shown, families, top))
        used = height * DOTS - drawn[-1].bottom + MARGIN * DOTS
        height = used / DOTS
    title = figure.text(
        MARGIN / WIDTH,
        1 - MARGIN / height,
        "",
        va="top",
        fontfamily=families,
        color=QUIET,
        fontsize=text_sizes().heading,
    )
    for place, row in enumerate(steps.rows):
        yield _frame(figure, steps, drawn, title, place, row)


def _frame(
    figure: StyledFigure, steps: _Steps, drawn: Sequence[_AnimatedText], title: Text, place: int, row: int
) -> Image.Image:
    weights = steps.weights[place]
    key = int(weights.argmax())
    if steps.written is None:
        here = row + steps.offset
        drawn[0].show(here + 2, weights, here=here, new=here + 1)
        query = steps.keys.tokens[here]
    else:
        drawn[0].show(len(steps.keys.tokens), weights)
        drawn[1].show(row + 1, None, here=row, new=row)
        query = steps.written.tokens[row]
    said = TEXTS.say(
        "animation", steps.lang, query=query, key=steps.keys.tokens[key], share=100 * float(weights[key])
    )
    title.set_text(f"{steps.title}:  {said}" if weights[key] > 0 else steps.title)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    return Image.fromarray(pixels).quantize(64, dither=Image.Dither.NONE)
