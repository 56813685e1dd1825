"""Heads found without being named: those at the word, not those before or after it, nor those that stay."""

import numpy as np
import pytest
import torch

from regard.errors import RecordingError
from regard.recording import ScoredCall
from regard.speech.agreeing_heads import agreeing_heads
from regard.speech.watched_window import WatchedWindow

TOKENS, FRAMES = 9, 80


def window(shifts, seed=0):
    """A layer for each list: heads at their word, or some frames later; None for one that looks anywhere."""
    chance = np.random.default_rng(seed)
    calls = []
    for layer, own in enumerate(shifts):
        rows = np.full((len(own), TOKENS, FRAMES), 1e-4)
        for head, shift in enumerate(own):
            for token in range(TOKENS):
                if shift is None:
                    rows[head, token, chance.integers(FRAMES, size=8)] += 1
                else:
                    first = int(np.clip(8 * token + 4 + shift, 0, FRAMES - 8))
                    rows[head, token, first : first + 8] += 1 + chance.random(8)
        rows /= rows.sum(-1, keepdims=True)
        # Scores are q · k: with k the identity, q is the logarithm of the weights.
        q = torch.from_numpy(np.log(rows))[None].float()
        k = torch.eye(FRAMES).expand(1, len(own), -1, -1)
        calls.append(ScoredCall(f"layers.{layer}", "cross", layer, q, k, torch.zeros(1, len(own), TOKENS)))
    tokens = tuple(range(TOKENS))
    return WatchedWindow(
        tuple(calls), tokens, (1.0,) * TOKENS, FRAMES, 0.02, True, torch.zeros(4, 2 * FRAMES)
    )


SHIFTS = [[None, -14, 0], [1, 13, None], [-1, 22, -20]]


def test_the_heads_at_the_word_are_found():
    found = agreeing_heads([window(SHIFTS), window(SHIFTS, seed=1)], median=3)
    assert set(found[:3]) == {(0, 2), (1, 0), (2, 0)}
    assert not set(found) & {(0, 0), (1, 2)}  # heads that do not move along
    assert len(found) == 4  # half of the seven that do


def test_a_very_short_window_is_left_out_if_there_are_others():
    one = window(SHIFTS)
    short = WatchedWindow(
        tuple(torch_cut(call) for call in one.calls), (1, 2), (1.0, 1.0), FRAMES, 0.02, True, one.heard
    )
    assert agreeing_heads([one, short], median=3) == agreeing_heads([one], median=3)


def torch_cut(call):
    from dataclasses import replace

    return replace(call, q=call.q[:, :, :2], lse=call.lse[:, :, :2])


def test_no_head_moves_along():
    with pytest.raises(
        RecordingError, match=r"heads that move along the audio .* Got a greatest monotony of"
    ):
        agreeing_heads([window([[None, None], [None, None]])], median=3)
