"""``words()`` and ``transcribe()``: from audio of any length to words with times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.errors import ArgumentError
from regard.heads.token_alignment import check_median
from regard.speech.agreeing_heads import agreeing_heads
from regard.speech.audio_input import Samples, audio_list
from regard.speech.speech_model import Heads, check_model, check_processor, named_heads
from regard.speech.token_times import token_frames
from regard.speech.transcript import PlacedWindow, SpokenWord, Transcript
from regard.speech.watched_window import WatchedWindow, generate_windows
from regard.speech.word_grouping import group_words


def words(
    model: Any,
    processor: Any,
    audio: Any,
    *,
    heads: Sequence[tuple[int, int]] | str | None = None,
    rate: int | None = None,
    median: int | None = None,
    renormalize: bool = True,
    **options: Any,
) -> list[SpokenWord] | list[list[SpokenWord]]:
    """The words of a recording with their times, ``[(word, start, end, probability), …]``.

    A Whisper model from transformers writes what it hears, watched, with its usual attention: SDPA stays
    SDPA, and no matrix is built for heads that are not read.

    Args:
        model: a ``WhisperForConditionalGeneration``.
        processor: its ``WhisperProcessor``.
        audio: samples ``(sample,)``, the path of a file, or a list of these, which is read as a batch and
            gives a list for each. It may be longer than 30 s.
        heads: ``(layer, head)`` pairs of the decoder; by default those in the model's generation
            configuration, or, if it names none, those that agree with each other. ``"find"`` looks for
            them in any case.
        rate: the samples per second of ``audio``, to be checked; by default those that the model needs.
        median: the width of the median filter in frames; by default that of the model's configuration, 7.
        renormalize: let the weights of each token sum to 1 over the frames of audio. False leaves them as
            they are over the whole window of 30 s, as ``return_token_timestamps`` of transformers does.
        **options: options of the model's ``generate()``, such as ``language="fr"`` or ``num_beams=5``.

    A word begins at the first frame of its first token and ends where the token after its last begins;
    punctuation, which is often a pause, does not count.
    """
    found = transcribe(
        model, processor, audio, heads=heads, rate=rate, median=median, renormalize=renormalize, **options
    )
    if isinstance(found, Transcript):
        return list(found.words)
    return [list(one.words) for one in found]


def transcribe(
    model: Any,
    processor: Any,
    audio: Any,
    *,
    heads: Sequence[tuple[int, int]] | str | None = None,
    rate: int | None = None,
    median: int | None = None,
    renormalize: bool = True,
    every_layer: bool = False,
    **options: Any,
) -> Transcript | list[Transcript]:
    """Like :func:`words`, with the heads, the tokens and the recorded attention of each window.

    ``every_layer`` records the cross-attention of all layers, for a page; by default only that of the
    layers whose heads are read.
    """
    check_model(model)
    check_processor(processor)
    extractor = processor.feature_extractor
    recordings, single = audio_list(audio, rate, extractor.sampling_rate)
    run = Transcriber(
        model,
        processor,
        named_heads(model, heads),
        _median(median, model),
        renormalize,
        every_layer,
        options,
        [AudioReading(samples) for samples in recordings],
    )
    while waiting := [one for one in run.progress if not one.done]:
        run.next_windows(waiting)
    found = [run.transcript(one) for one in run.progress]
    return found[0] if single else found


@dataclass
class AudioReading:
    """One recording while it is read: the sample that the next window begins at, and the windows so far."""

    samples: Samples
    at: int = 0
    windows: list[tuple[float, WatchedWindow, int]] = field(
        default_factory=list
    )  # start, window, tokens kept

    @property
    def done(self) -> bool:
        """Whether the recording was read to its end."""
        return self.at >= len(self.samples)


@dataclass
class Transcriber:
    """Reads recordings window by window; all that are not finished share a batch."""

    model: Any
    processor: Any
    heads: Heads | None  # None until they are found
    median: int
    renormalize: bool
    every_layer: bool
    options: dict[str, Any]
    progress: list[AudioReading]
    found: bool = False

    def __post_init__(self) -> None:
        extractor = self.processor.feature_extractor
        self.rate, self.length = extractor.sampling_rate, extractor.n_samples
        self.with_times = any(len(one.samples) > self.length for one in self.progress)
        if self.with_times:
            self._check_times()

    @property
    def first_time(self) -> int | None:
        """The token of the time 0.00; later ones follow. None if the model has none."""
        before = getattr(self.model.generation_config, "no_timestamps_token_id", None)
        return None if before is None else before + 1

    def next_windows(self, waiting: Sequence[AudioReading]) -> None:
        """Read the next window of every recording."""
        options = {**({"return_timestamps": True} if self.with_times else {}), **self.options}
        layers = None
        if self.heads is not None and not self.every_layer:
            layers = sorted({layer for layer, _ in self.heads})
        pieces = [one.samples[one.at : one.at + self.length] for one in waiting]
        windows = generate_windows(self.model, self.processor, pieces, layers, options)
        if self.heads is None:
            self.heads, self.found = agreeing_heads(windows, self.median), True
        for one, piece, window in zip(waiting, pieces, windows):
            kept, samples = self._read(window, len(piece), one.at + len(piece) >= len(one.samples))
            one.windows.append((one.at / self.rate, window, kept))
            one.at += samples

    def _read(self, window: WatchedWindow, samples: int, last: bool) -> tuple[int, int]:
        """How many tokens of a window count, and how many samples they cover.

        A pair of times ends one sentence and begins the next. What follows the last pair may be cut by the
        end of the window, so the next window begins there. Whisper's own reading of long audio does the same.
        """
        first = self.first_time
        if first is None or (last and window.ended):
            return len(window.tokens), samples
        times = [token >= first for token in window.tokens]
        pairs = [at for at in range(1, len(times)) if times[at - 1] and times[at]]
        body = times[:-1] if window.ended else times
        if not pairs or body[-2:] == [False, True]:
            return len(window.tokens), samples
        covered = round((window.tokens[pairs[-1] - 1] - first) * window.frame_seconds * self.rate)
        return (pairs[-1], min(covered, samples)) if covered > 0 else (len(window.tokens), samples)

    def transcript(self, one: AudioReading) -> Transcript:
        """The words of a recording that was read to its end."""
        assert self.heads is not None
        said: list[SpokenWord] = []
        placed = []
        tokenizer, special = self.processor.tokenizer, min(self._special())
        for start, window, kept in one.windows:
            frames = token_frames(window, self.heads, median=self.median, renormalize=self.renormalize)
            groups = group_words(tokenizer, window.tokens[:kept], special)
            for text, _, spoken in groups:
                begin, end = (
                    round(start + float(frames[at]) * window.frame_seconds, 3)
                    for at in (spoken[0], spoken[-1] + 1)
                )
                probability = float(np.mean([window.probabilities[at] for at in spoken]))
                said.append(SpokenWord(text, begin, end, probability))
            placed.append(
                PlacedWindow(
                    start,
                    window,
                    tuple(tokenizer.convert_ids_to_tokens(window.tokens)),
                    tuple(frames.tolist()),
                    tuple(places for _, places, _ in groups),
                )
            )
        return Transcript(tuple(said), self.heads, self.found, one.samples, self.rate, tuple(placed))

    def _special(self) -> list[int]:
        """The first of the tokens that are not text: ends, languages, tasks, times."""
        config = self.model.generation_config
        end = config.eos_token_id
        ends = end if isinstance(end, list) else [end]
        known = [*ends, self.processor.tokenizer.eos_token_id, config.decoder_start_token_id]
        return [int(one) for one in known if one is not None]

    def _check_times(self) -> None:
        if self.first_time is None:
            raise ArgumentError(
                "Audio longer than one window ({seconds:g} s) needs a model that writes times.",
                got="a generation configuration without no_timestamps_token_id",
                do="Set it, or pass shorter pieces.",
                seconds=self.length / self.rate,
            )


def _median(median: int | None, model: Any) -> int:
    return check_median(getattr(model.config, "median_filter_width", 7) if median is None else median)
