"""What the roles of one call are measured from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.heads.key_sets import KeySetChannels
from regard.heads.pair_weights import allowed_at
from regard.heads.role_tally import CallTokens
from regard.heads.significance import ReceivedWeights
from regard.kernels import Statistics
from regard.masks import Mask
from regard.masks.extent import Integers
from regard.recording import Call


@dataclass(frozen=True, eq=False)
class RoleInputs:
    """What the roles of one call are measured from: the call, its tokens, padding and statistics."""

    call: Call
    text: CallTokens
    real: Tensor  # (batch, query), not padding
    shown: Tensor  # (batch, key), not padding
    batches: Sequence[int]
    reach: int
    mask: Mask  # queries that are padding see nothing
    channels: KeySetChannels
    found: Statistics  # its output is the weight on the sets of the channels
    chance: Statistics  # the same for even weights; axes of batch and heads may be 1

    def rows(self, batch: int) -> Integers:
        """The queries that are not padding."""
        return np.flatnonzero(self.real[batch].numpy())

    def positions(self, rows: Integers) -> Integers:
        """The positions of queries among the keys."""
        return rows + self.call.extent.offset

    def keys(self, batch: int) -> Integers:
        """The keys that are not padding."""
        return np.flatnonzero(self.shown[batch].numpy())

    def first(self, batch: int) -> int:
        """The first key that is not padding."""
        return int(self.shown[batch].int().argmax())

    def visible(self, batch: int, rows: Integers) -> Tensor:
        """The number of keys each row sees, ``(head, row)``."""
        at = torch.from_numpy(rows).to(self.found.visible.device)
        return self.found.visible[batch][:, at]

    def even(self, batch: int, rows: Integers) -> Tensor:
        """The weight of each key of a row if all were equal."""
        return 1 / self.visible(batch, rows).clamp(min=1).double()

    def peak(self, batch: int, rows: Integers) -> Tensor:
        """The largest weight of each row, ``(head, row)``."""
        return self.found.peak[batch][:, torch.from_numpy(rows).to(self.found.peak.device)]

    def received(self, batch: int) -> Tensor:
        """What each key receives, ``(head, key)``; rows that cannot see a key count as even there."""
        visible = self.chance.visible[batch]
        evenly = torch.where(visible > 0, 1 / visible.clamp(min=1).double(), 0.0).sum(-1, keepdim=True)
        return self.found.received[batch].double().cpu() + evenly - self.chance.received[batch].double()

    def telling(self, batch: int, rows: Integers, keys: Integers, weights: Tensor, allowed: Tensor) -> Tensor:
        """How well each pair serves as an example: its weight above an even one, −inf if it may not attend.

        Many heads rest on the first key, so a pair with another key says more.
        """
        above = weights - self.even(batch, rows).to(weights.dtype)
        above -= torch.from_numpy(keys == self.first(batch)).to(weights)
        return above.masked_fill_(~allowed, -torch.inf)

    def allowed(self, batch: int, rows: Integers, keys: Integers) -> Tensor:
        """Whether each pair may attend, ``(head, pair)``.

        Without a recorded mask the kind decides: a decoder looks back, and no query sees padding.
        """
        found = allowed_at(self.call, batch, rows, keys)
        if not self.call.mask_known:
            back = keys <= self.positions(rows) if self.call.kind == "decoder" else True
            found = found & back & self.shown[batch].numpy()[keys]
        sees = self.visible(batch, rows) > 0
        return torch.from_numpy(found).to(sees.device) & sees

    def columns(self, batch: int, population: Integers, chosen: Integers) -> ReceivedWeights:
        """The weight that the keys of a population receive, with the chosen ones among them."""
        received = self.received(batch)[:, torch.from_numpy(population)]
        return ReceivedWeights(received, np.flatnonzero(np.isin(population, chosen)))
