"""One call that an edit changes: which of its elements, heads and rows, and where these are in the text."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.errors import MaskError, RegardError
from regard.interception.call_types import CallPlace, InterceptedCall
from regard.interception.placed_mask import EditedMaskView, placed
from regard.kernels.bias import Bias
from regard.kernels.head_masks import cell_table
from regard.kernels.scaled_bias import ScaledBias, scaled
from regard.masks import Mask


@dataclass(frozen=True, eq=False)
class EditedCall:
    """A call, and the part of it that an edit changes."""

    place: CallPlace
    call: InterceptedCall
    past: int  # position of the first query in its text
    cells: Tensor  # (batch or 1, head or 1), True where it is changed
    rows: Tensor | None  # (query,), True where it is changed; None means all of them

    @property
    def whole(self) -> bool:
        """Whether all of the call is changed."""
        return self.rows is None and bool(self.cells.all())

    @property
    def where(self) -> Tensor:
        """What is changed, ``(batch or 1, head or 1, query or 1, 1)``."""
        cells = self.cells[:, :, None, None]
        return cells if self.rows is None else cells & self.rows[:, None]

    @property
    def heads(self) -> Tensor:
        """The numbers of the heads that are changed in any element."""
        return self.cells.any(0).expand(self.call.inputs.heads).nonzero()[:, 0]

    @property
    def cell_mask(self) -> Mask:
        """All pairs of the changed elements and heads."""
        return cell_table(self.cells, self.call.inputs.lead)

    def factors(self, factor: float) -> Tensor:
        """The factor where the call is changed, 1 elsewhere, ``(batch or 1, head or 1, query or 1)``."""
        where = self.where[..., 0]
        return torch.where(where, factor, torch.ones((), device=where.device))

    def scaled(self, bias: Bias | None, factor: float) -> Bias | None:
        """The bias times a factor where the call is changed."""
        if bias is None:
            return None
        # In generation the next step may have other factors: they belong to the row, not to the table.
        return (
            scaled(bias, self.factors(factor))
            if self.rows is None
            else ScaledBias(bias, self.factors(factor))
        )

    # ---- masks ---------------------------------------------------------------------------------

    @property
    def _start(self) -> int | None:
        """The position of the first query; None if the last query is at the last key, as masks assume."""
        extent = self.call.inputs.extent
        aligned = self.past - self.call.first_key == extent.offset
        return None if aligned and self.place.kind != "cross" else self.past

    def placed(self, mask: Mask) -> Mask:
        """A mask of positions in the text as a mask of this call; raises if it does not fit."""
        inputs = self.call.inputs
        found = placed(mask, self.call.first_key, self._start)
        try:
            found.check(inputs.extent)
            full = (*inputs.lead, inputs.heads)
            if found.lead and torch.broadcast_shapes(found.lead, full) != full:
                raise RuntimeError  # as broadcast_shapes does
        except (RegardError, RuntimeError) as error:
            raise MaskError(
                "The mask of an edit must fit every call that it changes.",
                got="{mask} for {name} (batch = {batch}, heads = {heads}, {extent})",
                do="Choose the calls with kind= or layers=, or use a mask without a table.",
                mask=repr(mask)[:200],
                name=self.place.name,
                batch=len(inputs.q),
                heads=inputs.heads,
                extent=inputs.extent,
            ) from error
        return found

    def restricted(self, allowed: Mask) -> InterceptedCall:
        """The call under its own mask and another one, whose positions are those of the text."""
        inputs = self.call.inputs
        return replace(
            self.call,
            inputs=replace(inputs, mask=inputs.mask & self.placed(allowed)),
            view=EditedMaskView(self.call.mask_view, allowed, self._start),
        )
