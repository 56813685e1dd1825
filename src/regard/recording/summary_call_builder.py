"""The statistics of a call while generation may still append to it."""

from __future__ import annotations

from torch import Tensor

from regard.interception.call_types import AttentionStep, CallPlace
from regard.kernels import Statistics
from regard.recording.call_builder import CallBuilder
from regard.recording.kept_statistics import joined, placed
from regard.recording.summary_call import SummaryCall
from regard.recording.watch_options import WatchOptions


class SummaryCallBuilder(CallBuilder):
    """The statistics of a call while generation may still append to it, and its last key."""

    def __init__(
        self, place: CallPlace, step: AttentionStep, options: WatchOptions, run: int, kept: Statistics
    ) -> None:
        super().__init__(place, step, options, run)
        self.kept = kept
        self.last_key = step.k[:, :, -1:].detach().clone()

    def continued_by(self, step: AttentionStep, past: int, *, last_only: bool = False) -> bool:
        """Whether the step has statistics and continues this call."""
        return step.statistics is not None and super().continued_by(step, past, last_only=last_only)

    def searched_by(self, step: AttentionStep, past: int) -> bool:
        """False: a beam search needs the keys of all positions."""
        del step, past
        return False

    def _shared_keys(self, step: AttentionStep, *, last_only: bool) -> tuple[Tensor, Tensor]:
        del last_only
        last = self.stop - 1 - step.first_key
        return self.last_key, step.k.detach()[:, :, last : last + 1]

    def _append_rows(self, step: AttentionStep) -> None:
        assert step.statistics is not None  # continued_by asked
        self.kept = joined(self.kept, placed(step.statistics, step.first_key - self.first_key))
        self.last_key = step.k[:, :, -1:].detach().clone()

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Nothing to do: no beam search appends to statistics."""
        del rows, prompt

    def call(self) -> SummaryCall:
        """The call so far."""
        return SummaryCall(kept=self.kept, **self._described())
