import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from regard.recording.reader import load_reader

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PLAIN = "the a cat dog bird sat ran saw on under mat tree and then it was . , ! </script>"
WORDS = [*SPECIAL, *PLAIN.split()]


def tokenizer(template):
    known = {word: index for index, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if template:
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Small models with random weights: an encoder, a decoder with grouped heads, an encoder-decoder."""
    torch.manual_seed(0)
    size = {"vocab_size": len(WORDS), "hidden_size": 24, "intermediate_size": 16, "num_hidden_layers": 2}
    kinds = {
        "bert": BertModel(
            BertConfig(**size, num_attention_heads=3, max_position_embeddings=19, initializer_range=0.5)
        ),
        "llama": LlamaForCausalLM(
            LlamaConfig(
                **size,
                num_attention_heads=6,
                num_key_value_heads=2,
                max_position_embeddings=23,
                initializer_range=0.5,
            )
        ),
        "bart": BartForConditionalGeneration(
            BartConfig(
                vocab_size=len(WORDS),
                d_model=24,
                encoder_layers=1,
                decoder_layers=1,
                encoder_attention_heads=3,
                decoder_attention_heads=3,
                encoder_ffn_dim=8,
                decoder_ffn_dim=8,
                max_position_embeddings=17,
                pad_token_id=0,
                bos_token_id=2,
                eos_token_id=3,
                forced_eos_token_id=None,
            )
        ),
    }
    found = {}
    for name, model in kinds.items():
        found[name] = tmp_path_factory.mktemp("models") / name
        model.save_pretrained(found[name])
        tokenizer(name != "llama").save_pretrained(found[name])
    return found


@pytest.fixture(scope="session")
def readers(folders):
    return {name: load_reader(folder) for name, folder in folders.items()}


def sentences(count, *, seed=0, longest=15):
    """Texts of random words, 3 to ``longest`` of them."""
    chance = torch.Generator().manual_seed(seed)
    plain = WORDS[len(SPECIAL) :]
    lengths = torch.randint(3, longest + 1, (count,), generator=chance).tolist()
    return [
        " ".join(plain[i] for i in torch.randint(len(plain), (n,), generator=chance).tolist())
        for n in lengths
    ]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(sentences(37)) + "\n", encoding="utf-8")
    return path
