"""``generate``: greedy, sampled, or by beam search; the result is the same with and without a cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.checks import check_integer
from regard.deprecation import renamed_arguments
from regard.errors import ArgumentError, DtypeError
from regard.nn.beam_search import Choice, beam_search
from regard.nn.decoding import Decoding, begin
from regard.nn.models import LanguageModel, Seq2Seq
from regard.nn.sampling import TokenSampler


@dataclass(frozen=True, eq=False)
class Generated:
    """The generated tokens, without prompt and start token.

    >>> import torch
    >>> from regard import nn
    >>> model = nn.LanguageModel(20, width=8, heads=2, layers=1).eval()
    >>> nn.generate(model, torch.tensor([[5, 6]]), max_new_tokens=3).tokens.shape
    torch.Size([1, 3])
    """

    tokens: Tensor  # (batch, new), including the end token, then padding
    lengths: Tensor  # (batch,), including the end token
    log_probabilities: Tensor  # (batch, new), of each token; 0 after the end
    scores: Tensor  # (batch,), their sum; with beam search, divided by length ** length_penalty

    def lists(self, end: int | None = None) -> list[list[int]]:
        """The tokens of each text as a list, without the end token if ``end`` is given."""
        texts = [row[:length].tolist() for row, length in zip(self.tokens, self.lengths.tolist())]
        return [text[:-1] if end is not None and text[-1:] == [end] else text for text in texts]


@renamed_arguments(maximum="max_new_tokens", beams="num_beams", end="eos_token_id")
def generate(
    model: Seq2Seq | LanguageModel,
    prompt: Tensor,
    *,
    max_new_tokens: int = 64,
    start: int | None = None,
    eos_token_id: int | None = None,
    num_beams: int = 1,
    length_penalty: float = 1.0,
    choose: Choice | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    keep: Tensor | None = None,
    cache: bool = True,
) -> Generated:
    """Generate up to ``max_new_tokens`` tokens per prompt; by default the most probable one at each step.

    Args:
        model: a ``Seq2Seq`` or ``LanguageModel``. It runs without dropout, whatever its mode.
        prompt: tokens ``(batch, length)``: sources of a ``Seq2Seq``, beginnings of texts for a
            ``LanguageModel``. Shorter ones are padded with the model's padding token, on either side.
        max_new_tokens: the most tokens to generate, including the end token.
        start: the first token of the target of a ``Seq2Seq``.
        eos_token_id: the token that ends a text; without it every text gets ``max_new_tokens`` tokens.
        num_beams: above 1, beam search that keeps this many texts at every step.
        length_penalty: beams compete by ``log p / length ** length_penalty``.
        choose: chooses among the beams in place of that score: gets the number of a prompt and its
            candidates (``tokens``, ``log_probability``, ``ended``), best first, and returns the place of one.
        temperature: sample from ``softmax(logits / temperature)``.
        top_p: sample from the smallest set of tokens with at least this total probability.
        generator: the random generator; the same seed gives the same text.
        keep: bool ``(batch, length)``, False at padding, for a ``LanguageModel`` without a padding token.
        cache: remember keys and values. Without it the result is the same, but slower.

    The model's padding token is never generated.

    >>> from regard import nn
    >>> model = nn.Seq2Seq(50, 60, width=16, heads=2, encoder_layers=1, decoder_layers=1)
    >>> sources = torch.tensor([[4, 5, 6], [7, 8, 0]])  # the second is shorter; 0 is padding
    >>> nn.generate(model, sources, start=1, eos_token_id=2, max_new_tokens=5, num_beams=3).tokens.shape[0]
    2
    """
    if not isinstance(model, Seq2Seq | LanguageModel):
        raise DtypeError(
            "generate needs a regard.nn.Seq2Seq or a regard.nn.LanguageModel.",
            got="{type}",
            do="Build one of them.",
            type=type(model).__name__,
        )
    check_integer("max_new_tokens", max_new_tokens)
    check_integer("num_beams", num_beams)
    sampler = TokenSampler.of(temperature, top_p, generator)
    if num_beams > 1 and (sampler.temperature is not None or length_penalty < 0):
        raise ArgumentError(
            "Beam search does not sample, and its length_penalty must be 0 or more.",
            got="num_beams = {num_beams}, temperature = {temperature}, length_penalty = {length_penalty}",
            do="Use num_beams=1 to sample.",
            num_beams=num_beams,
            temperature=sampler.temperature,
            length_penalty=length_penalty,
        )
    if choose is not None and num_beams == 1:
        raise ArgumentError(
            "choose needs several beams to choose among (num_beams = {num_beams}).",
            got="a function",
            do="Pass num_beams=4, for example.",
            num_beams=num_beams,
        )
    padding = _padding(model, eos_token_id)
    with torch.inference_mode(), _evaluating(model):
        decoding = begin(model, prompt, start=start, keep=keep, new=max_new_tokens, cached=cache)
        if num_beams > 1:
            found = beam_search(
                model,
                decoding,
                beams=num_beams,
                maximum=max_new_tokens,
                end=eos_token_id,
                padding=padding,
                forbidden=model.padding,
                length_penalty=length_penalty,
                choose=choose,
            )
            return Generated(*found)
        return _one_by_one(decoding, sampler, max_new_tokens, eos_token_id, padding, model.padding)


def _one_by_one(
    decoding: Decoding,
    sampler: TokenSampler,
    maximum: int,
    end: int | None,
    padding: int,
    forbidden: int | None,
) -> Generated:
    tokens: list[Tensor] = []
    chances: list[Tensor] = []
    ended: Tensor | None = None
    for _ in range(maximum):
        logits = decoding.logits().float()
        if forbidden is not None:
            logits[:, forbidden] = -torch.inf
        token = sampler.sample(logits)
        chance = logits.log_softmax(-1).gather(1, token[:, None])[:, 0]
        if ended is None:
            ended = torch.zeros_like(token, dtype=torch.bool)
        tokens.append(token.masked_fill(ended, padding))
        chances.append(chance.masked_fill(ended, 0.0))
        if end is not None:
            ended = ended | (token == end)
            if bool(ended.all()):
                break
        decoding.append(tokens[-1])
    made, log_probabilities = torch.stack(tokens, 1), torch.stack(chances, 1)
    return Generated(made, _lengths(made, end), log_probabilities, log_probabilities.sum(1))


def _lengths(tokens: Tensor, end: int | None) -> Tensor:
    """The number of tokens of each text, up to its first end token."""
    if end is None:
        return torch.full_like(tokens[:, 0], tokens.shape[1])
    before = (tokens == end).cumsum(1) == 0
    return (before.sum(1) + 1).clamp(max=tokens.shape[1])


def _padding(model: Seq2Seq | LanguageModel, end: int | None) -> int:
    """The token that fills the rest of a row after the end of its text."""
    if model.padding is not None:
        return model.padding
    return 0 if end is None else end


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards every module returns to the mode it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
