"""What Whisper writes for one window of audio, at most 30 s, with the cross-attention that it used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regard import masks
from regard.errors import ArgumentError, RecordingError
from regard.kernels import attention_with_lse
from regard.masks.extent import Numbers
from regard.recording import Recording, ScoredCall, watch
from regard.recording.call import widened
from regard.recording.model_loading import quiet_transformers
from regard.speech.audio_input import Samples

OWN_OPTIONS = (
    "input_features", "attention_mask", "return_dict_in_generate", "output_scores", "output_attentions",
    "force_unique_generate_call", "return_token_timestamps", "return_segments", "num_return_sequences",
)  # fmt: skip
"""Options of ``generate()`` that are set here."""


@dataclass(frozen=True, eq=False)
class WatchedWindow:
    """The tokens that were written for a piece of audio, and the attention used to write each of them.

    Row ``i`` of every call is the query that wrote token ``i``. Columns are encoder frames; those after
    ``frames`` are the silence that fills the window.
    """

    calls: tuple[ScoredCall, ...]  # one sequence, cross-attention
    tokens: tuple[int, ...]  # up to and including the end
    probabilities: tuple[float, ...]
    frames: int
    frame_seconds: float
    ended: bool  # whether the last token is the end
    heard: Tensor  # what the encoder was given, (band, feature)

    @cached_property
    def over_audio(self) -> tuple[ScoredCall, ...]:
        """The calls with their weights over the frames of audio alone."""
        return tuple(over_frames(call, self.frames) for call in self.calls)

    def recording(self) -> Recording:
        """What was watched, with the frames of audio as the only keys."""
        return Recording("WhisperDecoder", self.over_audio)


@torch.no_grad()
def over_frames(call: ScoredCall, frames: int) -> ScoredCall:
    """The call with softmax over the first ``frames`` keys: ``exp(s_ij − lse_i(M))``, which sums to 1 there.

    The weights on the other keys need not be known: only the lse under the mask is computed again.

    >>> q, k = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 8, 4)
    >>> call = ScoredCall("attention", "cross", 0, q, k, torch.full((1, 1, 2), 8.0).log())
    >>> over_frames(call, 2).weights(0)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    q, k = widened(call.q), widened(call.k)
    _, lse = attention_with_lse(
        q, k, k, mask=masks.prefix(frames), bias=call.bias, scale=call.scale, softcap=call.softcap
    )
    return replace(call, k=call.k[:, :, :frames], lse=lse, v=None)


def generate_windows(
    model: Any,
    processor: Any,
    pieces: Sequence[Samples],
    layers: Sequence[int] | None,
    options: dict[str, Any],
) -> list[WatchedWindow]:
    """Let the model write what it hears in each piece, all in one batch, and record its cross-attention."""
    _check_options(options)
    extractor = processor.feature_extractor
    inputs = extractor(
        list(pieces), sampling_rate=extractor.sampling_rate, return_tensors="pt", return_attention_mask=True
    )
    features = inputs["input_features"].to(model.device, model.dtype)
    mask = inputs["attention_mask"].to(model.device)
    with quiet_transformers(), watch(model.get_decoder(), layers=layers) as seen:
        output = model.generate(
            features,
            attention_mask=mask,
            return_dict_in_generate=True,
            output_scores=True,
            force_unique_generate_call=True,
            **options,
        )
    calls = _last_cross_calls(seen)
    _check_calls(calls, len(pieces), output.sequences.shape[1])
    stride = features.shape[-1] // calls[0].keys
    seconds = features.shape[-1] * extractor.hop_length / extractor.sampling_rate / calls[0].keys
    end = _end_tokens(model)
    found = []
    for batch, samples in enumerate(pieces):
        written, probabilities = _written(output, batch)
        length = next((at + 1 for at, token in enumerate(written) if token in end), len(written))
        first = output.sequences.shape[1] - len(written) - 1  # the row that wrote the first token
        rows = slice(first, first + length)
        found.append(
            WatchedWindow(
                tuple(_rows(call.select(batch=batch), rows) for call in calls),
                tuple(written[:length]),
                tuple(probabilities[:length]),
                max(1, min(calls[0].keys, math.ceil(len(samples) / extractor.hop_length) // stride)),
                seconds,
                written[length - 1] in end,
                inputs["input_features"][batch],
            )
        )
    return found


def _check_options(options: dict[str, Any]) -> None:
    if wrong := sorted(set(options) & set(OWN_OPTIONS)):
        raise ArgumentError(
            "{name} is set by regard.speech and cannot be passed to generate().",
            got="{name} = {value!r}",
            do="Omit it.",
            name=wrong[0],
            value=options[wrong[0]],
        )
    if isinstance(options.get("temperature"), (list, tuple)):
        raise ArgumentError(
            "temperature must be one number: with several, some windows would be generated again.",
            got="temperature = {temperature}",
            do="Pass the first of them, or omit it.",
            temperature=options["temperature"],
        )


def _last_cross_calls(seen: Recording) -> tuple[ScoredCall, ...]:
    """The cross-attention of the last run; finding the language of the audio is a run before it."""
    cross = [call.scored() for call in seen.calls if call.kind == "cross"]
    last = max((call.run for call in cross), default=0)
    return tuple(replace(call, run=0) for call in cross if call.run == last)


def _check_calls(calls: Sequence[ScoredCall], pieces: int, length: int) -> None:
    if calls and all(call.batch == pieces and call.queries >= length - 1 for call in calls):
        return
    raise RecordingError(
        "Word times need one pass of generate() over every window (windows = {pieces}).",
        got="cross-attention of {shape}",
        do="Omit options that let it generate again or in parts.",
        pieces=pieces,
        shape=[call.shape for call in calls[:1]],
    )


def _rows(call: ScoredCall, rows: slice) -> ScoredCall:
    return replace(call, q=call.q[:, :, rows], lse=call.lse[:, :, rows])


def _end_tokens(model: Any) -> set[int]:
    end = model.generation_config.eos_token_id
    end = model.config.eos_token_id if end is None else end
    return {int(one) for one in (end if isinstance(end, (list, tuple)) else [end])}


def _written(output: Any, batch: int) -> tuple[list[int], list[float]]:
    """The tokens after the prompt, and the probability with which each was chosen.

    The scores are those that the token was chosen from: without suppressed tokens, as OpenAI counts them.
    """
    beams = output.get("beam_indices")
    count = len(output.scores) if beams is None else min(len(output.scores), beams.shape[1])
    tokens = output.sequences[batch, output.sequences.shape[1] - count :].tolist()
    chosen = [float(scores[batch].float().softmax(-1)[token]) for token, scores in zip(tokens, output.scores)]
    return tokens, chosen


def weights_of_head(window: WatchedWindow, layer: int, head: int, *, renormalize: bool) -> Numbers:
    """The weights of a head between tokens and frames of audio, ``(token, frame)``."""
    calls = window.over_audio if renormalize else window.calls
    call = next(one for one in calls if one.layer == layer)
    return call.weights(head, columns=slice(0, window.frames)).double().cpu().numpy()
