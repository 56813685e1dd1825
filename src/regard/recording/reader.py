"""Read a text with a transformers model, loaded by name with its tokenizer, and record it with its tokens.

A decoder reads the text and can continue it. An encoder-decoder reads the text on the encoder's side; the
decoder's side is a second text, or what the model generates. An encoder reads one text or two.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.checks import check_integer
from regard.errors import ArgumentError, ModelFileError, TextError
from regard.recording.model_loading import loading_model
from regard.recording.next_tokens import LastStates, last_states, next_tokens_from_states, next_tokens_of
from regard.recording.picture import PICTURE_ENCODERS
from regard.recording.recording import Recording
from regard.recording.tokenizer_check import check_known, check_tokenizer
from regard.recording.watcher import watch

ANSWER = 40
"""How many tokens an encoder-decoder generates by default."""


@dataclass(frozen=True, eq=False)
class Reader:
    """A transformers model with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str

    @property
    def two_sided(self) -> bool:
        """Whether this is an encoder-decoder."""
        return bool(getattr(self.model.config, "is_encoder_decoder", False))

    @property
    def writes(self) -> bool:
        """Whether it can generate."""
        return bool(self.model.can_generate())

    @property
    def longest(self) -> float:
        """How many tokens the model has positions for; infinity without a limit."""
        config = self.model.config.get_text_config()
        known = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
        # Models of the RoBERTa family count positions from after the padding token.
        offset = 2 if getattr(config, "model_type", "") in _COUNTED_FROM_TWO else 0
        limits = [limit - offset for limit in known if isinstance(limit, int) and limit > 0]
        # A tokenizer without a limit says 10^30.
        limit = getattr(self.tokenizer, "model_max_length", None)
        return min([*limits, limit if isinstance(limit, int) and limit < 10**9 else math.inf])

    @torch.no_grad()
    def read(
        self,
        text: str,
        *,
        pair: str | None = None,
        generate: int = 0,
        next_tokens: bool = False,
        **watching: Any,
    ) -> Recording:
        """Record the model while it reads ``text``; ``watching`` are options of :func:`regard.watch`.

        Args:
            text: the text to read.
            pair: a second text: the second sentence of an encoder, the decoder's side of an
                encoder-decoder.
            generate: the number of tokens to generate.
            next_tokens: keep the likeliest next tokens of each position, if the model says what comes next:
                ``seen.next_tokens``.
        """
        check_integer("generate", generate, least=0, example=40)
        next_tokens = next_tokens and self.writes
        if self.two_sided:
            return self._read_two_sides(text, pair, generate, next_tokens, watching)
        return self._read_one_side(text, pair, generate, next_tokens, watching)

    def _read_one_side(
        self, text: str, pair: str | None, generate: int, next_tokens: bool, watching: dict[str, Any]
    ) -> Recording:
        if generate:
            self._check_writes()
        inputs = self._inputs(text, pair, generate)
        following = last_states(self.model) if next_tokens else nullcontext(LastStates())
        with following as kept, watch(self.model, **watching) as seen:
            if generate:
                ids = self.model.generate(**inputs, max_new_tokens=generate, do_sample=False)
            else:
                self.model(**inputs, **self._no_more_logits())
                ids = inputs["input_ids"]
        # The last generated token was never read, so it has no row.
        seen.tokens = self._tokens(ids)[: seen[0].keys]
        if next_tokens:
            written = inputs["input_ids"].shape[1] if generate else None
            seen.next_tokens = next_tokens_from_states(self.model, kept, ids[0], self._named, written)
        return seen

    def _read_two_sides(
        self, text: str, pair: str | None, generate: int, next_tokens: bool, watching: dict[str, Any]
    ) -> Recording:
        inputs = self._two_sides(text, pair, generate)
        # Read again in one go: one call per layer instead of one per generated token.
        with watch(self.model, **watching) as seen:
            output = self.model(**inputs)
        seen.tokens = self._tokens(inputs["decoder_input_ids"])
        seen.source_tokens = self._tokens(inputs["input_ids"])
        if next_tokens:
            # What a model generated begins after the token that starts its answer.
            written = 1 if pair is None else None
            ids = inputs["decoder_input_ids"][0]
            seen.next_tokens = next_tokens_of([output.logits[0]], ids, self._named, written)
        return seen

    @torch.no_grad()
    def inputs(self, text: str, *, pair: str | None = None) -> dict[str, torch.Tensor]:
        """What the model reads for a text: ``model(**reader.inputs(text))``.

        The decoder's side of an encoder-decoder is ``pair``, or what it generates.
        """
        return self._two_sides(text, pair, 0) if self.two_sided else self._inputs(text, pair, 0)

    def _two_sides(self, text: str, pair: str | None, generate: int) -> dict[str, torch.Tensor]:
        inputs = self._inputs(text, None, 0)
        if pair is not None and generate:
            raise ArgumentError(
                "The decoder's side must be a second text or generated, not both.",
                got="pair = {pair!r}, generate = {generate}",
                do="Omit one of them.",
                pair=pair[:40],
                generate=generate,
            )
        if pair is not None:
            answer = self.tokenizer(text_target=pair, return_tensors="pt").input_ids
            check_known(self.tokenizer, answer[0].tolist(), self.name)
            target = torch.cat([torch.tensor([[self._decoder_start()]]), answer], 1)
        else:
            self._check_writes()
            self._check_fits(generate, generate)
            # A model without an end token would go on beyond its positions.
            count = generate or min(ANSWER, self.longest)
            target = self.model.generate(**inputs, max_new_tokens=count, do_sample=False)[:, :-1]
        return {**inputs, "decoder_input_ids": target}

    def _inputs(self, text: str, pair: str | None, generate: int) -> dict[str, torch.Tensor]:
        for name, given in (("text", text), ("pair", pair)):
            if given is not None and not (isinstance(given, str) and given.strip()):
                raise TextError(
                    "A text must have at least one word.",
                    got="{name} = {given!r}",
                    do='Pass "I love AI", say.',
                    name=name,
                    given=given,
                )
        both = (text,) if pair is None else (text, pair)
        found = dict(self.tokenizer(*both, return_tensors="pt"))
        length = found["input_ids"].shape[1]
        if length == 0:
            raise TextError(
                "A text must have at least one token that {name} knows.",
                got="{text!r}",
                do="Write it in a language that the model knows.",
                name=self.name,
                text=text[:60],
            )
        check_known(self.tokenizer, found["input_ids"][0].tolist(), self.name)
        self._check_fits(length + generate, generate)
        return {name: tensor for name, tensor in found.items() if name != "token_type_ids" or pair}

    def _check_fits(self, tokens: int, generate: int) -> None:
        """Raise if a text has more tokens, ``generate`` of them generated, than the model has positions."""
        if tokens > self.longest:
            raise TextError(
                "A text must fit the positions of the model (longest = {longest:,}).",
                got="{tokens:,} tokens, {generate} of them generated" if generate else "{tokens:,} tokens",
                do="Shorten it, or take a model with more positions.",
                longest=self.longest,
                tokens=tokens,
                generate=generate,
            )

    def _no_more_logits(self) -> dict[str, int]:
        """The option to compute logits at one position only, if the model has it; all of them take memory."""
        can = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        return {"logits_to_keep": 1} if can else {}

    def _tokens(self, ids: torch.Tensor) -> list[str]:
        return self._named(ids[0].tolist())

    def _named(self, ids: Sequence[int]) -> list[str]:
        # Some models have more logits than their tokenizer has tokens.
        return [str(token) for token in self.tokenizer.convert_ids_to_tokens([int(token) for token in ids])]

    def _decoder_start(self) -> int:
        configs = (self.model.generation_config, self.model.config)
        found = [getattr(config, "decoder_start_token_id", None) for config in configs]
        known = [*found, self.tokenizer.bos_token_id, 0]
        return int(next(start for start in known if start is not None))

    def _check_writes(self) -> None:
        if not self.writes:
            raise ArgumentError(
                "Only a model with a decoder can generate.",
                got="{type} of {name}",
                do="Omit generate.",
                type=type(self.model).__name__,
                name=self.name,
            )


_COUNTED_FROM_TWO = ("roberta", "xlm-roberta", "camembert", "longformer")


def load_reader(name: str | Path, *, dtype: torch.dtype = torch.float32, answering: bool = False) -> Reader:
    """The model and tokenizer in a folder, or of that name on the hub (fetched by transformers).

    With ``answering``, classifiers and masked language models come with the head that they were saved with.
    """
    with loading_model(
        name,
        must="A model must be a folder with config.json, weights and tokenizer, or a name on the hub.",
        do="Pass a folder that save_pretrained wrote, or connect to the hub.",
    ) as (transformers, source):
        config = transformers.AutoConfig.from_pretrained(source)
        _check_reads_text(config, str(name))
        model = _kind(transformers, config, answering).from_pretrained(source, dtype=dtype)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    check_tokenizer(tokenizer, str(name), source if isinstance(source, Path) else None)
    return Reader(model.eval(), tokenizer, str(name))


def _check_reads_text(config: Any, name: str) -> None:
    if config.model_type in PICTURE_ENCODERS:
        raise ModelFileError(
            "load_reader needs a model that reads text.",
            got="{name!r}, which reads pictures",
            do="Use load_picture_reader, or regard look PICTURE --model FOLDER.",
            name=name,
        )


def _kind(transformers: Any, config: Any, answering: bool) -> Any:
    """The class that loads the model with the part that generates, where it has one."""
    names = " ".join(getattr(config, "architectures", None) or ())
    if config.is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    if "CausalLM" in names or "LMHeadModel" in names:
        return transformers.AutoModelForCausalLM
    if answering and "ForSequenceClassification" in names:
        return transformers.AutoModelForSequenceClassification
    if answering and "ForMaskedLM" in names:
        return transformers.AutoModelForMaskedLM
    return transformers.AutoModel
