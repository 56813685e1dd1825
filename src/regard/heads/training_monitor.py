"""``monitor(model)``: a few numbers of every head while a model is trained, every few steps.

monitor() → Monitor, for the whole run → a HeadMeasurement in each measured step → rows, a file, a logger
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from regard.checks import check_integer
from regard.errors import DtypeError, RecordingError
from regard.heads.head_measurement import HeadMeasurement
from regard.heads.monitor_file import COLUMNS, NUMBERS, HeadRow, MonitorFile
from regard.interception.model_interception import calls_intercepted
from regard.interception.pipeline import ModuleTracker, uncompiled
from regard.table import Table

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

    >>> import torch
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

    >>> import torch
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True)
    >>> monitored = monitor(model, every=1).open()
    >>> model(torch.randn(1, 5, 8)).square().mean().backward()
    >>> monitored.step()
    >>> monitored.close()
    >>> monitored
    <monitor of TransformerEncoderLayer: 1 step, 2 rows>
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
        count = len({row["step"] for row in self.rows})
        return f"<monitor of {name}: {count} step{'' if count == 1 else 's'}, {len(self.rows)} rows>"

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
