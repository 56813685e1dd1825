"""A bias as the page carries it: one number per distance, or rounded rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.kernels.bias import Bias, Sum, TensorBias
from regard.kernels.biases import DistanceBias, relative
from regard.masks.extent import Extent
from regard.views.page.array_packing import ArrayStore
from regard.views.page.quantisation import Quantised, quantise


@dataclass(frozen=True, eq=False)
class CarriedBias:
    """``bias_ij = line[j − p_i + keys − 1] + table_ij``, each for one head or for all."""

    extent: Extent
    line: NDArray[np.float32] | None  # (head or 1, distance)
    table: Quantised | None  # (head or 1, query or 1, key or 1)

    def as_bias(self) -> Bias:
        """The bias that the browser adds, to compute with it here."""
        parts: list[Bias] = []
        if self.line is not None:
            # Distances reach from 1 − keys to queries − 1; a table of distances is even on both sides.
            far = max(self.extent) - 1
            wide = np.pad(self.line, ((0, 0), (far - self.extent.keys + 1, far - self.extent.queries + 1)))
            parts.append(relative(torch.from_numpy(wide)))
        if self.table is not None:
            parts.append(TensorBias(torch.from_numpy(self.table.decoded())[None]))
        return parts[0] if len(parts) == 1 else Sum(tuple(parts))

    def described(self, arrays: ArrayStore) -> dict[str, Any]:
        """Where its arrays are."""
        return {
            "line": None if self.line is None else arrays.put(self.line),
            "table": None if self.table is None else arrays.put_rows(self.table),
        }


def carried(bias: Bias, extent: Extent, bits: int) -> CarriedBias:
    """The bias of one sequence, as ``pieces.narrowed`` gives it; tables rounded to ``bits``."""
    parts = list(bias.terms())
    distances = torch.arange(1 - extent.keys, extent.queries)
    lines = [
        part.line(part.tables, distances).double().numpy() for part in parts if isinstance(part, DistanceBias)
    ]
    tables = [
        (part.values[0] if isinstance(part, TensorBias) else part.dense(*extent)).double().numpy()
        for part in parts
        if not isinstance(part, DistanceBias)
    ]
    table = sum(tables[1:], start=tables[0]) if tables else None
    rounded = None
    if table is not None:
        # Infinity has no code.
        rounded = quantise(table, bits if np.isfinite(table).all() else 32)
    line = sum(lines[1:], start=lines[0]).astype(np.float32) if lines else None
    return CarriedBias(extent, line, rounded)
