"""Audio as the model needs it: one channel of finite samples, at the rate it was trained with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.checks import check_integer
from regard.errors import ArgumentError, DataError, DtypeError, PackageError, ShapeError, reason

Samples = NDArray[np.float32]

RATE = 16_000
"""Samples per second that Whisper was trained with."""


LOUDEST = 10.0
"""Floats above this were never scaled to −1 … 1; a little more than 1 is common after filters."""


def load_audio(path: str | Path, *, rate: int = RATE) -> Samples:
    """The samples of a file (WAV, FLAC, OGG, MP3), ``(sample,)``: channels averaged, converted to ``rate``.

    Needs the package soundfile.

    >>> import soundfile
    >>> file = getfixture("tmp_path") / "tone.wav"
    >>> soundfile.write(file, np.zeros((441, 2)), 44_100)
    >>> load_audio(file).shape
    (160,)
    """
    check_integer("rate", rate, least=1, example=RATE)
    try:
        import soundfile
    except ImportError as error:
        raise PackageError(
            "Reading audio files needs the package soundfile.",
            do="Install it: pip install 'regard[speech]'.",
        ) from error
    if not Path(path).is_file():
        raise DataError("An audio file must exist.", got="{path}", do="Check the path.", path=path)
    try:
        samples, own = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError, TypeError) as error:
        raise DataError(
            "A file with an audio extension must hold audio that can be read.",
            got="{path}: {reason}",
            do="Convert it, for example: ffmpeg -i talk.m4a -ac 1 -ar 16000 talk.wav",
            path=path,
            reason=reason(error),
        ) from error
    return resampled(samples.mean(1), own, rate)


def resampled(samples: Samples, rate: int, wanted: int) -> Samples:
    """The same sound with ``wanted`` samples per second, by its Fourier series.

    >>> tone = np.sin(2 * np.pi * 440 * np.arange(22_050) / 22_050).astype(np.float32)
    >>> same = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    >>> bool(np.abs(resampled(tone, 22_050, 16_000) - same)[100:-100].max() < 1e-3)
    True
    """
    if rate == wanted or not len(samples):
        return samples.astype(np.float32)
    divisor = int(np.gcd(rate, wanted))
    old, new = rate // divisor, wanted // divisor
    # A whole number of periods of both rates, with silence between the end and the beginning.
    periods = -(-(len(samples) + rate // 10) // old)
    spectrum = np.fft.rfft(samples, periods * old)
    count = periods * new
    spectrum = spectrum[: count // 2 + 1]
    found = np.fft.irfft(spectrum, count) * (new / old)
    return found[: -(-len(samples) * new // old)].astype(np.float32)


def audio_list(audio: Any, rate: int | None, wanted: int) -> tuple[list[Samples], bool]:
    """Every recording of ``audio`` as samples, and whether there was only one, not in a list."""
    if rate is not None and rate != wanted:
        raise ArgumentError(
            "The audio must have the rate that the model was trained with (rate = {wanted}).",
            got="rate = {rate}",
            do="Convert it: regard.speech.load_audio(path) reads a file at this rate.",
            wanted=wanted,
            rate=rate,
        )
    if isinstance(audio, (list, tuple)) and not (audio and isinstance(audio[0], (int, float))):
        if not audio:
            _raise_empty()
        return [_samples(one, wanted) for one in audio], False
    return [_samples(audio, wanted)], True


def _samples(audio: Any, wanted: int) -> Samples:
    if isinstance(audio, (str, Path)):
        audio = load_audio(audio, rate=wanted)
    values = audio.detach().cpu() if isinstance(audio, torch.Tensor) else audio
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        found = np.asarray(None)
    if found.dtype.kind not in "if":
        numbers = found.dtype.kind in "bcu"
        raise DtypeError(
            "Audio must be samples, the path of a file, or a list of these.",
            got="numbers of dtype {given}" if numbers else "{given}",
            do="Pass an array of floats, or of integers with a sign, with one axis.",
            given=found.dtype if numbers else type(audio).__name__,
        )
    greatest = np.iinfo(found.dtype).max if found.dtype.kind == "i" else 1
    samples: Samples = (found / greatest).astype(np.float32)
    if samples.size == 0:
        _raise_empty()
    if samples.ndim != 1:
        raise ShapeError(
            "Audio must have one channel: one axis of samples.",
            got="shape {shape}",
            do="Average the channels of stereo, for example audio.mean(-1); pass several recordings as a "
            "list.",
            shape=samples.shape,
        )
    if not np.isfinite(samples).all():
        raise DtypeError(
            "The samples of audio must be finite numbers.", got="NaN or infinity", do="Check the audio."
        )
    if (peak := float(np.abs(samples).max())) > LOUDEST:
        raise ArgumentError(
            "Samples that are floats must be between −1 and 1.",
            got="values up to {peak:.0f}",
            do="Divide them by their full scale, for example audio / 32768, or pass integers.",
            peak=peak,
        )
    return samples


def _raise_empty() -> None:
    raise ShapeError(
        "Audio must have at least one sample.", got="empty audio", do="Check the file or the slice."
    )
