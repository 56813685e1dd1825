"""The dense weights of a model that hides its Q and K, while generation may still append to them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.interception.call_types import CallPlace
from regard.recording.beam_rows import BeamRows, along
from regard.recording.call import Call
from regard.recording.dense_call import DenseCall
from regard.recording.watch_options import WatchOptions


class DenseCallBuilder:
    """The weights of one layer while generation may still append to them."""

    def __init__(self, place: CallPlace, weights: Tensor, options: WatchOptions, run: int) -> None:
        self.place, self.run = place, run
        self.options = options
        self.weights = weights
        self.prompt_end = weights.shape[2]  # after the last step with several rows: where generation began

    @property
    def queries(self) -> int:
        """How many rows there are."""
        return self.weights.shape[2]

    def continued_by(self, weights: Tensor, past: int) -> bool:
        """Whether these rows come next: there is a cache, and it ends where these rows end."""
        same = weights.shape[:2] == self.weights.shape[:2]
        keys = weights.shape[3] - (0 if self.place.kind == "cross" else weights.shape[2])
        return past > 0 and same and past == self.queries and keys == self.weights.shape[3]

    def append(self, weights: Tensor) -> None:
        """Append rows; earlier rows have no weight on the new keys."""
        wider = F.pad(self.weights, (0, weights.shape[3] - self.weights.shape[3]))
        self.weights = torch.cat([wider, weights], 2)
        if weights.shape[2] > 1:
            self.prompt_end = self.queries

    def follow(self, rows: Tensor, prompt: int) -> None:
        """Keep only the texts that a beam search returned."""
        if self.place.kind == "encoder" and self.prompt_end == self.queries:
            return  # it read the prompts, each once
        beams = BeamRows(rows, max(prompt, self.prompt_end))
        stop = min(self.queries, beams.stop)
        keys = self.weights.shape[3] if self.place.kind == "cross" else stop
        self.weights = along(self.weights[:, :, :stop, :keys], beams.at(0, stop))

    def call(self) -> Call:
        """The call so far, as its statistics if that is what the watch keeps."""
        name, kind, layer = self.place.name, self.place.kind, self.place.layer
        call = DenseCall(name, kind, layer, self.weights, run=self.run, numbers=self.options.heads)
        return call.summary(self.options.top) if self.options.statistics else call
