"""Find the heads that follow the speech, if none are named: those that agree with each other.

Many heads of Whisper move along the audio as it writes, but some look at the word before or at what comes
next, by up to half a second. Each is as sharp and as monotone as the ones that look at the word itself, so no
score of a single head tells them apart. Together they do: the heads that look ahead and those that lag
differ from the median of all heads, and the heads at the word itself are near it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.errors import RecordingError
from regard.heads.alignment_scores import alignment
from regard.speech.speech_model import Heads
from regard.speech.token_times import first_frames
from regard.speech.watched_window import WatchedWindow, weights_of_head

MONOTONY = 0.8
"""The least rank correlation of tokens and frames of a head that moves along the audio."""

FEWEST_TOKENS = 4
"""Tokens of a window that can show whether a head moves along."""


def agreeing_heads(windows: Sequence[WatchedWindow], median: int) -> Heads:
    """The half of the heads that move along the audio whose times are nearest to the median of all."""
    usable = [window for window in windows if len(window.tokens) >= FEWEST_TOKENS] or list(windows)
    moving = _moving_heads(usable)
    distance = np.zeros(len(moving))
    for window in usable:
        times = np.array(
            [
                first_frames([weights_of_head(window, layer, head, renormalize=True)], median)
                for layer, head in moving
            ]
        )
        distance += np.abs(times - np.median(times, 0)).mean(1)
    order = np.argsort(distance, kind="stable")[: -(-len(moving) // 2)]
    return tuple(moving[place] for place in order)


def _moving_heads(windows: Sequence[WatchedWindow]) -> Heads:
    """The heads whose strongest frames come in the order of the tokens, in the mean of the windows."""
    found: dict[tuple[int, int], list[float]] = {}
    for window in windows:
        for row in alignment(window.recording(), kind="cross"):
            place = int(str(row["layer"])), int(str(row["head"]))
            found.setdefault(place, []).append(float(str(row["monotony"])))
    monotony = {place: float(np.mean(values)) for place, values in sorted(found.items())}
    moving = tuple(place for place, value in monotony.items() if value >= MONOTONY)
    if not moving:
        raise RecordingError(
            "Word times need heads that move along the audio as the model writes (monotony ≥ {least}).",
            got="a greatest monotony of {greatest:.2f}",
            do="Pass longer speech, or name the heads: heads=[(2, 5), (3, 2)], say.",
            least=MONOTONY,
            greatest=max(monotony.values()),
        )
    return moving
