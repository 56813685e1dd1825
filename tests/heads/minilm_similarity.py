"""The likeness of two sentences by MiniLM, as one number that heads add to."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

ONE, OTHER = "The movie was not good at all.", "I did not like this film."


def similarity(model: Any, tokenizer: Any) -> tuple[dict[str, torch.Tensor], Any]:
    """The inputs of one sentence, and a function of the output: its cosine with the other sentence."""
    with torch.no_grad():
        other = model(**tokenizer(OTHER, return_tensors="pt")).last_hidden_state.mean(1)[0]

    def score(output: Any) -> torch.Tensor:
        return F.cosine_similarity(output.last_hidden_state.mean(1)[0], other, dim=0)

    return dict(tokenizer(ONE, return_tensors="pt")), score
