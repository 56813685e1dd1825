"""The mean output of every head over a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from regard.errors import EditError
from regard.interception.call_types import CallPlace, Kind


@dataclass(frozen=True, eq=False, repr=False)
class MeanOutputs:
    """The mean output of every head, ``(head, channel)`` for each kind and layer.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=3).eval()
    >>> regard.heads.mean_outputs(model, [torch.tensor([[5, 6, 7]])])
    <mean outputs of LanguageModel over 3 tokens>
    """

    model: str
    tokens: int
    means: Mapping[tuple[Kind, int], Tensor]

    def __repr__(self) -> str:
        return f"<mean outputs of {self.model} over {self.tokens:,} tokens>"

    def at(self, place: CallPlace, output: Tensor) -> Tensor:
        """The means ``(head, 1, channel)`` for the output of a call."""
        found = self.means.get((place.kind, place.layer))
        _, heads, _, channels = output.shape
        if found is None or found.shape != (heads, channels):
            raise EditError(
                "The mean outputs must be those of the model that is edited.",
                got="{mean!r} without {kind} layer {layer}"
                if found is None
                else "{mean!r} with {shape} heads and channels where {name} has {wanted}",
                do="Compute them for this model: regard.heads.mean_outputs(model, texts).",
                mean=self,
                kind=place.kind,
                layer=place.layer,
                shape=() if found is None else tuple(found.shape),
                name=place.name,
                wanted=(heads, channels),
            )
        return found[:, None].to(output)
