"""A Whisper model with its processor: loading it, and checking that word times can be read from it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from pathlib import Path
from typing import Any

from regard.errors import ArgumentError
from regard.recording.model_loading import loading_model

Heads = tuple[tuple[int, int], ...]
"""Pairs of a layer and a head."""

FIND = "find"
"""Passed instead of heads: find them, even if the model names some."""


def load_speech_model(name: str | Path) -> tuple[Any, Any]:
    """Load the model and the processor of a folder or a hub name, as :func:`words` needs them."""
    with loading_model(
        name,
        must="A speech model must be a folder with a Whisper model and its processor, or a hub name.",
        do="Save both there: model.save_pretrained(folder) and processor.save_pretrained(folder).",
    ) as (transformers, source):
        model = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(source)
        processor = transformers.AutoProcessor.from_pretrained(source)
    check_model(model)
    return model.eval(), processor


def check_model(model: Any) -> None:
    """Raise unless the model writes text with cross-attention to audio, as Whisper does."""
    config = getattr(model, "config", None)
    if not getattr(config, "is_encoder_decoder", False):
        raise ArgumentError(
            "Word times are read from cross-attention, so the model must be an encoder-decoder.",
            got="{given}, which has no cross-attention",
            do="Use a Whisper model.",
            given=type(model).__name__,
        )
    if getattr(config, "model_type", None) != "whisper" or not hasattr(model, "generate"):
        raise ArgumentError(
            "Word times need a Whisper model that generates text.",
            got="{given}",
            do="Load it as WhisperForConditionalGeneration.",
            given=type(model).__name__,
        )


def check_processor(processor: Any) -> None:
    """Raise unless the processor has the parts that audio and tokens need."""
    if not all(hasattr(processor, part) for part in ("feature_extractor", "tokenizer")):
        raise ArgumentError(
            "processor must have a feature extractor and a tokenizer.",
            got="{given}",
            do="Load it: WhisperProcessor.from_pretrained(folder).",
            given=type(processor).__name__,
        )


def named_heads(model: Any, heads: Sequence[tuple[int, int]] | str | None) -> Heads | None:
    """The heads to read times from: those passed, else those that the model names; None to find them.

    OpenAI publishes heads for each of its models; they are in ``generation_config.alignment_heads``.
    """
    if heads == FIND:
        return None
    given: Any = getattr(model.generation_config, "alignment_heads", None) if heads is None else heads
    if given is None:
        return None
    try:
        found = tuple((index(layer), index(head)) for layer, head in given)
    except (TypeError, ValueError):
        found = ()
    layers, count = model.config.decoder_layers, model.config.decoder_attention_heads
    if not found or any(not (0 <= layer < layers and 0 <= head < count) for layer, head in found):
        raise ArgumentError(
            "heads must be pairs of a layer (0 … {last_layer}) and a head (0 … {last_head}) of the decoder.",
            got="{given}",
            do='Choose among these, or pass heads="find".',
            last_layer=layers - 1,
            last_head=count - 1,
            given=given,
        )
    return found
