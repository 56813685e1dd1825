"""The recorder: attention steps come in one by one, and those of one text are joined into one call.

    AttentionStep → Recorder.add() → the ScoredCallBuilder that it continues, or a new one

With ``statistics=True`` the builders are SummaryCallBuilders; for dense weights they are DenseCallBuilders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from torch import Tensor

from regard.errors import ArgumentError, RecordingError
from regard.interception.call_types import AttentionStep, CallPlace
from regard.interception.pipeline import recomputing
from regard.recording.call import Call
from regard.recording.call_builder import ScoredCallBuilder
from regard.recording.dense_call_builder import DenseCallBuilder
from regard.recording.output_gradients import OutputGradients
from regard.recording.residual_stream import ResidualStream
from regard.recording.scored_call import ScoredCall
from regard.recording.selection import check_heads, of_heads
from regard.recording.summary_call_builder import SummaryCallBuilder
from regard.recording.watch_options import WatchOptions


class AnyCallBuilder(Protocol):
    """A call while generation may still append to it."""

    run: int

    def call(self) -> Call:
        """The call so far."""

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Keep only the texts that a beam search returned; see ``BeamRows`` in ``beam_rows.py``."""


@dataclass
class BeamSearch:
    """A beam search while it runs, and the builders that it wrote into."""

    builders: list[AnyCallBuilder] = field(default_factory=list)
    restarted: bool = False  # whether a text was read from its start again, as without a cache

    def touch(self, builder: AnyCallBuilder) -> None:
        """Remember a builder that the search wrote into."""
        if all(builder is not known for known in self.builders):
            self.builders.append(builder)

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Keep only the returned texts in every builder."""
        if not self.restarted:
            for builder in self.builders:
                builder.follow(rows.long(), prompt)


class Recorder:
    """Joins attention steps of a model into calls; a :class:`regard.interception.call_types.CallWriter`."""

    def __init__(self, options: WatchOptions) -> None:
        self.options = options
        self.builders: list[AnyCallBuilder] = []
        self.latest: dict[tuple[str, int], AnyCallBuilder] = {}
        self.layers = 0  # the greatest number of layers of a kind that was seen
        self.residuals: ResidualStream | None = None  # set while a model runs whose projections are kept
        self._search: BeamSearch | None = None
        self.begin()

    @property
    def statistics(self) -> bool:
        """Whether the statistics of a call are kept in place of Q and K."""
        return self.options.statistics

    @property
    def top(self) -> int:
        """How many of the greatest weights of each row belong to its statistics."""
        return self.options.top

    @property
    def gradients(self) -> bool:
        """Whether the gradients of outputs are kept."""
        return self.options.gradients

    def begin(self) -> None:
        """A module was called from outside: a forward pass begins."""
        self._past = 0
        self._same_text = False  # whether a layer of this pass has compared all of its keys

    def records(self, place: CallPlace) -> bool:
        """Whether the calls of this layer are kept."""
        return self.options.layers is None or place.layer in self.options.layers

    def add(self, place: CallPlace, step: AttentionStep) -> None:
        """Record a step: as the next rows of a call, or as a new one."""
        self.layers = max(self.layers, place.layer + 1)
        if recomputing():
            self._add_again(place, step)
            return
        if place.kind != "cross":
            self._past = step.past
        if not self.records(place):
            return
        if step.past != self._past:
            step = replace(step, past=self._past)
        step = self._of_heads(step)
        if self._search is not None:
            # Statistics sum over all rows of a text, and the search has not chosen its texts yet.
            step = replace(step, statistics=None)
        before = self.latest.get((place.name, place.occurrence))
        if isinstance(before, ScoredCallBuilder | SummaryCallBuilder) and self._continues(before, step):
            self._expect_residual(before, step, before.stop - before.start)
            before.append(step)
            self.touch(before)
            return
        run = 0 if before is None else before.run + 1
        builder: ScoredCallBuilder | SummaryCallBuilder
        if step.statistics is not None:
            builder = SummaryCallBuilder(place, step, self.options, run, step.statistics)
        else:
            builder = ScoredCallBuilder(place, step, self.options, run)
        self._expect_residual(builder, step, 0)
        self.put(place, builder)

    def _of_heads(self, step: AttentionStep) -> AttentionStep:
        heads = self.options.heads
        return step if heads is None else of_heads(step, heads)

    def _expect_residual(
        self, builder: ScoredCallBuilder | SummaryCallBuilder, step: AttentionStep, first_row: int
    ) -> None:
        """Wait for what the output of a step is added to."""
        if self.residuals is not None and isinstance(builder, ScoredCallBuilder):
            self.residuals.expect(builder.place.name, step, partial(builder.add_residual, first_row))

    def add_weights(self, place: CallPlace, weights: Tensor, past: int) -> None:
        """Record dense weights: as the next rows of a call, or as a new one."""
        self.layers = max(self.layers, place.layer + 1)
        if not self.records(place):
            return
        heads = self.options.heads
        if heads is not None:
            check_heads(heads, weights.shape[1])
            weights = weights[:, list(heads)]
        weights = weights.to(self.options.dtype or weights.dtype, copy=True)
        builder = self.latest.get((place.name, place.occurrence))
        if isinstance(builder, DenseCallBuilder) and builder.continued_by(weights, past):
            builder.append(weights)
            self.touch(builder)
            return
        self.put(
            place, DenseCallBuilder(place, weights, self.options, 0 if builder is None else builder.run + 1)
        )

    def _add_again(self, place: CallPlace, step: AttentionStep) -> None:
        """A step that checkpointing repeats: it is recorded, but its output may have the gradient."""
        if not (self.records(place) and self.options.gradients):
            return
        step = self._of_heads(step)
        for builder in reversed(self.builders):
            if isinstance(builder, ScoredCallBuilder) and builder.repeated_by(place, step):
                builder.follow_gradient(step, 0)
                return

    def _continues(self, builder: ScoredCallBuilder | SummaryCallBuilder, step: AttentionStep) -> bool:
        if self._search is not None:
            return builder.searched_by(step, self._past)
        continues = builder.continued_by(step, self._past, last_only=self._same_text)
        self._same_text = self._same_text or (continues and not builder.cross)
        return continues

    # ---- beam search ---------------------------------------------------------------------------

    def begin_search(self) -> None:
        """A beam search begins: rows of the batch can continue one another until it ends."""
        self._search = BeamSearch()

    def touch(self, builder: AnyCallBuilder) -> None:
        """Rows were appended to a builder: tell the search, if one is running."""
        if self._search is not None:
            self._search.touch(builder)

    def end_search(self, rows: Tensor | None = None, prompt: int = 0) -> None:
        """Keep the texts that the search returned; without ``rows``, everything as it was read."""
        search, self._search = self._search, None
        if search is not None and rows is not None:
            search.follow(rows, prompt)

    # ---- builders -------------------------------------------------------------------------------

    def put(self, place: CallPlace, builder: AnyCallBuilder) -> None:
        """Keep a new builder."""
        before = self.latest.get((place.name, place.occurrence))
        if self._search is not None:
            self._search.restarted |= any(before is known for known in self._search.builders)
        self.touch(builder)
        self.latest[place.name, place.occurrence] = builder
        self.builders.append(builder)

    def calls(self) -> tuple[Call, ...]:
        """What was recorded so far."""
        calls = [builder.call() for builder in self.builders]
        if not self.options.gradients:
            return tuple(calls)
        # A backward pass that did not reach a call of its run left a gradient of 0 there.
        runs = {call.run for call in calls if isinstance(call, ScoredCall) and call.has_gradient}
        return tuple(
            call.with_zero_gradient() if isinstance(call, ScoredCall) and call.run in runs else call
            for call in calls
        )

    def end_gradients(self) -> None:
        """Backward passes that come later are not recorded."""
        for gradients in self._gradients():
            gradients.end()

    def check_gradients(self) -> None:
        """Raise if gradients were to be recorded but no backward pass ran."""
        gradients = list(self._gradients())
        if gradients and not any(one.received for one in gradients):
            raise_no_backward(any(one.followed for one in gradients))

    def _gradients(self) -> Iterator[OutputGradients]:
        for builder in self.builders:
            if isinstance(builder, ScoredCallBuilder) and builder.gradients is not None:
                yield builder.gradients

    def check_layers(self) -> None:
        """Raise if a requested layer was in no pass."""
        missing = [layer for layer in self.options.layers or () if layer >= self.layers]
        if missing and self.layers:
            raise_unknown_layers(missing, self.layers)


class CallForwarder(Recorder):
    """Passes each call to a function at once and keeps none, so it takes the memory of one call."""

    def __init__(self, options: WatchOptions, receive: Callable[[Call], None]) -> None:
        super().__init__(options)
        self.receive = receive

    def put(self, place: CallPlace, builder: AnyCallBuilder) -> None:
        """Pass the call on."""
        del place
        self.receive(builder.call())


def raise_unknown_layers(missing: Sequence[int], known: int) -> None:
    """Raise an error that says which layers there are."""
    raise ArgumentError(
        "layers= must name layers of the model (0 … {last}).",
        got="layers = {layers}",
        do="Omit it to record all of them.",
        last=known - 1,
        layers=list(missing),
    )


def raise_no_backward(followed: bool) -> None:
    """Raise an error that says why there are no gradients; ``followed`` if an output could have had one."""
    raise RecordingError(
        "With gradients=True, a backward pass must run inside the with block.",
        got="none" if followed else "a forward pass under torch.no_grad()",
        do="Call loss.backward() before the block ends, and run the model outside of torch.no_grad().",
    )
