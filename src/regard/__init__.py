"""regard: compute, see and measure attention, exactly, at any length, without the n×n matrix.

>>> import regard, torch
>>> from regard import masks
>>> q = k = v = torch.randn(8, 1000, 64)  # (head, length, channel)
>>> regard.attention(q, k, v, mask=masks.causal() & masks.window(100, 0)).shape
torch.Size([8, 1000, 64])

torch is imported on first use, so that ``import regard`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.version import __version__

if TYPE_CHECKING:
    from regard import (
        edits,
        errors,
        heads,
        kernels,
        lessons,
        masks,
        metrics,
        nn,
        recording,
        speech,
        translator,
        views,
    )
    from regard.ablation import ablate, effects
    from regard.diagnosis import doctor
    from regard.edits.model_edit import edit
    from regard.heads import align, attribution, monitor, relevance
    from regard.kernels import (
        attention,
        attention_statistics,
        attention_weights,
        attention_with_lse,
        biases,
        cost,
        linear_attention,
        plan,
        reference,
    )
    from regard.lessons import explain
    from regard.recording import Picture, load, watch
    from regard.translator import translate
    from regard.views import figures
    from regard.views.bertviz import head_view, model_view
    from regard.views.page import estimate_page, page, show

__all__ = [
    "Picture",
    "__version__",
    "ablate",
    "align",
    "attention",
    "attention_statistics",
    "attention_weights",
    "attention_with_lse",
    "attribution",
    "biases",
    "cost",
    "doctor",
    "edit",
    "edits",
    "effects",
    "errors",
    "estimate_page",
    "explain",
    "figures",
    "head_view",
    "heads",
    "kernels",
    "lessons",
    "linear_attention",
    "load",
    "masks",
    "metrics",
    "model_view",
    "monitor",
    "nn",
    "page",
    "plan",
    "recording",
    "reference",
    "relevance",
    "show",
    "speech",
    "translate",
    "translator",
    "views",
    "watch",
]

_ROOMS = {
    "ablate": "regard.ablation",
    "attention": "regard.kernels",
    "attention_statistics": "regard.kernels",
    "attention_weights": "regard.kernels",
    "attention_with_lse": "regard.kernels",
    "biases": "regard.kernels",
    "cost": "regard.kernels",
    "linear_attention": "regard.kernels",
    "plan": "regard.kernels",
    "reference": "regard.kernels",
    "doctor": "regard.diagnosis",
    "edit": "regard.edits.model_edit",
    "effects": "regard.ablation",
    "explain": "regard.lessons",
    "align": "regard.heads",
    "attribution": "regard.heads",
    "monitor": "regard.heads",
    "relevance": "regard.heads",
    "Picture": "regard.recording",
    "load": "regard.recording",
    "watch": "regard.recording",
    "translate": "regard.translator",
    "estimate_page": "regard.views.page",
    "head_view": "regard.views.bertviz",
    "model_view": "regard.views.bertviz",
    "page": "regard.views.page",
    "show": "regard.views.page",
}


_MODULES = {
    "edits": "regard.edits",
    "errors": "regard.errors",
    "figures": "regard.views.figures",
    "heads": "regard.heads",
    "kernels": "regard.kernels",
    "lessons": "regard.lessons",
    "masks": "regard.masks",
    "metrics": "regard.metrics",
    "nn": "regard.nn",
    "recording": "regard.recording",
    "speech": "regard.speech",
    "translator": "regard.translator",
    "views": "regard.views",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = import_module(_MODULES[name])
    elif name in _ROOMS:
        found = getattr(import_module(_ROOMS[name]), name)
    else:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    globals()[name] = found  # the next access does not come here
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
