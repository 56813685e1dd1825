"""The call of another run that corresponds to a call of this one, checked: same model, same length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.edits.edited_call import EditedCall
from regard.errors import DtypeError, EditError, RecordingError
from regard.kernels.bias import Bias
from regard.kernels.functional import attention
from regard.kernels.inputs import Inputs
from regard.masks import Mask
from regard.recording import Recording
from regard.recording.call import Call
from regard.recording.scored_call import ScoredCall


def check_recording(given: object, what: str) -> Recording:
    """The recording that an edit was given; raises if it is something else."""
    if isinstance(given, Recording):
        return given
    raise DtypeError(
        "{what}(recording) needs a recording.",
        got="{type}",
        do="Make one: with regard.watch(model, values=True) as seen: model(**inputs).",
        what=what,
        type=type(given).__name__,
    )


def recorded_for(recording: Recording, edited: EditedCall) -> RecordedCall | None:
    """The same call in the recording; None for queries that come after its text, as in generation."""
    place = edited.place
    found = [call for call in recording.calls if (call.kind, call.layer) == (place.kind, place.layer)]
    if len(found) != 1 or found[0].name != place.name:
        raise EditError(
            "The recording must be of one run of the model that is edited.",
            got="{count} calls of {kind} layer {layer} in {recording!r}"
            if len(found) != 1
            else "{recorded} where the model calls {name}",
            do="Record one forward pass of the same model, with all layers that the edit names.",
            count=len(found),
            kind=place.kind,
            layer=place.layer,
            recording=recording,
            recorded=found[0].name if found else "",
            name=place.name,
        )
    call = found[0]
    if edited.past and edited.past >= call.queries:
        return None
    _check_sizes(call, edited)
    return RecordedCall(call.scored(), edited)


def _check_sizes(call: Call, edited: EditedCall) -> None:
    inputs = edited.call.inputs
    if call.extent != inputs.extent or edited.past or call.batch not in (1, len(inputs.q)):
        raise EditError(
            "The recording must have the length of the text that is read, and its batch or one sequence "
            "(batch = {batch}, {extent}).",
            got="batch = {own_batch}, {own_extent} in the recording of {name}",
            do="Record a text with as many tokens.",
            batch=len(inputs.q),
            extent=inputs.extent,
            own_batch=call.batch,
            own_extent=call.extent,
            name=call.name,
        )
    missing = sorted(set(edited.heads.tolist()) - set(call.head_numbers))
    if missing:
        raise EditError(
            "The recording must have all heads that are edited.",
            got="no head {heads} in the recording of {name}",
            do="Record without heads=, or name other heads.",
            heads=", ".join(map(str, missing)),
            name=call.name,
        )


@dataclass(frozen=True, eq=False)
class RecordedCall:
    """A recorded call, and the call whose heads get what it holds."""

    call: ScoredCall
    edited: EditedCall

    # ---- what the recording holds --------------------------------------------------------------

    @cached_property
    def own(self) -> ScoredCall:
        """The edited heads of the recording, each with its own key head."""
        return self.call.select(
            heads=[self.call.head_numbers.index(head) for head in self.edited.heads.tolist()]
        )

    def finite(self, name: str, tensor: Tensor) -> Tensor:
        """A recorded tensor in the dtype of this run; raises if it has NaN."""
        if bool(tensor.isfinite().all()):
            return tensor.to(self.edited.call.inputs.q)
        raise RecordingError(
            "An edit by another run needs finite numbers.",
            got="NaN or infinity in {tensor} of {name}",
            do="Find the layer that computes them.",
            tensor=name,
            name=self.call.name,
        )

    def output(self) -> Tensor:
        """The recorded output of the edited heads, ``(batch or 1, edited head, query, channel)``."""
        own = self.own
        # Not the output: where a query is NaN, torch's kernels give 0 on some CPUs.
        return attention(
            self.finite("Q", own.q),
            self.finite("K", own.k),
            self.finite("V", own.values),
            mask=own.mask,
            bias=own.bias,
            scale=own.scale,
            softcap=own.softcap,
            sinks=own.sinks,
        )

    @property
    def mask(self) -> Mask:
        """Its mask, for the heads of the model."""
        if self.call.mask.lead and self.call.mask.lead[-1] not in (1, self.edited.call.inputs.heads):
            raise self._some_heads()
        return self.call.mask

    @property
    def bias(self) -> Bias | None:
        """Its bias, for the heads of the model."""
        bias = self.call.bias
        if bias is not None and bias.heads not in (1, self.edited.call.inputs.heads):
            raise self._some_heads()
        return bias

    def _some_heads(self) -> EditError:
        return EditError(
            "A recording whose mask or bias differs by head must have all heads.",
            got="{count} heads in the recording of {name}",
            do="Record without heads=.",
            count=self.call.heads,
            name=self.call.name,
        )

    # ---- into the call of this run -------------------------------------------------------------

    def put(self, own: Tensor, recorded: Tensor) -> Tensor:
        """``own (batch, head, length, channel)`` with the recorded tensor in the edited heads."""
        return torch.where(self.edited.where, self._with(own, recorded), own)

    def put_keys(self, own: Tensor, recorded: Tensor) -> Tensor:
        """``own (batch, head, key, channel)`` with the recorded keys in the edited heads, for all rows."""
        return torch.where(self.edited.cells[:, :, None, None], self._with(own, recorded), own)

    def _with(self, own: Tensor, recorded: Tensor) -> Tensor:
        full = own.clone()
        full[:, self.edited.heads] = recorded.to(own.dtype)
        return full

    def check_scores(self, inputs: Inputs) -> None:
        """Raise if the scores of the two runs are made in different ways."""
        sinks = (inputs.sinks, self.call.sinks)
        same_sinks = sinks[0] is sinks[1] is None or (
            sinks[0] is not None
            and sinks[1] is not None
            and sinks[0].shape == sinks[1].shape
            and torch.equal(sinks[0].detach(), sinks[1].to(sinks[0]))
        )
        if not same_sinks or self.call.softcap != inputs.softcap:
            raise EditError(
                "Weights of another run must be computed with the same softcap and sinks.",
                got="others in the recording of {name}",
                do="Record the same model with all heads.",
                name=self.call.name,
            )
