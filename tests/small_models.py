"""Models of transformers with random weights and a tokenizer of ten words."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

WORDS = ["[PAD]", "[UNK]", "[S]", "[E]", "the", "cat", "sat", "on", "mat", "dog"]
CLASSES = ["bad", "so so", "good"]
SIZES = {"vocab_size": len(WORDS)}


def tokenizer():
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", bos_token="[S]", eos_token="[E]"
    )


def save_small_models(root: Path) -> dict[str, Path]:
    """A folder for each family, as save_pretrained writes it."""
    torch.manual_seed(0)
    small = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 8}
    kinds = {
        "bert": BertModel(BertConfig(**SIZES, **small, max_position_embeddings=11)),
        "roberta": RobertaModel(RobertaConfig(**SIZES, **small, max_position_embeddings=11)),
        "gpt2": GPT2LMHeadModel(
            GPT2Config(**SIZES, n_embd=12, n_layer=2, n_head=3, n_positions=13, eos_token_id=3)
        ),
        "bart": BartForConditionalGeneration(
            BartConfig(
                **SIZES,
                d_model=12,
                encoder_layers=2,
                decoder_layers=3,
                encoder_attention_heads=3,
                decoder_attention_heads=3,
                encoder_ffn_dim=8,
                decoder_ffn_dim=8,
                max_position_embeddings=17,
                pad_token_id=0,
                bos_token_id=2,
                eos_token_id=3,
                decoder_start_token_id=3,
                forced_eos_token_id=None,
            )
        ),
        "classifier": BertForSequenceClassification(
            BertConfig(**SIZES, **small, max_position_embeddings=11, id2label=dict(enumerate(CLASSES)))
        ),
        "masked": BertForMaskedLM(BertConfig(**SIZES, **small, max_position_embeddings=11)),
    }
    found = {}
    for name, model in kinds.items():
        found[name] = root / name
        model.save_pretrained(found[name])
        words = tokenizer()
        if name == "masked":
            words.add_special_tokens({"mask_token": "[PAD]"})  # a token that the model has
        words.save_pretrained(found[name])
    return found
