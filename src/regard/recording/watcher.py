"""``watch(model)``: record every attention call of a model while it runs.

a model and options → watch() → Watch, a context manager → Recording
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType

import torch
from torch import Tensor, nn

from regard.checks import check_integer, check_integers
from regard.errors import ArgumentError, DtypeError, RecordingError
from regard.interception.dense_fallback import dense_weights_recorded
from regard.interception.model_interception import calls_intercepted
from regard.interception.pipeline import ModuleTracker, uncompiled
from regard.kernels.precision import FLOATS
from regard.recording.call import Call
from regard.recording.memory_estimate import known_layers
from regard.recording.output_projection import OutputProjections
from regard.recording.recorder import CallForwarder, Recorder, raise_unknown_layers
from regard.recording.recording import Recording
from regard.recording.residual_stream import ResidualStream
from regard.recording.watch_options import WatchOptions


def watch(
    model: nn.Module,
    *,
    layers: int | Sequence[int] | None = None,
    heads: int | Sequence[int] | None = None,
    statistics: bool = False,
    top: int = 0,
    values: bool = False,
    gradients: bool = False,
    projections: bool | Mapping[str, nn.Module | Tensor] = False,
    dtype: torch.dtype | None = None,
) -> Watch:
    """Record what every head of ``model`` attends to, in a ``with`` block; the matrix is never built.

    Works with transformers models, with ``torch.nn`` and with every model that calls
    ``F.scaled_dot_product_attention``. The output of the model does not change.

    Args:
        model: any PyTorch module.
        layers: record only these layers of each kind (encoder, decoder, cross), counted from 0.
        heads: record only these heads.
        statistics: keep the statistics of each call and drop Q and K.
        top: with ``statistics``, how many of the greatest weights of each row to keep.
        values: also keep V.
        gradients: also keep V and the gradient that reaches the output of each head, from the backward
            passes inside the block; several add up.
        projections: also keep V, each head's part of the output projection and its bias, where it is found
            (or name it, as in ``{"layers.0.attention": linear}``), and what the layer adds that to.
        dtype: keep Q, K, V and gradients in this dtype; by default that of the model.

    >>> import torch, regard
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    >>> x = torch.randn(1, 5, 16)
    >>> with regard.watch(model) as seen:
    ...     _ = model(x, x, x)
    >>> seen[0]
    <encoder 'MultiheadAttention', layer 0: 1 × 2 heads, 5 queries × 5 keys>
    """
    if not isinstance(model, nn.Module):
        raise DtypeError(
            "watch(model) needs a PyTorch module.",
            got="{given}",
            do="Pass the model itself, not a pipeline or its output.",
            given=type(model).__name__,
        )
    if dtype is not None and dtype not in FLOATS:
        raise DtypeError(
            "Q and K must be kept as float64, float32, float16 or bfloat16.",
            got="dtype = {dtype}",
            do="Choose one.",
            dtype=dtype,
        )
    if top and not statistics:
        raise ArgumentError(
            "top needs watch(model, statistics=True).",
            got="top = {top}, statistics = False",
            do="Ask later: seen[0].statistics(top=…).",
            top=top,
        )
    if statistics and (gradients or projections):
        raise ArgumentError(
            "Gradients and projections need Q, K and V, which watch(model, statistics=True) drops.",
            got="statistics = True",
            do="Omit statistics=True; seen[0].statistics() computes them on demand.",
        )
    known = None
    if projections:
        known = OutputProjections(model, projections if isinstance(projections, Mapping) else None)
    options = WatchOptions(
        _numbers("layers", layers),
        _numbers("heads", heads),
        statistics,
        check_integer("top", top, least=0, example=5),
        bool(values or gradients or projections),
        dtype,
        gradients,
        known,
    )
    _check_layers(model, options)
    return Watch(model, Recorder(options))


def listen(
    model: nn.Module, receive: Callable[[Call], None], *, layers: int | Sequence[int] | None = None
) -> Watch:
    """Like :func:`watch`, but pass every call to ``receive`` at once and keep none.

    >>> import torch
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    >>> x = torch.randn(1, 5, 16)
    >>> with listen(model, print):
    ...     _ = model(x, x, x)
    <encoder 'MultiheadAttention', layer 0: 1 × 2 heads, 5 queries × 5 keys>
    """
    options = WatchOptions(_numbers("layers", layers))
    _check_layers(model, options)
    return Watch(model, CallForwarder(options, receive))


def _check_layers(model: nn.Module, options: WatchOptions) -> None:
    known = known_layers(model) if options.layers else None
    missing = [layer for layer in options.layers or () if known is not None and layer >= known]
    if missing and known is not None:
        raise_unknown_layers(missing, known)


def _numbers(name: str, given: int | Sequence[int] | None) -> tuple[int, ...] | None:
    return None if given is None else tuple(sorted(set(check_integers(name, given))))


class Watch:
    """The context manager of a watch, entered once; it gives the recording."""

    def __init__(self, model: nn.Module, recorder: Recorder) -> None:
        self._model = model
        self._recorder = recorder
        self._recording = Recording(type(uncompiled(model)).__name__, recorder=self._recorder)
        self._stack: ExitStack | None = None

    def __enter__(self) -> Recording:
        if self._stack is not None or self._recording.closed:
            raise RecordingError(
                "A watch can be entered only once; its recording is closed when the block ends.",
                got="a second with block",
                do="Call watch(model) again.",
            )
        with ExitStack() as stack:
            tracker = ModuleTracker(self._model, self._recorder)
            # A part that hides its Q and K is asked for its dense weights.
            fallback = partial(dense_weights_recorded, tracker=tracker)
            stack.enter_context(calls_intercepted(tracker, fallback))
            if self._recorder.options.projections is not None:
                residuals = ResidualStream(self._model, self._recorder.options.projections)
                stack.enter_context(residuals.followed())
                self._recorder.residuals = residuals
            self._stack = stack.pop_all()
        return self._recording

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stack is not None
        try:
            self._stack.__exit__(kind, error, trace)
        finally:
            self._recorder.residuals = None
            self._recorder.end_gradients()
            self._recording.close()
        if error is not None:
            return
        if not self._recorder.layers:
            self._refuse_nothing()
        self._recorder.check_layers()
        self._recorder.check_gradients()

    def _refuse_nothing(self) -> None:
        raise RecordingError(
            "A watched model must call attention inside the with block.",
            got="no attention from {model}",
            do="Run the watched model itself inside the block, in the same thread. A model that computes "
            "softmax by hand or in a compiled kernel cannot be seen: let it call "
            "F.scaled_dot_product_attention. Call torch.compile before the block, not in it.",
            model=self._recording.model,
        )
