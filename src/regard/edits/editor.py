"""The editor: applies the steps of an edit to every call that a model makes."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor

from regard.edits.edit import Edit, EditStep, HeadEdit
from regard.edits.edited_call import EditedCall
from regard.errors import ArgumentError, EditError, ShapeError
from regard.interception.call_types import CallPlace, InterceptedCall, Kind


class Editor:
    """Changes the calls of a model; a :class:`regard.interception.call_types.CallEditor`."""

    def __init__(self, edit: Edit, model: str) -> None:
        self.edit = edit
        self.model = model
        self.calls: list[CallPlace] = []
        """The calls that were changed, in order."""
        self._steps = edit.steps()
        self._effective: set[int] = set()  # the numbers of the steps that changed something
        self._layers: Counter[Kind] = Counter()  # how many layers of each kind were seen
        self._past = 0
        self._current: list[tuple[HeadEdit, EditedCall]] = []

    def __repr__(self) -> str:
        count = len(self.calls)
        return f"<{self.edit!r} in {self.model}: {count} call{'' if count == 1 else 's'} changed>"

    # ---- called by interception ----------------------------------------------------------------

    def begin(self) -> None:
        """A forward pass begins."""
        self._past = 0

    def edit_inputs(self, place: CallPlace, call: InterceptedCall) -> InterceptedCall:
        """The call to compute in place of this one."""
        self._layers[place.kind] = max(self._layers[place.kind], place.layer + 1)
        if place.kind != "cross":
            # A cross call does not say where its queries are: they are where those of the last call were.
            self._past = call.past
        self._current = []
        for number, step in enumerate(self._steps):
            if not step.edit.scope.covers(place):
                continue
            edited = self._edited(step, place, call)
            if step.edit.changes(edited):
                self._effective.add(number)
                self._current.append((step.edit, edited))
            # An edit of rows that come later belongs to the mask and the bias of the text from its start.
            call = step.edit.edit_inputs(edited)
        if self._current:
            self.calls.append(place)
        return call

    def edit_output(self, place: CallPlace, call: InterceptedCall, output: Tensor) -> Tensor:
        """The output that the model gets in place of this one."""
        del place, call
        for edit, edited in self._current:
            output = edit.edit_output(edited, output)
        self._current = []
        return output

    def _edited(self, step: EditStep, place: CallPlace, call: InterceptedCall) -> EditedCall:
        inputs = call.inputs
        device, scope = inputs.q.device, step.edit.scope
        positions = torch.arange(self._past, self._past + inputs.q.shape[2], device=device)
        return EditedCall(
            place, call, self._past, self._cells(step, place, call, device), scope.at(positions)
        )

    def _cells(self, step: EditStep, place: CallPlace, call: InterceptedCall, device: torch.device) -> Tensor:
        """The changed elements and heads, ``(batch or 1, head or 1)``."""
        batch, heads = len(call.inputs.q), call.inputs.heads
        elements = _chosen(step.elements, self._check_batch(place, batch), device)
        some = step.edit.scope.heads
        if some is not None and some[-1] >= heads:
            raise ArgumentError(
                "heads= must name heads of the model (0 … {last}).",
                got="{edit!r} for {name}",
                do="Omit it to change all of them.",
                last=heads - 1,
                edit=step.edit,
                name=place.name,
            )
        return elements[:, None] & _chosen(some, heads, device)

    def _check_batch(self, place: CallPlace, batch: int) -> int:
        if self.edit.batch not in (None, batch):
            raise ShapeError(
                "each must have one edit per element of the batch (batch = {batch}).",
                got="{count} edits for {name}",
                do="Repeat the text once for every edit.",
                batch=batch,
                count=self.edit.batch,
                name=place.name,
            )
        return batch

    # ---- at the end ----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise if there was nothing that an edit could change."""
        known = self._layers
        if not known:
            raise EditError(
                "An edited model must call attention inside the with block.",
                got="no attention from {model}",
                do="Run the edited model itself inside the block, in the same thread; the attention of a "
                "model that computes softmax by hand or in a compiled kernel cannot be edited: let it call "
                "F.scaled_dot_product_attention. Call torch.compile before the block, not in it.",
                model=self.model,
            )
        check_layers(self.edit, max(known.values()))
        for number, step in enumerate(self._steps):
            if number not in self._effective:
                raise EditError(
                    "Each edit must change something in at least one call.",
                    got="{edit!r}, which changed nothing in {calls}",
                    do="Check its layers, kind and rows, and the positions of its mask.",
                    edit=step.edit,
                    calls=", ".join(f"{kind} 0 … {count - 1}" for kind, count in known.items()),
                )


def check_layers(edit: Edit, known: int) -> None:
    """Raise if an edit names a layer that the model does not have."""
    for step in edit.steps():
        layers = step.edit.scope.layers or ()
        if any(layer >= known for layer in layers):
            raise ArgumentError(
                "layers= must name layers of the model (0 … {last}).",
                got="{edit!r}",
                do="Omit it to change all of them.",
                last=known - 1,
                edit=step.edit,
            )


def _chosen(some: tuple[int, ...] | None, count: int, device: torch.device) -> Tensor:
    """Bools ``(count,)``, or ``(1,)`` for all."""
    if some is None:
        return torch.ones(1, dtype=torch.bool, device=device)
    found = torch.zeros(count, dtype=torch.bool, device=device)
    found[list(some)] = True
    return found
