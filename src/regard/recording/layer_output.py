"""From the heads of a call to the output of its layer: each head through W_O, the bias, the residual."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.errors import RecordingError
from regard.kernels.precision import full_precision
from regard.recording.call import positions, widened

if TYPE_CHECKING:
    from regard.masks.extent import Integers
    from regard.recording.call import Positions
    from regard.recording.scored_call import ScoredCall


def projected_block(call: ScoredCall, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
    """``O_i W_O`` of some rows of the head at this index, ``(rows, width)``."""
    v, weight = widened(call.values[batch, call.key_head(index)]), call.projections[index]
    outputs = torch.cat([call._block(batch, index, rows, j) @ v for rows in call.row_steps(i)])
    wide = torch.promote_types(outputs.dtype, widened(weight).dtype)
    with full_precision(outputs):
        return outputs.to(wide) @ weight.to(wide)


def layer_output(call: ScoredCall, rows: Positions, batch: int) -> Tensor:
    """``x_i + Σ_h O_i W_O + b``, ``(rows, width)``."""
    if not call.has_all_heads:
        raise RecordingError(
            "The output of a layer needs all of its heads.",
            got="heads {heads} of {name}",
            do="Record without heads=.",
            heads=", ".join(map(str, call.head_numbers)),
            name=call.name,
        )
    residual = call.residuals
    total = call.projected(None, rows, batch).sum(0)
    if call.projection_bias is not None:
        total = total + call.projection_bias.to(total)
    chosen = torch.from_numpy(positions(rows, call.queries, "rows"))
    x = residual[batch][chosen.to(residual.device)]
    return total + x.to(torch.promote_types(total.dtype, x.dtype))
