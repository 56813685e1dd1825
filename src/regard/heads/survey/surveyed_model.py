"""The model that is surveyed: what of it is run, which heads it has, and its digest."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regard.checks import is_integer
from regard.errors import ArgumentError, SurveyError
from regard.heads.induction_heads import induction
from regard.heads.survey.accumulators import Accumulators, AttentionPlace, HeadLayout
from regard.heads.survey.corpus_batches import DocumentPart
from regard.heads.survey.tokenized_batch import TokenFlags, TokenizedBatch
from regard.recording import Recording, watch
from regard.recording.call import Call
from regard.recording.reader import Reader
from regard.recording.watcher import listen

PROBE = "A text to begin with."

SAMPLED = 4096
"""Values of each weight that go into the digest of a model."""


@dataclass(frozen=True, eq=False)
class SurveyedModel:
    """A model with its tokenizer, as a survey runs it: without the head that generates.

    Of an encoder-decoder the encoder is surveyed: a corpus has one side.
    """

    reader: Reader
    layers: tuple[int, ...] | None

    @cached_property
    def model(self) -> Any:
        """The module that runs."""
        model = self.reader.model
        return model.get_encoder() if self.reader.two_sided else getattr(model, "base_model", model)

    @cached_property
    def words(self) -> TokenFlags:
        """Which of its tokens are special or separators."""
        return TokenFlags(self.reader.tokenizer, frozenset(self.reader.tokenizer.all_special_ids))

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))

    @property
    def padding(self) -> int:
        """The token after the end of a short text; no query sees it."""
        known = self.reader.tokenizer.pad_token_id
        return 0 if known is None else int(known)

    def longest(self, asked: int | None, batch_tokens: int) -> int:
        """How many tokens a part may have: the model's limit, or a batch where it has none."""
        limit = self.reader.longest
        if asked is not None and not is_integer(asked, 4, limit):
            raise ArgumentError(
                "longest must be a number of tokens, 4 or more."
                if limit == math.inf
                else "longest must be a number of tokens from 4 to {limit:,}, the positions of the model.",
                got="longest = {asked!r}",
                do="Omit it to use the default.",
                limit=limit,
                asked=asked,
            )
        return asked or (batch_tokens if limit == math.inf else int(limit))

    @cached_property
    def layout(self) -> HeadLayout:
        """Its attentions, found by a first run; raises if they cannot be intercepted."""
        places: list[AttentionPlace] = []
        ids = tuple(self.reader.tokenizer(PROBE)["input_ids"])
        texts = TokenizedBatch.of([DocumentPart(0, 0, "", ids)], self.words, self.padding, self.device)
        self._run(
            texts,
            lambda call: places.append(AttentionPlace(call.name, call.kind, call.layer, call.head_numbers)),
        )
        if not places:
            raise SurveyError("A survey needs at least one layer.", got="none", do="Omit layers.")
        return HeadLayout(tuple(places))

    def read(self, parts: tuple[DocumentPart, ...], bar: Tensor) -> Accumulators:
        """What the heads do with a batch of texts; raises whatever the model raises."""
        found = Accumulators.blank(self.layout.heads)
        texts = TokenizedBatch.of(parts, self.words, self.padding, self.device)
        self._run(texts, lambda call: found.add(self.layout.rows(call), call, texts, parts, bar))
        found.count(
            parts=len(parts), tokens=int(texts.real.sum()), documents=sum(not part.part for part in parts)
        )
        return found

    @torch.no_grad()
    def _run(self, texts: TokenizedBatch, hear: Any) -> None:
        def heard(call: Call) -> None:
            hear(call)

        with listen(self.model, heard, layers=self.layers):
            self.model(input_ids=texts.ids, attention_mask=texts.real.long())

    def on_repeats(self, longest: int) -> tuple[float | None, ...] | None:
        """The induction score of every head on random tokens that repeat; None if the model is not a decoder.

        A repetition in a text may be attended to for its meaning; random tokens have none.
        """
        if any(place.kind != "decoder" for place in self.layout.places):
            return None
        usable = len(self.reader.tokenizer) - len(self.words.special)
        length = min(32, (longest - 1) // 2, usable - 1)
        if length < 2:
            return None
        avoid = self.words.special
        start = self.reader.tokenizer.bos_token_id
        found = induction(
            self.model, length=length, vocabulary=len(self.reader.tokenizer), start=start, avoid=avoid
        )
        scores = {(head.name, head.layer, head.head): head.scores.get("induction") for head in found}
        places = [(place.name, place.layer, head) for place in self.layout.places for head in place.heads]
        known = [scores.get(place) for place in places]
        return tuple(None if score is None else score.value for score in known)

    @torch.no_grad()
    def record(self, part: DocumentPart) -> Recording:
        """A recording of one text, with its tokens."""
        ids = torch.tensor([part.ids], device=self.device)
        with watch(self.model, layers=self.layers) as seen:
            self.model(input_ids=ids, attention_mask=torch.ones_like(ids))
        seen.tokens = self.tokens(part.ids)
        return seen

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens of these ids."""
        return [str(token) for token in self.reader.tokenizer.convert_ids_to_tokens(list(ids))]

    def digest(self) -> str:
        """A digest that identifies the model: its class, its tokenizer, and a sample of its weights."""
        total = hashlib.blake2b(digest_size=16)
        tokenizer = self.reader.tokenizer
        total.update(
            repr((type(self.model).__name__, len(tokenizer), tokenizer(PROBE)["input_ids"])).encode()
        )
        for name, weight in self.model.state_dict().items():
            flat = weight.detach().flatten()
            sample = flat[:: max(1, len(flat) // SAMPLED)].cpu().contiguous()
            total.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
            total.update(sample.view(torch.uint8).numpy().tobytes() if sample.numel() else b"")
        return total.hexdigest()
