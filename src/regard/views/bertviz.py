"""``head_view`` and ``model_view`` with the arguments of BertViz, so that changing the import is enough.

They take dense weights, as models give them with ``output_attentions=True``, or the patterns of
TransformerLens, and show them as a page of regard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ArgumentError, PackageError, ShapeError
from regard.interception.call_types import Kind
from regard.recording import Call, DenseCall, Recording
from regard.views.page.notebook import Display, displayed
from regard.views.page.page_payload import TokenDisplay
from regard.views.page.write_page import PageOptions, PageStart

__all__ = ["head_view", "model_view"]

HEIGHT = 720


def head_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: str = "view",
) -> Display | None:
    """The weights of some heads as lines between tokens, in a notebook.

    Args:
        attention: one tensor per layer, ``(1, head, query, key)`` or ``(head, query, key)``; or one
            tensor of all layers, ``(layer, head, query, key)``; or that of one layer.
        tokens: the tokens of the text.
        sentence_b_start: where the second of two sentences begins.
        prettify_tokens: show ``Ġcat`` as ``cat``.
        layer: the layer to begin with.
        heads: the heads to begin with; by default all.
        encoder_attention: like ``attention``, of an encoder-decoder; with ``encoder_tokens``.
        decoder_attention: the same of the decoder; with ``decoder_tokens``.
        cross_attention: from the decoder to the encoder; with both.
        encoder_tokens: the tokens of the source.
        decoder_tokens: the tokens of the target.
        include_layers: only these layers.
        html_action: "view" shows it in the notebook; "return" returns it, for ``.save(path)``,
            ``.data`` or your own cell.

    >>> weights = torch.eye(3).expand(2, 4, 3, 3)  # (layer, head, query, key)
    >>> head_view(weights, ["I", "love", "AI"], html_action="return").data[:15]
    '<!doctype html>'
    """
    given = BertVizInput(
        attention,
        tokens,
        encoder_attention,
        decoder_attention,
        cross_attention,
        encoder_tokens,
        decoder_tokens,
    )
    options = PageOptions(
        start=PageStart("lines", layer=layer, heads=heads),
        wording=TokenDisplay(prettify=prettify_tokens),
        sentence_b=_sentence_b(sentence_b_start, tokens),
    )
    return _acted(recording_of(given, include_layers), options, html_action)


def model_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: str = "dark",
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: str = "view",
) -> Display | None:
    """Every head of every layer at a glance, in a notebook; a click opens one.

    Arguments are those of :func:`head_view`; ``display_mode`` is "dark" or "light", and
    ``include_heads`` shows only these heads.

    >>> weights = torch.eye(3).expand(2, 4, 3, 3)  # (layer, head, query, key)
    >>> model_view(weights, ["I", "love", "AI"], html_action="return").data[:15]
    '<!doctype html>'
    """
    given = BertVizInput(
        attention,
        tokens,
        encoder_attention,
        decoder_attention,
        cross_attention,
        encoder_tokens,
        decoder_tokens,
    )
    if display_mode not in ("light", "dark"):
        raise ArgumentError(
            "display_mode must be light or dark.",
            got="display_mode = {display_mode!r}",
            do="Choose one.",
            display_mode=display_mode,
        )
    options = PageOptions(
        start=PageStart("overview", theme=display_mode),
        wording=TokenDisplay(prettify=prettify_tokens),
        sentence_b=_sentence_b(sentence_b_start, tokens),
    )
    return _acted(recording_of(given, include_layers, include_heads), options, html_action)


# ---- from weights to a recording -------------------------------------------------------------


@dataclass(frozen=True)
class BertVizInput:
    """The weights and tokens that were passed."""

    attention: Any = None
    tokens: Sequence[str] | None = None
    encoder_attention: Any = None
    decoder_attention: Any = None
    cross_attention: Any = None
    encoder_tokens: Sequence[str] | None = None
    decoder_tokens: Sequence[str] | None = None


class WeightsWithTokens(Recording):
    """A recording of dense weights whose tokens are known call by call."""

    def __init__(
        self, calls: Sequence[Call], rows: Sequence[Sequence[str]], columns: Sequence[Sequence[str]]
    ):
        super().__init__("attention", calls)
        self._rows = dict(zip(map(id, calls), rows))
        self._columns = dict(zip(map(id, calls), columns))

    def query_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The tokens of the rows of a call."""
        del batch
        return list(self._rows[id(call)])

    def row_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The same tokens: BertViz names rows as the user does."""
        return self.query_tokens(call, batch)

    def key_tokens(self, call: Call, batch: int = 0) -> list[str] | None:
        """The tokens of the columns of a call."""
        del batch
        return list(self._columns[id(call)])


def recording_of(
    given: BertVizInput,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
) -> Recording:
    """The weights as a recording.

    >>> recording_of(BertVizInput(attention=[torch.eye(2).expand(1, 3, 2, 2)], tokens=["a", "b"]))[0]
    <decoder 'attention.0', layer 0: 1 × 3 heads, 2 queries × 2 keys, dense>
    """
    calls: list[Call] = []
    rows: list[Sequence[str]] = []
    columns: list[Sequence[str]] = []
    for name, kind, of_rows, of_columns in _sides(given):
        for layer, weights in _layers(name, getattr(given, name), include_layers):
            _check_tokens(name, weights, of_rows, of_columns)
            known = tuple(range(weights.shape[0])) if include_heads is None else tuple(include_heads)
            if not all(0 <= head < weights.shape[0] for head in known) or not known:
                raise ArgumentError(
                    "include_heads must name heads of {name} (0 … {shape}).",
                    got="include_heads = {include_heads}",
                    do="Omit it to show all.",
                    name=name,
                    shape=weights.shape[0] - 1,
                    include_heads=list(known),
                )
            own = weights[list(known)][None]
            calls.append(DenseCall(f"{name}.{layer}", kind or _kind(own), layer, own, numbers=known))
            rows.append(of_rows)
            columns.append(of_columns)
    return WeightsWithTokens(calls, rows, columns)


def _sides(given: BertVizInput) -> list[tuple[str, Kind | None, Sequence[str], Sequence[str]]]:
    """The name, the kind and the tokens on both sides of each sort of weights that was passed."""
    two_sided = [
        name
        for name in (
            "encoder_attention",
            "decoder_attention",
            "cross_attention",
            "encoder_tokens",
            "decoder_tokens",
        )
        if getattr(given, name) is not None
    ]
    if given.attention is not None:
        if two_sided:
            raise ArgumentError(
                "attention is for models with one stack; for an encoder-decoder, use encoder_attention, "
                "decoder_attention and cross_attention.",
                got="attention and {two_sided}",
                do="Pass one or the other.",
                two_sided=", ".join(two_sided),
            )
        tokens = _needed("tokens", given.tokens, "attention")
        return [("attention", None, tokens, tokens)]
    found: list[tuple[str, Kind | None, Sequence[str], Sequence[str]]] = []
    if given.encoder_attention is not None:
        source = _needed("encoder_tokens", given.encoder_tokens, "encoder_attention")
        found.append(("encoder_attention", "encoder", source, source))
    if given.decoder_attention is not None:
        target = _needed("decoder_tokens", given.decoder_tokens, "decoder_attention")
        found.append(("decoder_attention", "decoder", target, target))
    if given.cross_attention is not None:
        target = _needed("decoder_tokens", given.decoder_tokens, "cross_attention")
        source = _needed("encoder_tokens", given.encoder_tokens, "cross_attention")
        found.append(("cross_attention", "cross", target, source))
    if not found:
        raise ArgumentError(
            "Weights are required.",
            got="no attention",
            do="Pass attention, or encoder_, decoder_ or cross_attention, from output_attentions=True.",
        )
    return found


def _needed(name: str, tokens: Sequence[str] | None, for_what: str) -> Sequence[str]:
    if tokens is None or isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
        raise ArgumentError(
            "{for_what} needs {name}, a list of strings.",
            got="{name} = {tokens!r}" if tokens is not None else "no {name}",
            do="Use tokenizer.convert_ids_to_tokens(...).",
            for_what=for_what,
            name=name,
            tokens=str(tokens)[:40],
        )
    return tokens


def _layers(name: str, given: Any, include: Sequence[int] | None) -> list[tuple[int, Tensor]]:
    """The weights ``(head, query, key)`` of each requested layer, with its number."""
    layers = _split(name, given)
    wanted = range(len(layers)) if include is None else include
    missing = [layer for layer in wanted if not 0 <= layer < len(layers)]
    if missing or not len(wanted):
        raise ArgumentError(
            "include_layers must name layers of {name} (0 … {layers_count}).",
            got="include_layers = {include_layers}",
            do="Omit it to show all.",
            name=name,
            layers_count=len(layers) - 1,
            include_layers=list(wanted),
        )
    return [(layer, _one_layer(f"{name}[{layer}]", layers[layer])) for layer in wanted]


def _split(name: str, given: Any) -> list[Any]:
    """One entry per layer, from any of the forms that libraries use."""
    if isinstance(given, Tensor | np.ndarray):
        if given.ndim == 3:
            return [given]  # TransformerLens: one layer of one sequence
        if given.ndim in (4, 5):
            return list(given)
        raise _wrong_shape(name, given)
    layers = list(given)
    if not layers:
        raise ArgumentError(
            "{name} must have at least one layer.", got="none", do="Pass what the model returned.", name=name
        )
    return layers


def _one_layer(name: str, given: Any) -> Tensor:
    if not isinstance(given, Tensor | np.ndarray):
        raise ArgumentError(
            "{name} must be a tensor (1, head, query, key).",
            got="{type}",
            do="Load the model with attn_implementation='eager' and output_attentions=True.",
            name=name,
            type=type(given).__name__,
        )
    weights = torch.as_tensor(given).detach().cpu()
    if weights.ndim == 4 and weights.shape[0] == 1:
        weights = weights[0]
    if weights.ndim != 3 or not all(weights.shape):
        raise _wrong_shape(name, weights)
    weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
    if not bool(torch.isfinite(weights).all()) or float(weights.min()) < 0 or float(weights.max()) > 1.01:
        raise ArgumentError(
            "{name} must contain weights, each between 0 and 1.",
            got="{min:.3g} … {max:.3g}",
            do="Pass the weights after the softmax: blocks.*.attn.hook_pattern, not hook_attn_scores.",
            name=name,
            min=float(weights.min()),
            max=float(weights.max()),
        )
    return weights


def _wrong_shape(name: str, given: Any) -> ShapeError:
    return ShapeError(
        "{name} must be (1, head, query, key) or (head, query, key) for each layer.",
        got="shape {shape}",
        do="Choose one sequence of the batch: [layer[:1] for layer in attention].",
        name=name,
        shape=tuple(given.shape),
    )


def _check_tokens(name: str, weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> None:
    _, queries, keys = weights.shape
    if (queries, keys) != (len(rows), len(columns)):
        raise ShapeError(
            "There must be a token for every position of {name} (queries = {queries}, keys = {keys}).",
            got="{rows_count} and {columns_count} tokens",
            do="Include special tokens and padding.",
            name=name,
            queries=queries,
            keys=keys,
            rows_count=len(rows),
            columns_count=len(columns),
        )


def _kind(weights: Tensor) -> Kind:
    """A decoder's weights are 0 above the diagonal."""
    return "encoder" if bool(weights.triu(weights.shape[-1] - weights.shape[-2] + 1).any()) else "decoder"


# ---- how it is shown ---------------------------------------------------------------------------


def _sentence_b(start: int | None, tokens: Sequence[str] | None) -> int | None:
    if start is not None and (tokens is None or not 0 < start < len(tokens)):
        raise ArgumentError(
            "sentence_b_start must be the position of a token, after the first.",
            got="sentence_b_start = {start}",
            do="Count from 0: the tokens of the first sentence come before it.",
            start=start,
        )
    return start


def _acted(recording: Recording, options: PageOptions, action: str) -> Display | None:
    if action not in ("view", "return"):
        raise ArgumentError(
            "html_action must be view or return.",
            got="html_action = {action!r}",
            do="Choose one.",
            action=action,
        )
    made = displayed(recording, options, HEIGHT)
    if action == "return":
        return made
    try:
        from IPython.display import display
    except ImportError:
        raise PackageError(
            "html_action='view' needs a notebook.",
            got="no IPython",
            do="Use html_action='return', and save(path) what it returns.",
        ) from None
    display(made)  # type: ignore[no-untyped-call]
    return None
