"""One tiny model with random weights of every family, and what to feed it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers as hf
from torch import Tensor, nn

VOCABULARY = 61
PAD = 0
LENGTH = 11  # no multiple of anything
TARGET = 7

SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
    "pad_token_id": PAD,
    "bos_token_id": 1,
    "eos_token_id": None,
}
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 6}
TWO_SIDED = {
    "vocab_size": VOCABULARY,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "pad_token_id": PAD,
    "bos_token_id": 1,
    "eos_token_id": None,
    "forced_eos_token_id": None,
    "decoder_start_token_id": 2,
}


@dataclass(frozen=True)
class Family:
    """How to build a model, and what it is."""

    build: Callable[[], nn.Module]
    shape: str  # "encoder", "decoder", "two-sided", "image" or "speech"
    kinds: tuple[str, ...] = field(default=("encoder",))
    heads: int = 4


def _made(model: type, config: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        torch.manual_seed(7)
        made = model(config())
        if getattr(made.config, "attn_logit_softcapping", None) is not None:
            made.set_attn_implementation("eager")  # the only one that applies it in every version
        with torch.no_grad():
            for parameter in made.parameters():
                # Larger than usual, so that the weights are far from equal.
                parameter.copy_(torch.randn_like(parameter) * 0.3)
        return made.eval()

    return build


def _whisper() -> Any:
    return hf.WhisperConfig(
        **{**TWO_SIDED, "num_mel_bins": 8, "max_source_positions": 13, "max_target_positions": 32}
    )


FAMILIES = {
    "bert": Family(_made(hf.BertModel, lambda: hf.BertConfig(**SMALL)), "encoder"),
    "roberta": Family(_made(hf.RobertaModel, lambda: hf.RobertaConfig(**SMALL)), "encoder"),
    "distilbert": Family(
        _made(
            hf.DistilBertModel,
            lambda: hf.DistilBertConfig(
                vocab_size=VOCABULARY, dim=24, n_layers=2, n_heads=4, hidden_dim=37,
                max_position_embeddings=64,
            ),
        ),
        "encoder",
    ),
    "albert": Family(
        _made(
            hf.AlbertModel, lambda: hf.AlbertConfig(**{**SMALL, "num_hidden_layers": 3}, embedding_size=12)
        ),
        "encoder",
    ),
    "modernbert": Family(
        _made(
            hf.ModernBertModel,
            lambda: hf.ModernBertConfig(
                **{**SMALL, "num_hidden_layers": 3, "local_attention": 4, "global_attn_every_n_layers": 3},
                cls_token_id=1,
                sep_token_id=2,
            ),
        ),
        "encoder",
    ),
    "gpt2": Family(
        _made(
            hf.GPT2LMHeadModel,
            lambda: hf.GPT2Config(
                vocab_size=VOCABULARY, n_embd=24, n_layer=2, n_head=4, n_positions=64,
                pad_token_id=PAD, bos_token_id=1, eos_token_id=None,
            ),
        ),
        "decoder",
    ),
    "gpt_neox": Family(_made(hf.GPTNeoXForCausalLM, lambda: hf.GPTNeoXConfig(**SMALL)), "decoder"),
    "llama": Family(_made(hf.LlamaForCausalLM, lambda: hf.LlamaConfig(**GROUPED)), "decoder"),
    "mistral": Family(
        _made(hf.MistralForCausalLM, lambda: hf.MistralConfig(**{**GROUPED, "sliding_window": 4})), "decoder"
    ),
    "qwen3": Family(_made(hf.Qwen3ForCausalLM, lambda: hf.Qwen3Config(**GROUPED)), "decoder"),
    "gemma2": Family(
        _made(
            hf.Gemma2ForCausalLM,
            lambda: hf.Gemma2Config(
                **{**GROUPED, "sliding_window": 4, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 6}
            ),
        ),
        "decoder",
    ),
    "gpt_oss": Family(
        _made(
            hf.GptOssForCausalLM,
            lambda: hf.GptOssConfig(
                **{**GROUPED, "hidden_size": 32, "intermediate_size": 32, "head_dim": 8},
                sliding_window=4, num_local_experts=2, num_experts_per_tok=1,
            ),
        ),
        "decoder",
    ),
    "t5": Family(
        _made(
            hf.T5ForConditionalGeneration,
            lambda: hf.T5Config(
                vocab_size=VOCABULARY, d_model=24, d_kv=6, d_ff=37, num_layers=2, num_heads=4,
                relative_attention_num_buckets=8, relative_attention_max_distance=10,
                pad_token_id=PAD, eos_token_id=None, decoder_start_token_id=2,
            ),
        ),
        "two-sided",
    ),
    "bart": Family(_made(hf.BartForConditionalGeneration, lambda: hf.BartConfig(**TWO_SIDED)), "two-sided"),
    "marian": Family(_made(hf.MarianMTModel, lambda: hf.MarianConfig(**TWO_SIDED)), "two-sided"),
    "whisper": Family(_made(hf.WhisperForConditionalGeneration, _whisper), "speech"),
    "vit": Family(
        _made(
            hf.ViTModel,
            lambda: hf.ViTConfig(
                hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37,
                image_size=12, patch_size=4,
            ),
        ),
        "image",
    ),
}  # fmt: skip


def padded(batch: int, length: int, side: str) -> tuple[Tensor, Tensor]:
    """Token ids and their 2-D mask; the second sequence is shorter by 3."""
    ids = torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(3))
    keep = torch.ones(batch, length, dtype=torch.long)
    if side == "left":
        keep[1, :3] = 0
    elif side == "right":
        keep[1, -3:] = 0
    return torch.where(keep > 0, ids, PAD), keep


def inputs_of(family: Family, side: str) -> dict[str, Tensor]:
    """A batch of two for a forward pass."""
    if family.shape == "image":
        return {"pixel_values": torch.randn(2, 3, 12, 12)}
    if family.shape == "speech":
        decoder_ids, decoder_keep = padded(2, TARGET, side)
        return {
            "input_features": torch.randn(2, 8, 26),
            "decoder_input_ids": decoder_ids,
            "decoder_attention_mask": decoder_keep,
        }
    ids, keep = padded(2, LENGTH, side)
    found = {"input_ids": ids, "attention_mask": keep}
    if family.shape == "two-sided":
        decoder_ids, decoder_keep = padded(2, TARGET, side)
        found |= {"decoder_input_ids": decoder_ids, "decoder_attention_mask": decoder_keep}
    return found


def all_weights(call: Any) -> Tensor:
    """The whole matrix of a call, put together from its rows."""
    return torch.stack(
        [torch.stack([call.weights(head, batch=b) for head in call.head_numbers]) for b in range(call.batch)]
    )


def region_of(mask: Any, call: Any) -> Tensor:
    """A mask as a dense table of a call: in cross-attention, rows and columns both count from 0."""
    if call.kind != "cross" or mask.table_lengths() or mask.lead:
        return mask.dense(*call.extent)
    length = max(call.extent)
    return mask.dense(length, length)[..., : call.queries, : call.keys]
