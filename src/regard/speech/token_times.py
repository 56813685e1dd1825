"""When each token was spoken: the monotone path through the weights of the alignment heads.

The steps are those of OpenAI's Whisper: the weights of each head are standardized over the tokens, smoothed
by a median filter along the frames, and averaged over the heads; the path that collects the most gives every
token a stretch of frames.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.heads.monotone_path import monotone_path
from regard.heads.token_alignment import smoothed
from regard.masks.extent import Numbers
from regard.speech.watched_window import WatchedWindow, weights_of_head


def token_frames(
    window: WatchedWindow, heads: Sequence[tuple[int, int]], *, median: int, renormalize: bool = True
) -> NDArray[np.int64]:
    """The first frame of each token, then the frame after the last, ``(token + 1,)``."""
    weights = [weights_of_head(window, layer, head, renormalize=renormalize) for layer, head in heads]
    return np.append(first_frames(weights, median), window.frames)


def first_frames(weights: Sequence[Numbers], median: int) -> NDArray[np.int64]:
    """The frame at which the path through the mean of some heads' weights enters each row, ``(token,)``.

    >>> first_frames([np.array([[8.0, 7, 0, 0, 0], [1, 2, 1, 7, 1], [0, 0, 0, 1, 9]])], median=1).tolist()
    [0, 2, 4]
    """
    path = monotone_path(np.mean([smoothed(one, median, standardize=True) for one in weights], 0))
    enters = np.diff(path[:, 0], prepend=-1) > 0
    return np.asarray(path[enters, 1], np.int64)
