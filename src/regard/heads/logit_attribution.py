"""Direct logit attribution: what each head took from each token for the answer, through W_O and W_U.

The residual stream of a pre-norm language model is a sum, and with the denominator of its final norm frozen
the logit of a token is linear in it. So the logit is a sum as well: of the embedding, every feed-forward
block, the biases and, for each head and source token j, ``w_ij · (v_j W_O) · u``, with u the token's row of
the unembedding taken back through the norm. It is exact for direct effects: what a head gave to later layers,
and those gave to the logit, counts for the later layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.checks import check_position, is_index
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.heads.language_stack import LanguageStack, frozen_norm, stack_of, unknown_family
from regard.recording import Recording, ScoredCall, watch
from regard.recording.output_projection import find_projection
from regard.table import Table, Value

TOLERANCE = 1e-3
"""How far from the logit, in proportion to its parts, a sum may be before a model is refused."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """The parts of one logit, or of the difference of two; they sum to ``logit``.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> found = regard.attribution(model, torch.tensor([[5, 6, 7]]), target=9)
    >>> abs(found.total - found.logit) < 1e-4
    True
    """

    target: int
    against: int | None
    position: int
    logit: float
    heads: Tensor  # (layer, head, source token)
    feed_forwards: Tensor  # (layer,)
    embedding: float
    biases: float
    direction: Tensor  # (width,): u, the direction of the residual stream that the logit reads

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return float(self.heads.sum() + self.feed_forwards.sum()) + self.embedding + self.biases

    def by_head(self) -> Tensor:
        """What each head gave, ``(layer, head)``."""
        return self.heads.sum(-1)

    def by_token(self) -> Tensor:
        """What all heads together took from each source token, ``(token,)``."""
        return self.heads.sum((0, 1))

    def table(self) -> Table:
        """One row per head, feed-forward block, and the rest."""
        heads = [
            ("head", layer, head, float(value))
            for layer, row in enumerate(self.by_head())
            for head, value in enumerate(row)
        ]
        blocks = [("feed_forward", layer, None, float(x)) for layer, x in enumerate(self.feed_forwards)]
        rest: list[tuple[Value, ...]] = [
            ("embedding", None, None, self.embedding),
            ("biases", None, None, self.biases),
        ]
        return Table(("part", "layer", "head", "logit"), [*heads, *blocks, *rest])


@torch.no_grad()
def attribution(
    model: nn.Module,
    inputs: Tensor | Mapping[str, Any],
    target: int,
    against: int | None = None,
    position: int = -1,
) -> Attribution:
    """What every head took from every source token for the logit of ``target``, and what else it is made of.

    Args:
        model: a language model of the Llama or GPT-2 family, or ``regard.nn.LanguageModel``.
        inputs: token ids ``(1, length)``, or the arguments of the model, as a tokenizer returns them.
        target: the id of the token whose logit is explained.
        against: the id of a token whose logit is subtracted.
        position: where the logit is read; the last position by default.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=3).eval()
    >>> found = regard.attribution(model, torch.tensor([[3, 1, 4, 1, 5]]), target=9)
    >>> found.heads.shape, abs(found.total - found.logit) < 1e-4
    (torch.Size([3, 2, 5]), True)
    """
    if not isinstance(model, nn.Module):
        raise DtypeError(
            "attribution(model, …) needs a PyTorch module.",
            got="{given}",
            do="Pass the model itself.",
            given=type(model).__name__,
        )
    stack = stack_of(model)
    for name, token in (("target", target), ("against", against)):
        if token is not None or name == "target":
            _check_token(name, token, stack.vocabulary)
    arguments = _arguments(inputs)
    capture = _Capture()
    with watch(model, projections=True) as seen, capture.attached(stack):
        output: Any = model(inputs) if arguments is None else model(**arguments)
    logits = output if isinstance(output, Tensor) else output.logits
    at = check_position("position", position, capture.final[0].shape[1])
    # Some models compute logits at the last positions only.
    row = logits[0, at - capture.final[0].shape[1]].double()
    logit = float(row[target] - (row[against] if against is not None else 0))
    found = _parts(model, stack, seen, capture, target, against, at, logit)
    size = float(found.heads.abs().sum() + found.feed_forwards.abs().sum()) + abs(found.embedding)
    if abs(found.total - logit) > TOLERANCE * max(1.0, size):
        raise unknown_family(type(model).__name__)
    return found


def _parts(
    model: nn.Module,
    stack: LanguageStack,
    seen: Recording,
    capture: _Capture,
    target: int,
    against: int | None,
    at: int,
    logit: float,
) -> Attribution:
    behind = _difference(stack.unembedding, target, against)  # (width,)
    norm = frozen_norm(stack.norm, capture.final[0][0, at], capture.normed[0][0, at])
    if norm is None:
        raise unknown_family(type(model).__name__)
    direction = norm.back(behind)
    calls = [call.scored() for call in seen]
    if len(calls) != len(stack.layers) or len({call.heads for call in calls}) > 1:
        raise unknown_family(type(model).__name__)
    heads = [_from_tokens(call, direction, at) for call in calls]
    constant = norm.constant(behind) + sum(_bias(model, call.name, direction) for call in calls)
    if stack.unembedding_bias is not None:
        constant += float(_difference(stack.unembedding_bias, target, against))
    blocks = torch.stack([output[0, at].double() @ direction for output in capture.blocks])
    embedding = float(capture.first[0][0, at].double() @ direction)
    return Attribution(target, against, at, logit, torch.stack(heads), blocks, embedding, constant, direction)


def _difference(rows: Tensor, target: int, against: int | None) -> Tensor:
    found = rows[target].double()
    return found if against is None else found - rows[against].double()


def _from_tokens(call: ScoredCall, direction: Tensor, at: int) -> Tensor:
    """``w_ij · (v_j W_O) · u`` of one row, ``(head, key)``."""
    weights = call.weights(None, rows=at)[:, 0].double()
    return weights * call.given_by_keys(direction)[0].double()


def _bias(model: nn.Module, name: str, direction: Tensor) -> float:
    """What the bias of the output projection gives."""
    bias = getattr(find_projection(model, name), "bias", None)
    return float(bias.double() @ direction) if isinstance(bias, Tensor) else 0.0


# ---- what a pass shows beside attention ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Capture:
    """The residual stream before the first layer and around the final norm, and the feed-forward outputs."""

    first: list[Tensor] = field(default_factory=list)
    final: list[Tensor] = field(default_factory=list)
    normed: list[Tensor] = field(default_factory=list)
    blocks: list[Tensor] = field(default_factory=list)

    @contextmanager
    def attached(self, stack: LanguageStack) -> Iterator[None]:
        """Listen while the model runs."""

        def before(kept: list[Tensor]) -> Any:
            def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                del module
                kept.append(args[0] if args else next(iter(kwargs.values())))

            return hook

        def after(kept: list[Tensor]) -> Any:
            def hook(module: nn.Module, args: Any, output: Any) -> None:
                del module, args
                kept.append(output[0] if isinstance(output, tuple) else output)

            return hook

        handles = [
            stack.layers[0].register_forward_pre_hook(before(self.first), with_kwargs=True),
            stack.norm.register_forward_pre_hook(before(self.final), with_kwargs=True),
            stack.norm.register_forward_hook(after(self.normed)),
            *(block.register_forward_hook(after(self.blocks)) for block in stack.feed_forwards),
        ]
        with ExitStack() as removed:
            for handle in handles:
                removed.callback(handle.remove)
            yield


# ---- checks ----------------------------------------------------------------------------------------


def _check_token(name: str, token: object, vocabulary: int) -> None:
    if not is_index(token, vocabulary):
        raise ArgumentError(
            "{name} must be the id of a token of the model (0 … {last}).",
            got="{name} = {token!r}",
            do="Use tokenizer.convert_tokens_to_ids(...).",
            name=name,
            last=vocabulary - 1,
            token=token,
        )


def _arguments(inputs: object) -> dict[str, Any] | None:
    """The named arguments of the model; None if the ids were passed alone."""
    ids = inputs.get("input_ids") if isinstance(inputs, Mapping) else inputs
    if not isinstance(ids, Tensor):
        raise DtypeError(
            "inputs must be token ids (1, length), or the arguments of the model with input_ids.",
            got="{given}",
            do='Pass tokenizer(text, return_tensors="pt").',
            given=type(inputs).__name__,
        )
    if ids.ndim != 2 or len(ids) != 1 or not ids.shape[1]:
        raise ShapeError(
            "Attribution explains one text: ids must have the shape (1, length).",
            got="shape {shape}",
            do="Pass one text at a time: ids[:1].",
            shape=tuple(ids.shape),
        )
    return dict(inputs) if isinstance(inputs, Mapping) else None
