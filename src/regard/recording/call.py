"""One attention call of a model: what defines its whole matrix, and nothing more.

With ``s_ij = cap(scale · q_i · k_j) + bias_ij`` the weight of key j for query i is
``exp(s_ij − lse_i)``. So Q, K and one number per row are the matrix, and any part of it is
computed on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from regard.errors import ArgumentError, RecordingError
from regard.interception.steps import Kind
from regard.kernels import Statistics, attention_statistics
from regard.kernels.biases import Bias
from regard.kernels.plain_kernel import Rules, full_precision, scores_of
from regard.masks import Mask, everything
from regard.masks.extent import Extent, Integers
from regard.recording.kept_statistics import fewer_top, statistics_of_weights
from regard.recording.regions import mass_of_scores, mass_of_weights, output_without

Positions = slice | int | Sequence[int]
"""Some positions along an axis."""


@dataclass(frozen=True, eq=False)
class Call:
    """One attention call: Q, K and lse, with everything else that makes the scores.

    ``kept`` holds statistics that were taken in place of Q and K. ``own_weights`` holds the dense
    weights that a model returned itself where its Q and K could not be intercepted.

    >>> q = k = torch.eye(2)[None, None]  # (batch, head, length, channel)
    >>> lse = torch.logsumexp(torch.eye(2), -1)[None, None]
    >>> call = Call("attention", "encoder", 0, q, k, lse, scale=1.0)
    >>> call.weights(head=0)
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    >>> call.weights(head=0, rows=1, columns=slice(0, 1))
    tensor([[0.2689]])
    """

    name: str
    kind: Kind
    layer: int
    q: Tensor | None = None  # (batch, head, query, channel)
    k: Tensor | None = None  # (batch, key head, key, channel)
    lse: Tensor | None = None  # (batch, head, query)
    v: Tensor | None = None  # (batch, key head, key, value channel)
    mask: Mask = field(default_factory=everything)
    bias: Bias | None = None
    scale: float = 1.0
    softcap: float | None = None
    sinks: Tensor | None = None  # (head,)
    run: int = 0
    numbers: tuple[int, ...] | None = None
    kept: Statistics | None = None
    own_weights: Tensor | None = None  # (batch, head, query, key)

    def __repr__(self) -> str:
        return (
            f"<{self.kind} {self.name!r}, layer {self.layer}: {self.batch} × {self.heads} heads, "
            f"{self.queries} queries × {self.keys} keys{', dense' if self.dense else ''}>"
        )

    # ---- sizes ---------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape that the matrix would have: ``(batch, head, query, key)``."""
        if self.own_weights is not None:
            batch, heads, queries, keys = self.own_weights.shape
        elif self.kept is not None:
            (batch, heads, queries), keys = self.kept.lse.shape, self.kept.received.shape[-1]
        else:
            assert self.q is not None
            assert self.k is not None
            (batch, heads, queries, _), keys = self.q.shape, self.k.shape[2]
        return batch, heads, queries, keys

    @property
    def batch(self) -> int:
        """How many sequences went through together."""
        return self.shape[0]

    @property
    def heads(self) -> int:
        """How many query heads were recorded."""
        return self.shape[1]

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return self.shape[2]

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return self.shape[3]

    @property
    def extent(self) -> Extent:
        """Queries and keys; the last query is at the last key."""
        return Extent(*self.shape[2:])

    @property
    def head_numbers(self) -> tuple[int, ...]:
        """The model's numbers of the recorded heads: all of them unless ``heads=`` chose some."""
        return tuple(range(self.heads)) if self.numbers is None else self.numbers

    @property
    def dense(self) -> bool:
        """Whether this holds a dense matrix that the model gave, because it hides its Q and K."""
        return self.own_weights is not None

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    def tensors(self) -> dict[str, Tensor]:
        """The large tensors of the call by name."""
        found = {name: getattr(self, name) for name in ("q", "k", "v", "lse", "sinks", "own_weights")}
        if self.kept is not None:
            found |= {f"kept.{name}": value for name, value in vars(self.kept).items()}
        return {name: value for name, value in found.items() if value is not None}

    # ---- what it shows -------------------------------------------------------------------------

    def weights(
        self,
        head: int | None,
        rows: Positions = slice(None),
        columns: Positions = slice(None),
        batch: int = 0,
    ) -> Tensor:
        """The weights of one head, ``(rows, columns)``, exactly; nothing else is computed.

        ``head`` is the model's number of the head; None means every recorded head, and gives
        ``(head, rows, columns)``. ``rows`` and ``columns`` are slices, single positions or lists of
        them. The result has at least float32.
        """
        if head is None:
            return torch.stack([self.weights(one, rows, columns, batch) for one in self.head_numbers])
        index = self._index_of(head)
        self._check_batch(batch)
        i, j = _chosen(rows, self.queries, "rows"), _chosen(columns, self.keys, "columns")
        if self.own_weights is not None:
            dense = self.own_weights[batch, index]
            return dense[torch.from_numpy(i)][:, torch.from_numpy(j)].to(_wide(dense))
        if self.q is None or self.k is None or self.lse is None:
            raise RecordingError(
                "Weights need Q and K, and {name} kept its statistics only.",
                do="Record with watch(model) instead of watch(model, statistics=True).",
                name=self.name,
            )
        at_q, at_k = (torch.from_numpy(x).to(self.q.device) for x in (i, j))
        key_head = index // (self.heads // self.k.shape[1])
        q, k = _pick(self.q[batch, index], rows, at_q), _pick(self.k[batch, key_head], columns, at_k)
        wide = _wide(q)
        with full_precision(q):
            scores, _ = scores_of(
                q.to(wide), k.to(wide), self.bias_at(batch, index, i, j), Rules(self.scale, self.softcap)
            )
        lse = self.lse[batch, index][at_q].to(wide)[:, None]
        # A query that sees nothing has lse −inf; any finite number keeps its row free of NaN.
        weights = torch.exp(scores - torch.where(lse == -torch.inf, 0.0, lse))
        allowed = self.mask.select((batch, index)).evaluate(self.extent, i + self.extent.offset, j)
        if allowed.all():
            return weights
        return weights.masked_fill(~torch.from_numpy(allowed).to(weights.device), 0.0)

    def statistics(self, top: int | None = None) -> Statistics:
        """Entropy, received attention and the others of every query and key, in one pass.

        The definitions stand in ``docs/statistics.md``; ``top`` asks for the k greatest weights too.
        By default there are as many as ``watch(model, statistics=True, top=…)`` kept, otherwise none.
        """
        if self.kept is not None:
            return self.kept if top is None else fewer_top(self.kept, top, self.name)
        top = 0 if top is None else top
        if self.own_weights is not None:
            return statistics_of_weights(self.own_weights, top)
        assert self.q is not None
        assert self.k is not None
        return attention_statistics(
            self.q,
            self.k,
            mask=self.mask,
            bias=self.bias,
            scale=self.scale,
            softcap=self.softcap,
            sinks=self.sinks,
            top=top,
        )

    def mass(self, region: object) -> Tensor:
        """The weight that each query gives to a region of the matrix, ``(batch, head, query)``.

        ``Σ_{j∈M} w_ij = exp(lse_i(mask & M) − lse_i)``: one pass over the pairs of the region; no weight is
        computed. ``region`` is a mask, such as ``masks.prefix(4)``, or a bool tensor.

        >>> from regard import masks
        >>> q = k = torch.zeros(1, 1, 4, 2)
        >>> Call("attention", "encoder", 0, q, k, torch.full((1, 1, 4), 4.0).log()).mass(masks.prefix(1))
        tensor([[[0.2500, 0.2500, 0.2500, 0.2500]]])
        """
        if self.own_weights is not None:
            return mass_of_weights(self.own_weights, region)
        if self.q is None or self.k is None or self.lse is None:
            raise RecordingError(
                "The mass of a region needs Q and K, and {name} kept its statistics only.",
                do="Record with watch(model) instead of watch(model, statistics=True).",
                name=self.name,
            )
        rules = {"mask": self.mask, "bias": self.bias, "scale": self.scale, "softcap": self.softcap}
        return mass_of_scores(self.q, self.k, self.lse, region, **rules)  # type: ignore[arg-type]

    def without(self, region: object) -> Tensor:
        """The output of each head if nobody could see the region, ``(batch, head, query, channel)``.

        ``(O_i − Σ_{j∈M} w_ij v_j) / (1 − mass_i)``: the direct effect of taking keys away, without a second
        run of the model. It needs V, and ``masks.nothing()`` gives the output itself.
        """
        if self.q is None or self.k is None or self.v is None:
            raise RecordingError(
                "The output without a region needs Q, K and V of {name}.",
                got="its weights alone" if self.dense else "a recording without them",
                do="Record with watch(model, values=True).",
                name=self.name,
            )
        rules = {"mask": self.mask, "bias": self.bias, "scale": self.scale, "softcap": self.softcap}
        return output_without(self.q, self.k, self.v, region, sinks=self.sinks, **rules)  # type: ignore[arg-type]

    def summary(self, top: int) -> Call:
        """The call with its statistics in place of what they were computed from."""
        if self.kept is not None:
            return self
        kept = self.statistics(top)
        return replace(self, q=None, k=None, v=None, lse=None, bias=None, own_weights=None, kept=kept)

    # ---- checks and parts ----------------------------------------------------------------------

    def _index_of(self, head: int) -> int:
        if head not in self.head_numbers:
            known = self.head_numbers
            said = f"0 … {len(known) - 1}" if known == tuple(range(len(known))) else f"{list(known)}"
            raise ArgumentError(
                "head is one of the recorded heads of {name} ({said}).",
                got="head = {head!r}",
                do="Choose one of them, or record it with heads=.",
                name=self.name,
                said=said,
                head=head,
            )
        return self.head_numbers.index(head)

    def _check_batch(self, batch: int) -> None:
        if isinstance(batch, bool) or not isinstance(batch, int) or not 0 <= batch < self.batch:
            raise ArgumentError(
                "batch is one of the recorded sequences (0 … {batch}).",
                got="batch = {batch_2!r}",
                do="Count from 0.",
                batch=self.batch - 1,
                batch_2=batch,
            )

    def bias_at(self, batch: int, head: int, i: Integers, j: Integers) -> Tensor | None:
        """The bias of these queries and keys, for the head at this index among the recorded ones."""
        if self.bias is None or self.q is None:
            return None
        tables = self.bias.narrow(self.bias.tables, slice(batch, batch + 1), slice(head, head + 1))
        q, k = (torch.from_numpy(x).to(self.q.device) for x in (i + self.extent.offset, j))
        return self.bias.tile(tables, q, k, self.extent)[0, 0].to(_wide(self.q))


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _pick(tensor: Tensor, part: Positions, index: Tensor) -> Tensor:
    """Some rows; a view where a slice was asked for."""
    return tensor[part] if isinstance(part, slice) else tensor[index]


def _chosen(part: Positions, length: int, name: str) -> Integers:
    """The positions meant, each from 0 to length − 1."""
    if isinstance(part, slice):
        return np.arange(length)[part]
    try:
        chosen = np.atleast_1d(np.asarray(part))
        found: Integers = np.arange(length)[chosen if chosen.size else chosen.astype(np.int64)]
    except IndexError:
        raise ArgumentError(
            "{name} are a slice or positions below {length}.",
            got="{part!r}",
            do="Count from 0.",
            name=name,
            length=length,
            part=part,
        ) from None
    return found
