"""``monitor(model)``: a few numbers of every head while a model is trained, every few steps."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from regard import atomic
from regard.checks import check_integer
from regard.errors import ArgumentError, DtypeError, RecordingError
from regard.interception.model_interception import calls_intercepted
from regard.interception.pipeline import ModuleTracker, uncompiled
from regard.interception.steps import CallPlace, InterceptedCall
from regard.kernels import Statistics, attention_statistics
from regard.kernels.inputs import Inputs
from regard.masks import Mask, documents
from regard.table import Table

COLUMNS = ("step", "kind", "layer", "head", "entropy", "score", "first", "gradient", "information")
"""The columns of a row: one head at one step."""

OLDEST = COLUMNS[:8]
"""The columns that every file has; those of earlier versions end here."""

PLACE, NUMBERS = COLUMNS[:4], COLUMNS[4:]
"""The columns that say what is measured, and those that are measured."""

HeadRow = dict[str, Any]
Log = Callable[[dict[str, float]], object]


def monitor(
    model: nn.Module,
    *,
    every: int = 100,
    out: str | Path | None = None,
    log: Log | None = None,
    start: int = 0,
) -> Monitor:
    """Measure every head of a model in every ``every``-th step of its training.

    A step ends when an optimizer of the model's parameters steps, or when :meth:`Monitor.step` is called.
    In a step that is measured, the first forward pass with gradients and its backward pass are seen; all
    other steps run as if there were no monitor. What the model computes does not change.

    ================  ====================================================================================
    ``entropy``       of the weights, in nats, averaged over queries
    ``score``         the greatest score ``max_ij s_ij`` that went into softmax
    ``first``         the weight on the first key, averaged over queries
    ``gradient``      the norm of the gradient that reached the output of the head, ``‖dO‖``
    ``information``   how much a query decides which key is seen: ``H(mean row) − mean H(row)`` of each text,
                      as a share of the greatest possible; 0 if all rows are equal, 1 for one key each
    ================  ====================================================================================

    Only queries on which the loss depends count, so padding does not. Queries and keys of a measured step are
    kept until it ends.

    Args:
        model: any PyTorch module that can be watched.
        every: how many steps from one measurement to the next.
        out: also a CSV file, written step by step.
        log: also any function of a dict, such as ``wandb.log``: called once for each measured step with
            ``{"step": 200, "entropy/cross.1.2": 0.7, …}``.
        start: the number of the first step, for a run that is resumed.

    >>> model = torch.nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with monitor(model, every=2) as monitored:
    ...     for _ in range(3):
    ...         model(torch.randn(1, 5, 8)).square().mean().backward()
    ...         optimizer.step()
    >>> [(row["step"], row["head"]) for row in monitored.rows]
    [(0, 0), (0, 1), (2, 0), (2, 1)]
    """
    if not isinstance(model, nn.Module):
        raise DtypeError(
            "monitor(model) needs a PyTorch module.",
            got="{given}",
            do="Pass the model itself, not a trainer.",
            given=type(model).__name__,
        )
    if log is not None and not callable(log):
        raise DtypeError(
            "log must be a function of a dict of numbers.",
            got="{given}",
            do="Pass print or wandb.log, say.",
            given=type(log).__name__,
        )
    file = None if out is None else MonitorFile(Path(out))
    return Monitor(model, check_integer("every", every), check_integer("start", start, least=0), file, log)


class Monitor:
    """The monitor of a model: a context manager; or ``open()``, ``step()`` after each step, ``close()``.

    >>> model = torch.nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True)
    >>> monitored = monitor(model, every=1).open()
    >>> model(torch.randn(1, 5, 8)).square().mean().backward()
    >>> monitored.step()
    >>> monitored.close()
    >>> monitored
    <monitor of TransformerEncoderLayer: 1 steps, 2 rows>
    """

    def __init__(
        self, model: nn.Module, every: int, start: int, file: MonitorFile | None, log: Log | None
    ) -> None:
        self.model, self.every, self.number = model, every, start
        self.rows: list[HeadRow] = []
        """One row for each head and measured step."""
        self._file, self._log = file, log
        self._parameters = {id(parameter) for parameter in model.parameters()}
        self._by_hand = False
        self._stack: ExitStack | None = None
        self._closed = False
        self._seeing = ExitStack()
        self._measured: HeadMeasurement | None = None

    def __repr__(self) -> str:
        name = type(uncompiled(self.model)).__name__
        return f"<monitor of {name}: {len({row['step'] for row in self.rows})} steps, {len(self.rows)} rows>"

    @property
    def table(self) -> Table:
        """All rows as a table."""
        return Table(COLUMNS, [tuple(row[name] for name in COLUMNS) for row in self.rows])

    # ---- begin and end -------------------------------------------------------------------------

    def __enter__(self) -> Monitor:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, trace
        self._end(complete=error is None)

    def open(self) -> Monitor:
        """Begin; a ``with`` block does it."""
        if self._stack is not None or self._closed:
            raise RecordingError(
                "A monitor can be opened only once.", got="a second time", do="Call monitor(model) again."
            )
        _check_alone(self.model)
        if self._file is not None:
            self._file.begin(self.number)
        with ExitStack() as stack:
            _active.append(self)
            stack.callback(_active.remove, self)
            stack.callback(register_optimizer_step_post_hook(self._stepped).remove)
            stack.callback(self._stop_seeing)
            self._stack = stack
            self._begin_step()
            self._stack = stack.pop_all()
        return self

    def close(self) -> None:
        """End, and leave the model as it was; a ``with`` block does it."""
        self._end(complete=True)

    def _end(self, *, complete: bool) -> None:
        if self._stack is None:
            return
        stack, self._stack, self._closed = self._stack, None, True
        measured, step = self._measured, self.number
        stack.close()
        if complete and measured is not None:
            # A backward pass may have come without a step of the optimizer after it.
            self._write(step, measured)

    # ---- steps ---------------------------------------------------------------------------------

    def step(self) -> None:
        """Mark the end of a training step: for loops whose optimizer is not one of torch's.

        Once called, steps of optimizers are no longer counted.
        """
        if self._stack is None:
            raise RecordingError(
                "A monitor can only count steps while it is open.",
                got="step() of a monitor that is closed" if self._closed else "step() before it was opened",
                do="Use a with block, or call open() first.",
            )
        self._by_hand = True
        self._next_step()

    def _stepped(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        """A step of any optimizer."""
        del args, kwargs
        own = (id(one) in self._parameters for group in optimizer.param_groups for one in group["params"])
        if not self._by_hand and any(own):
            self._next_step()

    def _next_step(self) -> None:
        measured, step = self._measured, self.number
        self._stop_seeing()
        self.number += 1
        if measured is not None:
            self._write(step, measured)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.number % self.every == 0:
            measured = HeadMeasurement()
            tracker = ModuleTracker(self.model, measured)
            self._seeing.enter_context(calls_intercepted(tracker, refuse_hidden, each_pass=True))
            self._measured = measured

    def _stop_seeing(self) -> None:
        if self._measured is not None:
            self._measured.ended = True
        self._measured = None
        self._seeing.close()

    def _write(self, step: int, measured: HeadMeasurement) -> None:
        if not measured.calls:
            if measured.passes:
                raise RecordingError(
                    "A monitored model must call attention.",
                    got="no attention from {model} in step {step}",
                    do="Let it call F.scaled_dot_product_attention, and monitor the model itself, in the "
                    "thread that trains it.",
                    model=type(uncompiled(self.model)).__name__,
                    step=step,
                )
            return
        rows = list(measured.rows(step))
        self.rows += rows
        if self._file is not None:
            self._file.append(rows)
        if self._log is not None:
            self._log({"step": step, **_flat(rows)})


_active: list[Monitor] = []


def _check_alone(model: nn.Module) -> None:
    own = {id(module) for module in model.modules()}
    for other in _active:
        if any(id(module) in own for module in other.model.modules()):
            raise RecordingError(
                "A model can have only one monitor at a time.",
                got="a monitor of {model} inside another",
                do="Use the one that is open, or close it first.",
                model=type(uncompiled(model)).__name__,
            )


def refuse_hidden(part: Any) -> AbstractContextManager[None]:
    """Raise: what cannot be seen cannot be measured."""
    raise RecordingError(
        "A monitored model must call an attention that can be seen.",
        got="{type}, which computes its attention itself",
        do="Let it call F.scaled_dot_product_attention.",
        type=type(part).__name__,
    )


def _flat(rows: list[HeadRow]) -> dict[str, float]:
    """Rows as one dict, by what is measured and then by head, as loggers group them."""
    return {
        f"{name}/{row['kind']}.{row['layer']}.{row['head']}": row[name]
        for row in rows
        for name in NUMBERS
        if row[name] is not None
    }


# ---- what is measured in a step ------------------------------------------------------------------


@dataclass(eq=False)
class MeasuredCall:
    """One call: what its weights are computed from, and the gradient of its output."""

    place: CallPlace
    q: Tensor
    k: Tensor
    mask: Mask
    options: dict[str, Any]  # bias, scale, softcap and sinks
    gradient: Tensor | None = None  # Σ over channels of dO², (batch, head, query)

    @torch.no_grad()
    def rows(self, step: int) -> Iterator[HeadRow]:
        """One row for each head."""
        found = self._statistics()
        sees = found.lse > -torch.inf
        score = found.lse + found.peak.log()  # the greatest weight of a row is exp(s − lse)
        count = sees.sum((0, 2)).clamp(min=1)
        entropy, first = ((x * sees).sum((0, 2)) / count for x in (found.entropy, found.first_weight))
        greatest = score.masked_fill(~sees & ~score.isnan(), -torch.inf).amax((0, 2))
        norm = None if self.gradient is None else self.gradient.sum((0, 2)).sqrt()
        information = _information(found)
        for head in range(found.lse.shape[1]):
            yield {
                "step": step,
                "kind": self.place.kind,
                "layer": self.place.layer,
                "head": head,
                "entropy": float(entropy[head]),
                "score": float(greatest[head]),
                "first": float(first[head]),
                "gradient": None if norm is None else float(norm[head]),
                "information": None if information is None else float(information[head]),
            }

    def _statistics(self) -> Statistics:
        """Those of the queries on which the loss depends; the others see nothing."""
        mask, depends = self.mask, None if self.gradient is None else (self.gradient != 0).any(1)
        # Where no query has a gradient, as with W_O = 0 in all heads, all that see a key count.
        if depends is not None and depends.any() and not depends.all():
            mask = mask & documents(depends.long().cpu(), torch.ones(self.k.shape[2], dtype=torch.long))
        return attention_statistics(self.q, self.k, mask=mask, **self.options)


def _information(found: Statistics) -> Tensor | None:
    """How much the query decides which key is seen, a share for each head; None for texts of one pair.

    ``Σ_j f(mean_i w_ij) − mean_i Σ_j f(w_ij)`` with ``f(w) = −w log w``: the mutual information of query and
    key if queries are equally likely. It is at most the logarithm of the number of queries, and of keys.
    """
    sees = found.lse > -torch.inf
    count = sees.sum(2)  # (batch, head)
    most = torch.minimum(count, found.visible.amax(2)).to(found.entropy.dtype)
    counted = most > 1
    if not counted.any():
        return None
    count = count.clamp(min=1)
    together = torch.special.entr(found.received / count[..., None]).sum(2)
    alone = (found.entropy * sees).sum(2) / count
    share = torch.where(counted, (together - alone) / most.clamp(min=2).log(), 0.0)
    return share.sum(0) / counted.sum(0).clamp(min=1)


@dataclass(eq=False)
class HeadMeasurement:
    """Measures the calls of one step; to interception, an editor that changes nothing.

    So the output is computed as it would be without it, dropout included, and the statistics in a pass of
    their own.
    """

    calls: dict[tuple[str, int], MeasuredCall] = field(default_factory=dict)
    passes: int = 0  # with gradients
    ended: bool = False

    def begin(self) -> None:
        """A forward pass begins."""
        self.passes += torch.is_grad_enabled()

    def edit_inputs(self, place: CallPlace, call: InterceptedCall) -> InterceptedCall:
        """The call itself."""
        del place
        return call

    def edit_output(self, place: CallPlace, call: InterceptedCall, output: Tensor) -> Tensor:
        """The output itself; its gradient is waited for."""
        known = place.name, place.occurrence
        # A second pass in the same step, or one that checkpointing repeats, is not measured again.
        if not output.requires_grad or known in self.calls:
            return output
        self.calls[known] = measured = _measured(place, call.inputs)

        def receive(gradient: Tensor) -> None:
            if not self.ended and measured.gradient is None:
                measured.gradient = gradient.detach().float().square().sum(-1)

        output.register_hook(receive)
        return output

    def rows(self, step: int) -> Iterator[HeadRow]:
        """One row for each head, in the order of the calls."""
        for call in self.calls.values():
            yield from call.rows(step)


def _measured(place: CallPlace, inputs: Inputs) -> MeasuredCall:
    """A call without its graph; a parameter is copied before the optimizer changes it."""
    options = {
        "bias": None if inputs.bias is None else inputs.bias.detach(),
        "scale": inputs.scale,
        "softcap": inputs.softcap,
        "sinks": None if inputs.sinks is None else inputs.sinks.detach().clone(),
    }
    return MeasuredCall(place, inputs.q.detach(), inputs.k.detach(), inputs.mask, options)


# ---- the file ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MonitorFile:
    """A CSV file that grows by a few lines in every measured step."""

    path: Path

    def begin(self, start: int) -> None:
        """Write the header. Of an earlier file keep the steps before ``start``, whose lines are complete."""
        kept = [row for row in self._rows() if row["step"] < start] if start else []
        atomic.write_text(self.path, _csv([list(COLUMNS)]) + _csv(map(_cells, kept)))

    def append(self, rows: list[HeadRow]) -> None:
        """Add the rows of a step."""
        atomic.append_text(self.path, _csv(map(_cells, rows)))

    def _rows(self) -> list[HeadRow]:
        return read_monitor(self.path) if self.path.exists() else []


def read_monitor(path: str | Path) -> list[HeadRow]:
    """The rows in a file that a monitor wrote; the last line may be cut off.

    >>> file = getfixture("tmp_path") / "monitor.csv"
    >>> with monitor(torch.nn.Linear(2, 2), out=file):
    ...     pass
    >>> read_monitor(file)
    []
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        whole, _, _ = file.read().rpartition("\n")
    lines = csv.reader(io.StringIO(whole))
    found = next(lines, [])
    if tuple(found) not in (COLUMNS, OLDEST):
        raise ArgumentError(
            "A file of a monitor must have the columns {columns}.",
            got="{found} in {path}",
            do="Pass a file that regard.monitor(model, out=…) or regard train wrote.",
            columns=", ".join(OLDEST),
            found=", ".join(found)[:60] or "nothing",
            path=path,
        )
    try:
        return [_read(line, len(found)) for line in lines]
    except (ValueError, IndexError) as error:
        raise ArgumentError(
            "Every line of the file of a monitor must have a step, a head and its numbers.",
            got="something else in {path}",
            do="Remove the line, or move the file away.",
            path=path,
        ) from error


def _read(line: list[str], columns: int) -> HeadRow:
    step, kind, layer, head, *numbers = line
    values = [float(number) if number else None for number in numbers]
    # Files of earlier versions have fewer columns.
    values += [None] * (len(COLUMNS) - columns)
    return dict(zip(COLUMNS, (int(step), kind, int(layer), int(head), *values), strict=True))


def _cells(row: HeadRow) -> list[object]:
    return [f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in COLUMNS]


def _csv(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
