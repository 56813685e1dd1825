"""A call with Q, K and lse: its whole matrix, of which any part is computed on demand.

    ScoredCall and some rows and columns → weights() → Tensor (rows, columns)

With ``s_ij = cap(scale · q_i · k_j) + bias_ij`` the weight of key j for query i is ``exp(s_ij − lse_i)``.
So Q, K and one number per row are the matrix. The weight on a set of keys M needs no weights at all:
it is ``exp(lse_i(M) − lse_i)``, where lse(M) is the log-sum-exp over the keys of M alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import RecordingError, ShapeError
from regard.interception.call_types import Kind  # noqa: F401 - the inherited fields are documented here
from regard.kernels import Statistics, attention_statistics, attention_with_lse
from regard.kernels.bias import WHOLE, Bias
from regard.kernels.plain_kernel import MAX_SCORES, ScoreOptions, scores_of, weights_of
from regard.kernels.precision import full_precision
from regard.masks import Mask, padding  # noqa: F401 - the inherited fields are documented here
from regard.masks.extent import Integers
from regard.masks.mask import MaskLike
from regard.recording.call import Block, Call, Positions, part_of, positions, widened, widened_on_cpu
from regard.recording.summary_call import SummaryCall

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False, repr=False)
class ScoredCall(Call):
    """One attention call as Q, K and lse, with everything else that makes the scores.

    >>> q = k = torch.eye(2)[None, None]  # (batch, head, length, channel)
    >>> lse = torch.logsumexp(torch.eye(2), -1)[None, None]
    >>> call = ScoredCall("attention", "encoder", 0, q, k, lse, scale=1.0)
    >>> call.weights(head=0)
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    >>> call.weights(head=0, rows=1, columns=slice(0, 1))
    tensor([[0.2689]])
    """

    q: Tensor  # (batch, head, query, channel)
    k: Tensor  # (batch, key head, key, channel)
    lse: Tensor  # (batch, head, query)
    v: Tensor | None = None  # (batch, key head, key, value channel)
    bias: Bias | None = field(default=None, kw_only=True)
    scale: float = field(default=1.0, kw_only=True)
    softcap: float | None = field(default=None, kw_only=True)
    sinks: Tensor | None = field(default=None, kw_only=True)  # (head,)
    output_gradient: Tensor | None = field(default=None, kw_only=True)  # dO (batch, head, query, v. channel)
    projection: Tensor | None = field(default=None, kw_only=True)  # W_O (head, value channel, width)
    projection_bias: Tensor | None = field(default=None, kw_only=True)  # (width,)
    residual: Tensor | None = field(default=None, kw_only=True)  # x (batch, query, width)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape that the matrix would have: ``(batch, head, query, key)``."""
        batch, heads, queries, _ = self.q.shape
        return batch, heads, queries, self.k.shape[2]

    def tensors(self) -> dict[str, Tensor]:
        """The large tensors of the call, by the names that they have in a file."""
        found = {
            "q": self.q,
            "k": self.k,
            "v": self.v,
            "lse": self.lse,
            "sinks": self.sinks,
            "output_gradient": self.output_gradient,
            "projection": self.projection,
            "projection_bias": self.projection_bias,
            "residual": self.residual,
        }
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    @property
    def values(self) -> Tensor:
        """V, ``(batch, key head, key, value channel)``; raises RecordingError if it was not recorded."""
        if self.v is None:
            raise RecordingError(
                "This needs V, but {name} was recorded without it.",
                do="Record with watch(model, values=True).",
                name=self.name,
            )
        return self.v

    @property
    def has_gradient(self) -> bool:
        """Whether a backward pass was recorded."""
        return self.output_gradient is not None

    @property
    def gradients(self) -> Tensor:
        """dO, the gradient of the output ``(batch, head, query, value channel)``; raises RecordingError if
        no backward pass was recorded."""
        if self.output_gradient is None:
            raise RecordingError(
                "This needs the gradient that reached {name}, but no backward pass was recorded.",
                do="Record with watch(model, gradients=True), and call loss.backward() inside the block.",
                name=self.name,
            )
        return self.output_gradient

    @property
    def projections(self) -> Tensor:
        """W_O of each head, ``(head, value channel, width)``; raises RecordingError if it is not there."""
        if self.projection is None:
            raise RecordingError(
                "This needs the output projection of {name}, which was not recorded.",
                do="Record with watch(model, projections=True), or give it: projections={{{name!r}: …}}.",
                name=self.name,
            )
        return self.projection

    def with_zero_gradient(self) -> Self:
        """The call with a gradient of 0, unless it has one; it takes no memory."""
        if self.has_gradient:
            return self
        v = self.values
        return replace(self, output_gradient=v.new_zeros(()).expand(*self.q.shape[:3], v.shape[-1]))

    def key_head(self, index: int) -> int:
        """The key head of the query head at this index."""
        return index // (self.heads // self.k.shape[1])

    # ---- what it shows -------------------------------------------------------------------------

    def _block(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
        q = widened(_rows(self.q[batch, index], i))
        k = widened(_rows(self.k[batch, self.key_head(index)], j))
        with full_precision(q):
            options = ScoreOptions(self.scale, self.softcap)
            scores, _ = scores_of(q, k, self.bias_at(batch, index, i, j), options)
        weights = weights_of(scores, _rows(self.lse[batch, index], i).to(q.dtype)[:, None])
        allowed = self.mask.select((batch, index)).evaluate(self.extent, i + self.extent.offset, j)
        if allowed.all():
            return weights
        return weights.masked_fill(~torch.from_numpy(allowed).to(weights.device), 0.0)

    def bias_at(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor | None:
        """The bias of these queries and keys, for the head at this index among the recorded ones."""
        if self.bias is None:
            return None
        tables = self.bias.narrow(self.bias.tables, slice(batch, batch + 1), slice(index, index + 1))
        q, k = (torch.from_numpy(x).to(self.q.device) for x in (i + self.extent.offset, j))
        dtype = torch.promote_types(self.q.dtype, torch.float32)
        return self.bias.tile(tables, q, k, self.extent)[0, 0].to(dtype)

    @torch.no_grad()
    def output(self) -> Tensor:
        """The output of every head, ``O_i = Σ_j w_ij v_j``, ``(batch, head, query, value channel)``."""
        tensors = self._wide_with(self.values)
        return attention_with_lse(*tensors, mask=self.mask, **self._options(), sinks=self.sinks)[0]

    # ---- gradients and contributions -----------------------------------------------------------

    def contribution_block(self, direction: Tensor) -> Block:
        """What computes ``w_ij · (v_j W_O) · u`` for some queries and keys."""
        width = self.projections.shape[-1]
        if not isinstance(direction, Tensor) or direction.shape != (width,):
            raise ShapeError(
                "direction must be a tensor as wide as the layer's output (width = {width}).",
                got="{given}",
                do="Pass a row of the unembedding, say.",
                width=width,
                given=tuple(direction.shape) if isinstance(direction, Tensor) else type(direction).__name__,
            )

        def block(batch: int, index: int, i: Integers, j: Integers) -> Tensor:
            weights = self._block(batch, index, i, j)
            given = self.given_by_keys(direction)[batch, index]  # (key,)
            return weights * _rows(given, j).to(weights)

        return block

    def given_by_keys(self, direction: Tensor) -> Tensor:
        """``(v_j W_O) · u``: what each key has to give to a direction, ``(batch, head, key)``."""
        wide = torch.promote_types(widened(self.values).dtype, widened(self.projections).dtype)
        inside = self.projections.to(wide) @ direction.to(self.q.device, wide)  # (head, channel)
        group = self.heads // self.values.shape[1]
        v = self.values.to(wide).repeat_interleave(group, 1)
        return torch.einsum("bhkc,hc->bhk", v, inside)

    def gradient_block(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
        """``∂L/∂w_ij = dO_i · v_j`` for some queries and keys."""
        given = widened(_rows(self.gradients[batch, index], i))
        v = widened(_rows(self.values[batch, self.key_head(index)], j))
        wide = torch.promote_types(given.dtype, v.dtype)
        with full_precision(given):
            return given.to(wide) @ v.to(wide).T

    def product_block(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
        """``w_ij · ∂L/∂w_ij`` for some queries and keys."""
        return self.gradient_block(batch, index, i, j) * self._block(batch, index, i, j)

    def score_gradient_block(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
        """``∂L/∂s_ij = w_ij (dO_i · v_j − dO_i · O_i)`` for some queries and keys."""
        gradient = self.gradient_block(batch, index, i, j)
        return self._block(batch, index, i, j) * (gradient - self._mean_gradient(batch, index, i)[:, None])

    def _mean_gradient(self, batch: int, index: int, i: Integers) -> Tensor:
        """``dO_i · O_i = Σ_j w_ij ∂L/∂w_ij`` of some rows, a few of them at a time."""
        keys = np.arange(self.keys)
        return torch.cat([self.product_block(batch, index, rows, keys).sum(-1) for rows in self.row_steps(i)])

    # ---- the output of the layer -----------------------------------------------------------------

    @property
    def has_all_heads(self) -> bool:
        """Whether every head of the layer was recorded, so that their outputs add up to that of the layer."""
        return self.numbers is None

    @property
    def residuals(self) -> Tensor:
        """x, to which the output is added, ``(batch, query, width)``; raises RecordingError without it."""
        if self.residual is None:
            raise RecordingError(
                "This needs what the output of {name} is added to, which was not recorded or not found.",
                do="Record with watch(model, projections=True). It is found where a block computes x + y "
                "before its next norm, with nothing else in the sum and y as the projection returned it.",
                name=self.name,
            )
        return self.residual

    def projected_block(self, batch: int, index: int, i: Integers, j: Integers) -> Tensor:
        """``O_i W_O`` of some rows of the head at this index, ``(rows, width)``."""
        v, weight = widened(self.values[batch, self.key_head(index)]), self.projections[index]
        outputs = torch.cat([self._block(batch, index, rows, j) @ v for rows in self.row_steps(i)])
        wide = torch.promote_types(outputs.dtype, widened(weight).dtype)
        with full_precision(outputs):
            return outputs.to(wide) @ weight.to(wide)

    def layer_output(self, rows: Positions = slice(None), batch: int = 0) -> Tensor:
        """``x_i + Σ_h O_i W_O + b``: what the attention of the layer leaves behind, ``(rows, width)``."""
        if not self.has_all_heads:
            raise RecordingError(
                "The output of a layer needs all of its heads.",
                got="heads {heads} of {name}",
                do="Record without heads=.",
                heads=", ".join(map(str, self.head_numbers)),
                name=self.name,
            )
        residual = self.residuals
        total = self.projected(None, rows, batch).sum(0)
        if self.projection_bias is not None:
            total = total + self.projection_bias.to(total)
        chosen = torch.from_numpy(positions(rows, self.queries, "rows"))
        x = residual[batch][chosen.to(residual.device)]
        return total + x.to(torch.promote_types(total.dtype, x.dtype))

    def row_steps(self, i: Integers) -> list[Integers]:
        """Rows, in pieces whose weights take little memory."""
        step = max(1, MAX_SCORES // max(1, self.keys))
        return [i[start : start + step] for start in range(0, max(1, len(i)), step)]

    # ---- statistics and regions ----------------------------------------------------------------

    def statistics(self, top: int | None = None, *, values: Tensor | None = None) -> Statistics:
        """Entropy, received attention and the other statistics of every query and key, in one pass."""
        options = self._options() | {"sinks": self.sinks, "top": 0 if top is None else top}
        if values is None:
            return attention_statistics(self.q, self.k, mask=self.mask, **options)
        # A sum of weights is as exact as the weights.
        return attention_statistics(*self._wide_with(values), mask=self.mask, **options)

    @torch.no_grad()
    def mass(self, mask: MaskLike) -> Tensor:
        """The weight on the keys of a region, ``exp(lse(M) − lse)``, ``(batch, head, query)``.

        >>> from regard import masks
        >>> q = k = torch.zeros(1, 1, 4, 8)  # every weight is 1/4
        >>> call = ScoredCall("attention", "encoder", 0, q, k, torch.full((1, 1, 4), 4.0).log())
        >>> call.mass(masks.prefix(2))
        tensor([[[0.5000, 0.5000, 0.5000, 0.5000]]])
        """
        return self._region(self.k, mask)[1]

    @torch.no_grad()
    def weighted(self, values: Tensor, mask: MaskLike) -> Tensor:
        """``Σ_{j∈M} w_ij x_j``, ``(batch, head, query, channel)``, for the keys of a region."""
        average, mass = self._region(values, mask)
        return average * mass[..., None]

    @torch.no_grad()
    def without(self, mask: MaskLike) -> Tensor:
        """The output as if the keys of a region were not there, ``(batch, head, query, channel)``.

        Computed as attention over the other keys: the difference ``O − Σ_{j∈M} w_ij v_j`` would lose all
        digits where a region has nearly all the weight.
        """
        others = self.mask & ~self.region(mask)
        tensors = self._wide_with(self.values)
        return attention_with_lse(*tensors, mask=others, **self._options(), sinks=self.sinks)[0]

    def _region(self, values: Tensor, mask: MaskLike) -> tuple[Tensor, Tensor]:
        """Softmax over the keys of a region alone, applied to values; and the weight on the region."""
        both = self.mask & self.region(mask)
        average, lse = attention_with_lse(*self._wide_with(values), mask=both, **self._options())
        return average, weights_of(lse, self.lse.to(lse))

    def _options(self) -> dict[str, Any]:
        return {"bias": self.bias, "scale": self.scale, "softcap": self.softcap}

    def _wide_with(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Q, K and some values for each key head, in at least float32."""
        q, k = widened(self.q), widened(self.k)
        return q, k, values.to(q).expand(*k.shape[:3], -1)

    # ---- other calls -----------------------------------------------------------------------------

    def scored(self) -> ScoredCall:
        """The call itself."""
        return self

    def summary(self, top: int) -> SummaryCall:
        """The call with its statistics in place of Q and K."""
        return SummaryCall.of(self, self.statistics(top))

    def select(self, batch: int | None = None, heads: Sequence[int] | None = None) -> Self:
        """One sequence, or some heads, each with its own key head; None means all."""
        key_heads = None if heads is None else [self.key_head(index) for index in heads]
        return replace(
            self,
            q=part_of(self.q, batch, heads),
            k=part_of(self.k, batch, key_heads),
            v=None if self.v is None else part_of(self.v, batch, key_heads),
            lse=part_of(self.lse, batch, heads),
            output_gradient=None
            if self.output_gradient is None
            else part_of(self.output_gradient, batch, heads),
            projection=self.projection
            if self.projection is None or heads is None
            else self.projection[list(heads)],
            residual=self.residual if self.residual is None or batch is None else self.residual[batch, None],
            bias=None if self.bias is None else _selected_bias(self.bias, batch, heads),
            sinks=self.sinks if self.sinks is None or heads is None else self.sinks[list(heads)],
            **self._selected(batch, heads),
        )

    def on_cpu(self) -> Self:
        """The call on the CPU, detached and in at least float32, as weights are computed."""
        changed: dict[str, Any] = {name: widened_on_cpu(tensor) for name, tensor in self.tensors().items()}
        if self.bias is not None:
            # Its dtype stays: a bias by distance is rounded when its values are computed.
            changed["bias"] = self.bias.with_tables(tuple(x.detach().cpu() for x in self.bias.tables))
        return replace(self, **changed)

    def hide_queries(self, visible: Tensor) -> Self:
        """The call in which only the queries that are True in ``visible (batch, query)`` see anything."""
        return replace(self, mask=self.mask & padding(visible).T)


def _rows(tensor: Tensor, index: Integers) -> Tensor:
    """Some rows; a view where they are adjacent."""
    if len(index) and (np.diff(index) == 1).all():
        return tensor[int(index[0]) : int(index[-1]) + 1]
    return tensor[torch.from_numpy(index).to(tensor.device)]


def _selected_bias(bias: Bias, batch: int | None, heads: Sequence[int] | None) -> Bias:
    return bias.select(
        batch=WHOLE if batch is None else slice(batch, batch + 1),
        heads=WHOLE if heads is None else torch.tensor(list(heads)),
    )
