"""Which queries and keys are text and not padding, as far as a recording shows."""

from __future__ import annotations

from functools import reduce

import numpy as np
import torch
from torch import Tensor

from regard.masks import Mask
from regard.masks.extent import Bools, Extent
from regard.masks.mask import Both, Either
from regard.masks.pair_patterns import Dense
from regard.masks.patterns import Lengths, Padding
from regard.recording import Call, Recording
from regard.recording.step_masks import StackedMask


def real_queries(recording: Recording, call: Call) -> Tensor:
    """The queries that are not padding, ``(batch, query)``.

    In self-attention a query is padding where the mask hides the key at its position from every query.
    Cross-attention does not show which queries are padding; the decoder's self-attention beside it does.
    """
    if call.kind == "cross":
        return _beside(recording, call)
    return real_keys(call)[:, call.keys - call.queries :]


def real_keys(call: Call) -> Tensor:
    """The keys that are not padding, ``(batch, key)``."""
    if not call.mask_known:
        return _from_weights(call)
    found = _shown(call.mask, call.extent)
    return torch.from_numpy(np.broadcast_to(found, (call.batch, call.keys)).copy())


def _beside(recording: Recording, call: Call) -> Tensor:
    """What the decoder's self-attention of the same pass knows about the rows of cross-attention."""
    for other in recording:
        if (other.kind, other.run) == ("decoder", call.run) and other.batch == call.batch:
            found = real_keys(other)
            if found.shape[1] == call.queries:
                return found
    return torch.ones(call.batch, call.queries, dtype=torch.bool)


def _from_weights(call: Call) -> Tensor:
    """A call that kept no mask: padding is what no head gives any weight to."""
    found = call.statistics()
    sees = found.visible > 0
    if bool((found.visible == call.keys)[sees].all()):
        # Every query sees every key, so none is hidden, however little it receives.
        return torch.ones(call.batch, call.keys, dtype=torch.bool)
    return (found.received > 0).any(1).cpu()


def _shown(mask: Mask, extent: Extent) -> Bools:
    """The keys that padding leaves visible, ``(batch or 1, key)``.

    Only what is there to hide padding counts. That a window or a stride leaves some key unseen
    does not make it padding.
    """
    if isinstance(mask, Padding | Lengths) and not mask.transposed:
        last = np.array([extent.keys - 1])
        return _over_heads(mask.evaluate(extent, q=last)[..., 0, :], extent)
    if isinstance(mask, Dense):
        return _over_heads(np.asarray(mask.table.values.any(-2)), extent)
    if isinstance(mask, Both):
        return reduce(np.logical_and, (_shown(part, extent) for part in mask.parts))
    if isinstance(mask, Either):
        return reduce(np.logical_or, (_shown(part, extent) for part in mask.parts))
    if isinstance(mask, StackedMask):
        steps = ((_shown(rows.mask, rows.extent), extent.keys - rows.stop) for rows in mask.steps)
        return reduce(np.logical_or, (np.pad(shown, ((0, 0), (0, later))) for shown, later in steps))
    return np.ones((1, extent.keys), np.bool_)


def _over_heads(shown: Bools, extent: Extent) -> Bools:
    """``(..., batch, head, key)`` → ``(batch, key)``: shown to any head."""
    if shown.ndim > 2:
        shown = np.asarray(shown.any(-2))
    rows = shown.reshape(-1, shown.shape[-1])
    return np.broadcast_to(rows, (len(rows), extent.keys))
