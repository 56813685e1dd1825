"""The heads of one sequence that share a mask, and everything that is computed of them for a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.kernels.bias import Bias
from regard.kernels.plain_kernel import ScoreOptions, scores_of
from regard.masks import Mask
from regard.masks.extent import Extent
from regard.recording import ScoredCall
from regard.views.page.sequence import narrowed


@dataclass(frozen=True, eq=False)
class HeadSlice:
    """Some heads of one sequence: q ``(head, query, channel)``, k ``(key head, key, channel)``."""

    heads: slice
    key_heads: slice
    q: Tensor
    k: Tensor
    mask: Mask  # without lead
    bias: Bias | None
    scale: float
    softcap: float | None
    sinks: Tensor | None

    @property
    def extent(self) -> Extent:
        """Queries and keys."""
        return Extent(self.q.shape[1], self.k.shape[1])

    def options(self) -> dict[str, Any]:
        """What ``regard.attention`` takes besides the tensors."""
        return {
            "mask": self.mask,
            "bias": self.bias,
            "scale": self.scale,
            "softcap": self.softcap,
            "sinks": self.sinks,
        }

    def scores(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """The scores ``(head, row, key)`` of some queries; −inf where the mask forbids."""
        group = self.q.shape[0] // max(1, self.k.shape[0])
        q = self.q[:, rows].to(dtype)
        k = self.k.to(dtype).repeat_interleave(group, 0) if group > 1 else self.k.to(dtype)
        positions = rows + self.extent.offset
        bias = None
        if self.bias is not None:
            keys = torch.arange(self.extent.keys)
            bias = self.bias.tile(self.bias.tables, positions, keys, self.extent)[0].to(dtype)
        scores, _ = scores_of(q, k, bias, ScoreOptions(self.scale, self.softcap))
        allowed = self.mask.evaluate(self.extent, positions.numpy())
        return scores if allowed.all() else scores.masked_fill_(~torch.from_numpy(allowed), -torch.inf)


def pieces_of(call: ScoredCall) -> Iterator[HeadSlice]:
    """The heads of a call of one sequence: all together, or one by one where each has its own mask."""
    (q,), (k,) = call.q, call.k
    group = call.heads // k.shape[0]
    for heads in [slice(h, h + 1) for h in range(call.heads)] if call.mask.lead else [slice(0, call.heads)]:
        key_heads = slice(heads.start // group, (heads.stop - 1) // group + 1)
        yield HeadSlice(
            heads,
            key_heads,
            q[heads],
            k[key_heads],
            call.mask.select((0, heads.start)),
            None if call.bias is None else narrowed(call.bias, 0, heads),
            call.scale,
            call.softcap,
            None if call.sinks is None else call.sinks[heads],
        )
