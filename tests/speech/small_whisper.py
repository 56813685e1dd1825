"""A Whisper with random weights that hears one second at a time, and its processor."""

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperProcessor,
    WhisperTokenizer,
)

WORDS = ["Ġthe", "Ġcat", "Ġsat", ".", "Ġmat", "s", ",", "Ġon", "Ġa", "Ġdog", "Ġran", "!"]
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
END, START, NO_TIMES = len(WORDS), len(WORDS) + 1, len(WORDS) + 4
FIRST_TIME = NO_TIMES + 1
FRAMES = 50
"""Encoder frames of a window of one second."""

TIMES = [f"<|{step / 50:.2f}|>" for step in range(FRAMES + 1)]
RATE = 16_000


def processor():
    vocabulary = {token: number for number, token in enumerate([*WORDS, *SPECIAL, *TIMES])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<|endoftext|>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    tokenizer = WhisperTokenizer(
        tokenizer_object=made,
        **dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "<|endoftext|>"),
    )
    return WhisperProcessor(WhisperFeatureExtractor(feature_size=20, chunk_length=1), tokenizer)


def model(*, seed=0, layers=3, heads=2, times=False, **generation):
    """Without ``times`` it writes words alone."""
    torch.manual_seed(seed)
    count = len(WORDS) + len(SPECIAL) + len(TIMES)
    made = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=count, d_model=16, encoder_layers=2, decoder_layers=layers, encoder_attention_heads=2,
            decoder_attention_heads=heads, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=20,
            max_source_positions=FRAMES, max_target_positions=24, bos_token_id=END, eos_token_id=END,
            pad_token_id=END, decoder_start_token_id=START, init_std=0.4,
        )
    )  # fmt: skip
    options = {
        "alignment_heads": [[1, 0], [2, 1]], "no_timestamps_token_id": NO_TIMES, "is_multilingual": False,
        "decoder_start_token_id": START, "bos_token_id": END, "eos_token_id": END, "pad_token_id": END,
        "max_length": 12, "max_initial_timestamp_index": 20, "return_timestamps": False,
        "suppress_tokens": [START, START + 1, START + 2, *range(NO_TIMES, FIRST_TIME if times else count)],
        **generation,
    }  # fmt: skip
    made.generation_config = GenerationConfig(**{k: v for k, v in options.items() if v is not None})
    return made.eval()


def noise(seconds, seed=0):
    """Sound of a length; every tenth of a second is different, so that encoder frames are."""
    chance = np.random.default_rng(seed)
    parts = [chance.normal(0, chance.uniform(0.01, 0.5), RATE // 10) for _ in range(1 + round(10 * seconds))]
    return np.concatenate(parts)[: round(RATE * seconds)].astype(np.float32)
