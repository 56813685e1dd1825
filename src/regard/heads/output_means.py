"""``mean_outputs``: the mean output of every head over a corpus, for mean ablation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from regard.edits import MeanOutputs
from regard.edits.model_edit import refuse_hidden
from regard.errors import ArgumentError, DtypeError, EditError
from regard.interception.call_types import CallPlace, InterceptedCall, Kind
from regard.interception.model_interception import calls_intercepted
from regard.interception.pipeline import ModuleTracker, uncompiled
from regard.recording.reader import Reader

KindLayer = tuple[Kind, int]
"""A kind of attention, and the number of a layer of it."""


class OutputAverager:
    """Adds up the outputs of every head and changes none; a CallEditor."""

    def __init__(self) -> None:
        self.sums: dict[KindLayer, Tensor] = {}  # (head, channel)
        self.counts: dict[KindLayer, int] = {}
        self.keep: dict[Kind, Tensor | None] = {}  # (batch, query), False at padding

    def begin(self) -> None:
        """A forward pass begins: nothing to do."""

    def edit_inputs(self, place: CallPlace, call: InterceptedCall) -> InterceptedCall:
        """The call itself."""
        del place
        return call

    def edit_output(self, place: CallPlace, call: InterceptedCall, output: Tensor) -> Tensor:
        """The output itself, once it is added."""
        del call
        self._add((place.kind, place.layer), output.detach(), self.keep.get(place.kind))
        return output

    def _add(self, place: KindLayer, output: Tensor, keep: Tensor | None) -> None:
        batch, heads, queries, channels = output.shape
        rows = output.transpose(1, 2).reshape(batch * queries, heads, channels)
        if keep is not None and keep.shape == (batch, queries):
            rows = rows[keep.reshape(-1).to(rows.device)]
        self.sums[place] = self.sums.get(place, 0) + rows.double().sum(0)
        self.counts[place] = self.counts.get(place, 0) + len(rows)

    def means(self) -> dict[KindLayer, Tensor]:
        """The means so far."""
        return {place: total / max(1, self.counts[place]) for place, total in self.sums.items()}


@torch.no_grad()
def mean_outputs(model: nn.Module | Reader, texts: Iterable[Any], *, tokenizer: Any = None) -> MeanOutputs:
    """The mean output of every head over all tokens of the texts, for ``edits.average``.

    Args:
        model: any model that can be edited; or a model with its tokenizer, as ``load_reader`` gives it.
        texts: what the model is called with, one after the other: a mapping of its arguments, as a
            tokenizer returns it, or its only argument. Positions with ``attention_mask`` 0 do not count.
        tokenizer: with it, the texts may be strings.

    >>> from regard import edits
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> mean = mean_outputs(model, torch.randn(3, 1, 7, 16))
    >>> edits.average(mean, heads=1)
    average(<mean outputs of TransformerEncoderLayer over 21 tokens>, heads=[1])
    """
    if isinstance(model, Reader):
        model, tokenizer = model.model, model.tokenizer if tokenizer is None else tokenizer
    if not isinstance(model, nn.Module):
        raise DtypeError(
            "mean_outputs(model, texts) needs a PyTorch module.",
            got="{type}",
            do="Pass the model itself.",
            type=type(model).__name__,
        )
    averager = OutputAverager()
    training = model.training
    model.eval()
    try:
        with calls_intercepted(ModuleTracker(model, averager), refuse_hidden):
            for text in texts:
                _read(model, text, tokenizer, averager)
    finally:
        model.train(training)
    return _checked(averager, type(uncompiled(model)).__name__)


def _read(model: nn.Module, text: Any, tokenizer: Any, averager: OutputAverager) -> None:
    if isinstance(text, str):
        if tokenizer is None:
            raise ArgumentError(
                "Strings need a tokenizer.",
                got="{text!r}",
                do="Pass tokenizer=, or what the model is called with.",
                text=text[:60],
            )
        text = tokenizer(text, return_tensors="pt")
    if not isinstance(text, Mapping):
        averager.keep = {}
        model(text)
        return
    own = text.get("decoder_attention_mask") if "decoder_input_ids" in text else text.get("attention_mask")
    averager.keep = {
        "encoder": _bools(text.get("attention_mask")),
        "decoder": _bools(own),
        "cross": _bools(own),
    }
    model(**text)


def _bools(keep: Any) -> Tensor | None:
    return keep.bool() if isinstance(keep, Tensor) and keep.ndim == 2 else None


def _checked(averager: OutputAverager, model: str) -> MeanOutputs:
    means = averager.means()
    if not means:
        raise EditError(
            "A mean needs at least one text.", got="none for {model}", do="Pass texts.", model=model
        )
    for (kind, layer), mean in means.items():
        if not bool(mean.isfinite().all()):
            raise EditError(
                "Mean outputs must be finite.",
                got="NaN or infinity in {kind} layer {layer} of {model}",
                do="Find the text that produces them.",
                kind=kind,
                layer=layer,
                model=model,
            )
    return MeanOutputs(model, max(averager.counts.values()), means)
