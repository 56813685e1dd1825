"""Induction heads, found on random tokens that repeat.

Random tokens have no meaning: the only way to predict the next one is that the same tokens came
before. A head that then attends to what followed the earlier occurrence of its token does
induction (Elhage et al. 2021, Olsson et al. 2022).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from regard.checks import check_integer, is_integer
from regard.errors import ArgumentError, DtypeError
from regard.heads.head_roles import roles
from regard.heads.role_results import Roles
from regard.recording import watch

ON_REPEATS = ("previous", "first", "induction", "duplicate")
"""The roles that are measured on repeated tokens: induction, and those it is confused with."""


def repeated_tokens(
    vocabulary: int,
    *,
    length: int = 32,
    repeats: int = 2,
    batch: int = 4,
    start: int | None = None,
    avoid: Iterable[int] = (),
    seed: int = 0,
) -> Tensor:
    """Different random token ids, repeated ``repeats`` times: ``(batch, length · repeats)``.

    ``start`` comes before each sequence and is not repeated; ``avoid`` names ids that are not used.

    >>> repeated_tokens(9, length=3, batch=2, start=1, avoid=[0, 2])
    tensor([[1, 5, 8, 6, 5, 8, 6],
            [1, 6, 3, 8, 6, 3, 8]])
    """
    for name, number, least in (("length", length, 1), ("repeats", repeats, 2), ("batch", batch, 1)):
        check_integer(name, number, least=least)
    left_out = {*avoid, *(() if start is None else (start,))}
    usable = torch.tensor([token for token in range(vocabulary) if token not in left_out])
    if len(usable) < length:
        raise ArgumentError(
            "A sequence needs distinct tokens (usable tokens = {tokens}).",
            got="length = {length}",
            do="Choose a shorter length.",
            tokens=len(usable),
            length=length,
        )
    chance = torch.Generator().manual_seed(seed)
    once = torch.stack([usable[torch.randperm(len(usable), generator=chance)[:length]] for _ in range(batch)])
    before = once.new_full((batch, 0 if start is None else 1), 0 if start is None else start)
    return torch.cat([before, once.repeat(1, repeats)], 1)


@torch.no_grad()
def induction(
    model: nn.Module,
    *,
    length: int | None = None,
    repeats: int = 2,
    batch: int = 4,
    vocabulary: int | None = None,
    start: int | None = None,
    avoid: Iterable[int] | None = None,
    seed: int = 0,
) -> Roles:
    """Run a decoder on repeated random tokens and score its heads for induction.

    ``vocabulary``, ``start`` (a model's begin-of-text token) and ``avoid`` (its other special tokens)
    are read from the model by default. The model is called with the ids alone. ``length`` is 32, or as
    many tokens as the positions of the model allow ``repeats`` times.

    >>> from regard import nn
    >>> model = nn.LanguageModel(50, width=16, heads=2, layers=2)
    >>> found = induction(model, length=8)
    >>> len(found), sorted(found[0].scores)
    (4, ['duplicate', 'first', 'induction', 'previous'])
    """
    if not isinstance(model, nn.Module):
        raise DtypeError(
            "induction(model) needs a PyTorch module.",
            got="{type}",
            do="Pass the model itself.",
            type=type(model).__name__,
        )
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        raise ArgumentError(
            "Induction can only be measured in models that read one text.",
            got="the encoder-decoder {type}",
            do="Record it yourself, and call roles(recording, tokens, names='induction').",
            type=type(model).__name__,
        )
    special = _special_tokens(config)
    begin = special.get("bos_token_id") if start is None else start
    length = _fitting(model, length, repeats, begin is not None)
    ids = repeated_tokens(
        _vocabulary(model) if vocabulary is None else vocabulary,
        length=length,
        repeats=repeats,
        batch=batch,
        start=begin,
        avoid=special.values() if avoid is None else avoid,
        seed=seed,
    )
    device = next((parameter.device for parameter in model.parameters()), None)
    was_training = model.training
    model.eval()
    try:
        with watch(model) as seen:
            model(ids.to(device))
    finally:
        model.train(was_training)
    return roles(seen, [[str(token) for token in row] for row in ids.tolist()], names=ON_REPEATS)


LENGTH = 32
"""The number of repeated tokens, where the model has positions for them."""


def _fitting(model: nn.Module, length: int | None, repeats: int, begun: bool) -> int:
    """How many tokens are repeated; raises where the model has too few positions for them."""
    limit = positions(model)
    if limit is None or not isinstance(repeats, int) or repeats < 1:
        return LENGTH if length is None else length
    most = (limit - int(begun)) // repeats
    if most < 2 or (isinstance(length, int) and length > most):
        raise ArgumentError(
            "The repeated tokens must fit into the model's positions (positions = {limit}).",
            got="length = {length}, {repeats} times, and a first token"
            if begun
            else "length = {length}, {repeats} times",
            do="Choose a length of at most {most}." if most >= 2 else "Choose a model with more positions.",
            limit=limit,
            length=LENGTH if length is None else length,
            repeats=repeats,
            most=most,
        )
    return min(LENGTH, most) if length is None else length


def positions(model: nn.Module) -> int | None:
    """How many positions the model has; None if its configuration does not say."""
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    known = [getattr(text, name, None) for name in ("max_position_embeddings", "n_positions")]
    known += [getattr(model, "length", None)]
    found = [limit for limit in known if is_integer(limit, 1)]
    # Models of the RoBERTa family count positions from after the padding token.
    offset = (
        2 if getattr(text, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "longformer") else 0
    )
    return min(found) - offset if found else None


def _special_tokens(config: Any) -> dict[str, int]:
    """The ids that the configuration of a model names, such as ``eos_token_id``."""
    found: dict[str, int] = {}
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id"):
        ids = getattr(config, name, None)
        for number, one in enumerate(ids if isinstance(ids, list) else [ids]):
            if isinstance(one, int):
                found[name if not number else f"{name}.{number}"] = one
    return found


def _vocabulary(model: nn.Module) -> int:
    """How many tokens the model knows: the size of its first embedding."""
    embedding = next((part for part in model.modules() if isinstance(part, nn.Embedding)), None)
    if embedding is None:
        raise ArgumentError(
            "The model needs an embedding that gives the size of its vocabulary.",
            got="no embedding in {type}",
            do="Pass vocabulary=.",
            type=type(model).__name__,
        )
    return embedding.num_embeddings
