"""What a model is called with and what it returns: the two sides that a metric compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ArgumentError, DtypeError

IGNORED = -100
"""The label of a position that does not count, as in transformers and torch."""


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """The arguments of a model: positional and by name, with one batch axis in front.

    >>> import torch
    >>> ModelInputs.of(torch.nn.Linear(4, 3), torch.zeros(2, 4)).batch
    2
    """

    args: tuple[Any, ...]
    named: Mapping[str, Any]
    batch: int
    shifted: bool = True  # whether labels are the inputs themselves, one position later
    vocabularies: frozenset[int] = frozenset()  # how many tokens the model's embeddings have

    @classmethod
    def of(cls, model: nn.Module, given: object) -> ModelInputs:
        """Inputs from a dict for ``model(**inputs)``, a tensor, or a tuple of tensors."""
        args: tuple[Any, ...] = ()
        named: dict[str, Any] = {}
        if isinstance(given, Tensor):
            args = (given,)
        elif isinstance(given, Mapping) or hasattr(given, "keys"):  # transformers' BatchEncoding
            named = {name: given[name] for name in given.keys()}  # type: ignore[index]  # noqa: SIM118
        elif isinstance(given, tuple | list):
            args = tuple(given)
        sizes = [x.shape[0] for x in (*args, *named.values()) if isinstance(x, Tensor) and x.ndim]
        if not sizes:
            raise DtypeError(
                "Inputs must be a dict for model(**inputs), a tensor of ids, or a tuple of tensors.",
                got="{type}",
                do='Pass tokenizer(text, return_tensors="pt").',
                type=type(given).__name__,
            )
        config = getattr(model, "config", None)
        own_side = getattr(config, "is_encoder_decoder", False) or "MaskedLM" in type(model).__name__
        sizes_of_tables = {part.num_embeddings for part in model.modules() if isinstance(part, nn.Embedding)}
        own = getattr(model, "vocabulary", None)
        known = frozenset(sizes_of_tables | ({own} if isinstance(own, int) else set()))
        return cls(args, named, sizes[0], not own_side, known)

    def run(self, model: nn.Module, times: int = 1) -> Any:
        """The model's output for these inputs, repeated ``times`` times along the batch."""
        args = [repeated(x, self.batch, times) for x in self.args]
        return model(*args, **{name: repeated(x, self.batch, times) for name, x in self.named.items()})

    def targets(self) -> tuple[Tensor, bool]:
        """The expected tokens, −100 where none counts, and whether each is one position later."""
        if isinstance(self.named.get("labels"), Tensor):
            return self.named["labels"], self.shifted
        own = [x for x in self.args if isinstance(x, Tensor) and not x.is_floating_point()]
        side = "decoder_" if "decoder_input_ids" in self.named else ""
        ids = self.named.get(f"{side}input_ids", own[-1] if own else None)
        if not isinstance(ids, Tensor) or (not self.shifted and not side):
            raise ArgumentError(
                "The loss needs the expected tokens.",
                got="inputs without labels",
                do="Pass labels= with the inputs, −100 where nothing counts.",
            )
        keep = self.named.get(f"{side}attention_mask")
        counts = ids >= 0 if not isinstance(keep, Tensor) or keep.ndim != 2 else keep > 0
        return torch.where(counts, ids, IGNORED), True

    def last(self, length: int, device: torch.device) -> Tensor:
        """The last position of each sequence that is not padding, ``(batch,)``."""
        side = "decoder_" if "decoder_input_ids" in self.named else ""
        keep = self.named.get(f"{side}attention_mask")
        if not isinstance(keep, Tensor) or tuple(keep.shape) != (self.batch, length):
            return torch.full((self.batch,), length - 1, device=device)
        places = torch.arange(length, device=keep.device)
        return torch.where(keep > 0, places, 0).amax(1).to(device)


def repeated(x: Any, batch: int, times: int) -> Any:
    """``x`` with its batch axis repeated: all sequences, then all of them again."""
    if times == 1 or not isinstance(x, Tensor) or not x.ndim or x.shape[0] != batch:
        return x
    return x.repeat(times, *(1,) * (x.ndim - 1))


def part_of(output: Any, number: int, batch: int, times: int) -> Any:
    """The output of one repetition out of several.

    >>> part_of((torch.arange(6), "x"), 1, 2, 3)
    (tensor([2, 3]), 'x')
    """
    if times == 1:
        return output
    if isinstance(output, Tensor):
        whole = output.ndim > 0 and output.shape[0] == batch * times
        return output[number * batch : (number + 1) * batch] if whole else output
    if isinstance(output, Mapping):
        parts = {name: part_of(x, number, batch, times) for name, x in output.items()}
        return type(output)(**parts) if type(output) is not dict else parts
    if isinstance(output, tuple | list):
        return tuple(part_of(x, number, batch, times) for x in output)
    return output


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run of a model: its output, what it read, and its output without any edit.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> ids = torch.tensor([[5, 6, 7]])
    >>> with torch.no_grad():
    ...     outcome = Outcome(model(ids), ModelInputs.of(model, ids), model(ids))
    >>> abs(regard.metrics.kl.of(outcome).item()) < 1e-6  # nothing was changed
    True
    """

    output: Any
    inputs: ModelInputs
    plain: Any


def logits_of(output: Any, inputs: ModelInputs) -> Tensor | None:
    """The logits ``(batch, position, token)`` in an output; None if it has none."""
    found = getattr(output, "logits", None)
    if found is None and isinstance(output, Mapping):
        found = output.get("logits")
    if (
        found is None
        and isinstance(output, Tensor)
        and output.shape[-1:]
        and output.shape[-1] in inputs.vocabularies
    ):
        found = output
    return found if isinstance(found, Tensor) and found.ndim == 3 else None


def needed_logits(output: Any, inputs: ModelInputs, metric: object) -> Tensor:
    """The logits of an output; raises if the model has none, which ``metric`` needs."""
    found = logits_of(output, inputs)
    if found is None:
        raise ArgumentError(
            "{metric!r} needs the logits of the model, (batch, position, token).",
            got="{type} without them",
            do="Use a model with a language head, metrics.cosine, or a function of the output.",
            metric=metric,
            type=type(output).__name__,
        )
    return found


def hidden_of(output: Any) -> Tensor:
    """The main tensor of an output: logits, the last hidden state, or the output itself."""
    for name in ("logits", "last_hidden_state", "pooler_output"):
        found = getattr(output, name, None)
        if isinstance(found, Tensor):
            return found
    first = next(iter(output.values())) if isinstance(output, Mapping) else output
    first = first[0] if isinstance(first, tuple | list) else first
    if not isinstance(first, Tensor):
        raise ArgumentError(
            "metrics.cosine needs a tensor in the output of the model.",
            got="{type}",
            do="Pass a function of the output.",
            type=type(output).__name__,
        )
    return first
