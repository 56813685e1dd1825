"""A page for speech: the transcript with times, the spectrogram, and under it the attention to its frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import atomic
from regard.errors import ArgumentError
from regard.heads import alignment
from regard.languages import check_language
from regard.recording import Recording
from regard.speech import Transcript
from regard.speech.transcript import PlacedWindow
from regard.views.page.array_packing import ArrayStore
from regard.views.page.display_tokens import SideTokens, text_of
from regard.views.page.page_html import document
from regard.views.page.page_payload import TokenDisplay, payload_of
from regard.views.page.write_page import LARGEST, PageEstimate, PageStart, estimate_page, start_of


def speech_page(
    transcript: Transcript,
    path: str | Path | None = None,
    *,
    title: str = "",
    lang: str = "en",
    layer: int | None = None,
    head: int | None = None,
    force: bool = False,
) -> Path:
    """Write what was said, and when, as one HTML file that needs nothing else, and return where it is.

    The page has the sound, so that a word that is clicked can be heard.

    Args:
        transcript: the result of ``regard.speech.transcribe(…, every_layer=True)``.
        path: the file, replaced if it exists; by default ``speech.html`` in the current folder.
        title: shown at the top.
        lang: the language to begin with, "en" or "zh".
        layer: the layer to begin with.
        head: the head to begin with.
        force: write it even if it is larger than 200 MB.
    """
    check_language(lang)
    recording = recording_of_windows(transcript)
    size = estimate_speech_page(transcript)
    if size.nbytes > LARGEST and not force:
        raise ArgumentError(
            "A page can have at most {largest:.0f} MB; browsers become slow beyond that.",
            got="{size}",
            do="Choose a shorter part of the audio, or write it anyway with force=True.",
            largest=LARGEST / 1e6,
            size=size,
        )
    clear_layer, clear_head = _clearest(transcript)
    start = PageStart(
        "speech", None, clear_layer if layer is None else layer, clear_head if head is None else head
    )
    payload = payload_of(
        recording,
        recording.calls,
        title=title,
        language=lang,
        # Few frames have weight, so nothing is lost without a logarithm.
        start=start_of(recording.calls, start) | {"scale": "linear"},
        wording=TokenDisplay(sides=[_sides(transcript.windows[call.run]) for call in recording.calls]),
    )
    payload.header["speech"] = described_speech(transcript, payload.arrays)
    payload.header["arrays"] = payload.arrays.described
    target = Path("speech.html" if path is None else path)
    atomic.write_text(target, document(payload))
    return target


def _clearest(transcript: Transcript) -> tuple[int, int]:
    """Of the heads that times were read from, the one that aligns best in the first window."""
    table = alignment(transcript.windows[0].window.recording())
    places = ((int(str(row["layer"])), int(str(row["head"]))) for row in table)
    return next(place for place in places if place in transcript.heads)


def recording_of_windows(transcript: Transcript) -> Recording:
    """The cross-attention of all windows, each as a separate run, over the frames of audio."""
    calls = [
        replace(call, run=number)
        for number, placed in enumerate(transcript.windows)
        for call in placed.window.over_audio
    ]
    return Recording("Whisper", calls)


def estimate_speech_page(transcript: Transcript) -> PageEstimate:
    """About how large the page will be."""
    size = estimate_page(recording_of_windows(transcript))
    return replace(size, nbytes=size.nbytes + 5 * len(transcript.samples) // 2)


def _sides(placed: PlacedWindow) -> tuple[SideTokens, SideTokens]:
    """The tokens of a window, and its frames as seconds."""
    window = placed.window
    seconds = [f"{placed.start + at * window.frame_seconds:.2f}" for at in range(window.frames)]
    count = len(seconds)
    frames = SideTokens(tuple(seconds), (False,) * count, tuple(range(count)), (True,) * count)
    return text_of(placed.tokens, _words(placed)), frames


def _words(placed: PlacedWindow) -> list[int]:
    """The word of each token; −1 for special ones."""
    words = [-1] * len(placed.tokens)
    for number, places in enumerate(placed.words):
        for place in places:
            words[place] = number
    return words


def described_speech(transcript: Transcript, arrays: ArrayStore) -> dict[str, Any]:
    """What the header of a page says about speech."""
    said = iter(transcript.words)
    words = [
        [*next(said), number, places[0], places[-1]]
        for number, placed in enumerate(transcript.windows)
        for places in placed.words
    ]
    samples = np.clip(np.round(transcript.samples * 32767), -32768, 32767).astype(np.int16)
    return {
        "rate": transcript.rate,
        "samples": arrays.put(samples),
        "heads": [list(head) for head in transcript.heads],
        "found": transcript.found,
        "words": words,
        "windows": [_described_window(placed, arrays) for placed in transcript.windows],
    }


def _described_window(placed: PlacedWindow, arrays: ArrayStore) -> dict[str, Any]:
    heard = _shades(placed)
    return {
        "start": placed.start,
        "step": placed.window.frame_seconds,
        "frames": placed.window.frames,
        "bands": len(heard),
        "heard": arrays.put(heard.ravel()),
        "begins": list(placed.frames),
    }


def _shades(placed: PlacedWindow) -> NDArray[np.uint8]:
    """What the model heard in each frame, ``(band, frame)``: 0 for the quietest, 255 for the loudest."""
    window = placed.window
    features = window.heard.float().numpy()
    stride = features.shape[1] // window.calls[0].keys
    parts = features[:, : stride * window.frames].reshape(len(features), window.frames, stride).mean(2)
    least, most = float(parts.min()), float(parts.max())
    shades = np.round(255 * (parts - least) / max(most - least, 1e-6))
    return np.asarray(shades, np.uint8)
