"""``edit(model, edit)``: change the attention of a model while a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch import nn

from regard.edits.edit import Edit
from regard.edits.editor import Editor, check_layers
from regard.errors import DtypeError, EditError
from regard.interception.model_interception import calls_intercepted
from regard.interception.pipeline import ModuleTracker, uncompiled
from regard.recording.memory_estimate import known_layers


def edit(model: nn.Module, edit: Edit) -> AbstractContextManager[Editor]:
    """Change the attention of ``model`` in a ``with`` block, at any length; no matrix is built.

    Works with transformers models, with ``torch.nn``, ``regard.nn`` and every model that calls
    ``F.scaled_dot_product_attention``. The model is restored when the block ends, even after an error.
    Blocks nest; an edited model can be watched, and the recording holds what was computed.

    Args:
        model: any PyTorch module.
        edit: one of ``regard.edits``, or several combined with ``+``.

    >>> import torch, regard
    >>> from regard import edits
    >>> model = torch.nn.MultiheadAttention(16, 2, batch_first=True, bias=False)
    >>> x = torch.randn(1, 5, 16)
    >>> with regard.edit(model, edits.remove()) as edited:
    ...     print(model(x, x, x)[0].abs().max().item())
    0.0
    >>> edited
    <remove() in MultiheadAttention: 1 call changed>
    """
    if not isinstance(model, nn.Module):
        raise DtypeError(
            "edit(model, edit) needs a PyTorch module.",
            got="{type}",
            do="Pass the model itself, not a pipeline or its output.",
            type=type(model).__name__,
        )
    if not isinstance(edit, Edit):
        raise DtypeError(
            "edit(model, edit) needs an edit.",
            got="{type}",
            do="Pass, for example, edits.remove(layers=3, heads=1); combine several with +.",
            type=type(edit).__name__,
        )
    known = known_layers(model)
    if known is not None:
        check_layers(edit, known)
    return _edited(model, edit)


@contextmanager
def _edited(model: nn.Module, edit: Edit) -> Iterator[Editor]:
    editor = Editor(edit, type(uncompiled(model)).__name__)
    with calls_intercepted(ModuleTracker(model, editor), refuse_hidden):
        yield editor
    editor.check()


def refuse_hidden(part: Any) -> AbstractContextManager[None]:
    """Raise: what cannot be seen cannot be changed."""
    raise EditError(
        "A model that is edited must call an attention that can be replaced.",
        got="{type}, which computes its attention itself",
        do="Edit a similar model, or let this one call F.scaled_dot_product_attention.",
        type=type(part).__name__,
    )
