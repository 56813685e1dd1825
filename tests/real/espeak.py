"""Speech with known word times: espeak-ng, which reports the sample at which it begins each word."""

from __future__ import annotations

import ctypes
from ctypes.util import find_library
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RETRIEVAL = 1
"""Samples come to a callback in place of a loudspeaker."""

UTF8, RATE_PARAMETER, WORD_GAP = 1, 1, 7
END_OF_LIST, WORD = 0, 1


class Speech(NamedTuple):
    """Samples at 16 kHz, and the second at which each word begins, by its number in the text.

    A few short words are spoken as one with the next ("in the") and only the first of them has a time.
    """

    samples: NDArray[np.float32]
    starts: dict[int, float]


class Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int), ("unique_identifier", ctypes.c_uint), ("text_position", ctypes.c_int),
        ("length", ctypes.c_int), ("audio_position", ctypes.c_int), ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p), ("id", ctypes.c_char * 8),
    )  # fmt: skip


def installed() -> bool:
    return find_library("espeak-ng") is not None or _load() is not None


def _load() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(find_library("espeak-ng") or "libespeak-ng.so.1")
    except OSError:
        return None


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event))


class Speaker:
    """One voice; words are spoken at ``speed`` words a minute, ``gap`` · 10 ms apart."""

    def __init__(self, voice: str = "en-us", speed: int = 150, gap: int = 0) -> None:
        library = _load()
        assert library is not None
        self._library = library
        self._rate = library.espeak_Initialize(RETRIEVAL, 0, None, 0)
        assert self._rate > 0
        library.espeak_SetVoiceByName(voice.encode())
        library.espeak_SetParameter(RATE_PARAMETER, speed, 0)
        library.espeak_SetParameter(WORD_GAP, gap, 0)

    def say(self, text: str) -> Speech:
        """The text, spoken."""
        pieces: list[NDArray[np.int16]] = []
        starts: dict[int, float] = {}

        def callback(samples: object, count: int, events: object) -> int:
            if samples and count:
                pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
            at = 0
            while events[at].type != END_OF_LIST:
                if events[at].type == WORD:
                    before = text[: events[at].text_position - 1]
                    starts.setdefault(len(before.split()), events[at].audio_position / 1000)
                at += 1
            return 0

        kept = CALLBACK(callback)
        self._library.espeak_SetSynthCallback(kept)
        data = text.encode() + b"\0"
        self._library.espeak_Synth(data, ctypes.c_size_t(len(data)), 0, 1, 0, UTF8, None, None)
        self._library.espeak_Synchronize()
        spoken = np.concatenate(pieces).astype(np.float32) / 32768
        return Speech(resampled(spoken, self._rate), starts)


def resampled(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Samples at 16 kHz, by Fourier transform."""
    count = round(len(samples) * 16000 / rate)
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    return (np.fft.irfft(spectrum, count) * count / len(samples)).astype(np.float32)
