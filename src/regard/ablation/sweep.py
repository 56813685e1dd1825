"""``ablate()``: the same edit at every head, layer, key or edge, several of them in each forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from regard.ablation.layer_cache import CallInBlock, LayerCache
from regard.ablation.measured_effects import Experiment, Progress, checked_together, evaluating
from regard.checks import check_members
from regard.edits import Edit, block, each, remove
from regard.edits.edit import EditSequence, HeadEdit
from regard.edits.model_edit import edit
from regard.edits.scope import Scope
from regard.errors import ArgumentError, DtypeError
from regard.interception.call_types import Kind
from regard.masks import Mask, span
from regard.metrics import AnyMetric, name_of
from regard.model_outcome import part_of
from regard.table import Table, Value

PLACES = {
    "head": ("kind", "layer", "head"),
    "layer": ("kind", "layer"),
    "key": ("kind", "key"),
    "edge": ("kind", "query", "key"),
}
"""What is swept over, and the columns that say where."""

NUMBERS = ("before", "after", "difference", "kl")


@dataclass(frozen=True)
class AblationCase:
    """One edit of a sweep: where it is, and the edit."""

    place: tuple[Value, ...]
    edit: Edit
    seen: CallInBlock | None = None  # the layer it changes; None if it changes all of them


@dataclass(frozen=True, eq=False)
class Ablation:
    """What a sweep found: one row per edit, with the metric before and after it.

    ``complete`` is False if the sweep was stopped before its end.
    """

    by: str
    metric: str
    before: float
    table: Table
    complete: bool = True

    def __repr__(self) -> str:
        rest = "" if self.complete else ", stopped"
        return f"<Ablation by {self.by} of {self.metric}: {len(self.table)} edits{rest}>"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention that were changed: encoder, decoder, cross."""
        return tuple(dict.fromkeys(str(kind) for kind in self.table.column("kind")))

    def strongest(self, count: int = 10) -> Table:
        """The edits with the greatest effect in either direction, greatest first."""
        sizes = [abs(row["difference"] or 0.0) for row in self.table]  # type: ignore[arg-type]
        order = sorted(range(len(sizes)), key=lambda at: -sizes[at])
        return Table(self.table.columns, [self.table.cells[at] for at in order[:count]])

    def grid(self, kind: str | None = None, column: str = "difference") -> NDArray[np.float64]:
        """The numbers of a column as an array: layer × head, or query × key; NaN where nothing was tried.

        By layer or by key it has one row. ``kind`` is needed where several kinds were changed.
        """
        if kind is None and len(self.kinds) == 1:
            kind = self.kinds[0]
        if kind not in self.kinds:
            raise ArgumentError(
                "kind must be one of those that were changed ({kinds}).",
                got="kind = {kind!r}",
                do="Choose one of them.",
                kinds=", ".join(self.kinds),
                kind=kind,
            )
        rows = self.table.filter(kind=kind)
        axes = PLACES[self.by][1:]
        places = np.array([[row[axis] for axis in axes] for row in rows], dtype=np.int64)
        if len(axes) == 1:
            places = np.column_stack([np.zeros(len(places), np.int64), places])
        found = np.full(places.max(0) + 1, np.nan)
        values = [np.nan if value is None else value for value in rows.column(column)]
        found[places[:, 0], places[:, 1]] = np.asarray(values, np.float64)
        return found


@torch.no_grad()
def ablate(
    model: nn.Module,
    inputs: object,
    metric: AnyMetric,
    *,
    by: str = "head",
    edit: Edit | None = None,
    layers: int | Sequence[int] | None = None,
    heads: int | Sequence[int] | None = None,
    kind: Kind | None = None,
    rows: int | Sequence[int] | None = None,
    together: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Ablation:
    """Change one head, layer, key or edge after another, and measure what that does.

    Several edits are tried in each forward pass, one per sequence of the batch, and layers below all edits
    of a pass are not computed again.

    Args:
        model: any PyTorch module whose attention can be edited.
        inputs: a dict for ``model(**inputs)``, a tensor, or a tuple of tensors.
        metric: one of ``regard.metrics``, or a function of the model's output that gives a number.
        by: ``"head"`` or ``"layer"``: where ``edit`` is made; ``"key"``: no query sees this key;
            ``"edge"``: this query does not see this key.
        edit: what is done to a head or a layer; ``edits.remove()`` by default.
        layers, heads, kind: only these.
        rows: by edge, only the edges from these queries.
        together: how many edits one forward pass tries; by default as many as make 512 tokens.
        progress: called with how many edits are done and how many there are.
        stop: called after every forward pass; if it returns True, what was measured so far is returned.

    >>> import torch, regard
    >>> from regard import metrics
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=3)
    >>> found = ablate(model, torch.arange(9)[None], metrics.loss)
    >>> found
    <Ablation by head of loss: 6 edits>
    >>> found.grid().shape
    (3, 2)
    """
    if by not in PLACES:
        raise ArgumentError(
            "by must be one of {names}.", got="by = {by!r}", do="Choose one.", names=", ".join(PLACES), by=by
        )
    template = _checked_edit(by, edit)
    with evaluating(model):
        cache = LayerCache(model) if isinstance(model, nn.Module) else None
        experiment = Experiment.begin(model, inputs, metric, None if cache is None else cache.filled())
        assert cache is not None
        chosen = _chosen(cache.layers, layers, heads, kind)
        cases = list(_cases(by, template, chosen, rows, whole=layers is None and heads is None))
        size = experiment.together if together is None else checked_together(together)
        found: list[tuple[Value, ...]] = []
        complete = True
        for start in range(0, len(cases), size):
            some = cases[start : start + size]
            found += [(*case.place, *row) for case, row in zip(some, _tried(experiment, cache, some))]
            if progress is not None:
                progress(len(found), len(cases))
            if stop is not None and stop() and len(found) < len(cases):
                complete = False
                break
    return Ablation(by, name_of(metric), experiment.before, Table((*PLACES[by], *NUMBERS), found), complete)


def _tried(experiment: Experiment, cache: LayerCache, cases: Sequence[AblationCase]) -> list[tuple[Any, ...]]:
    """The numbers of some edits, from one forward pass that begins at the lowest layer they change."""
    first = cases[0].seen
    skips = first is not None and _same_in_all_layers(cases[0].edit)
    if first is None or not skips or not cache.usable(experiment.inputs, experiment.plain):
        return list(experiment.rows([case.edit for case in cases]))
    blocks = cache.below(first.kind, first.layer)
    batch, times = experiment.inputs.batch, len(cases)
    moved = [_at(case.edit, layers=cache.layer_within(*_layer(case), blocks)) for case in cases]
    one = moved[0] if times == 1 else each([one for one in moved for _ in range(batch)])
    with cache.skipped(blocks, batch, times), edit(experiment.model, one):
        output = experiment.inputs.run(experiment.model, times)
    return [experiment.row(part_of(output, at, batch, times), case.edit) for at, case in enumerate(cases)]


def _same_in_all_layers(done: Edit) -> bool:
    """Whether an edit does the same in every layer. One that holds a recording looks its layer up there."""
    own = [getattr(step.edit, field.name) for step in done.steps() for field in fields(step.edit)]
    return all(isinstance(value, int | float | Mask | Scope) for value in own)


def _layer(case: AblationCase) -> tuple[Kind, int]:
    assert case.seen is not None
    return case.seen.kind, case.seen.layer


# ---- what is tried ---------------------------------------------------------------------------


def _checked_edit(by: str, given: Edit | None) -> Edit | None:
    if given is None:
        return None
    if not isinstance(given, HeadEdit | EditSequence) or given.batch is not None:
        raise DtypeError(
            "edit must be one of regard.edits, the same for all sequences.",
            got="{type}",
            do="Pass, for example, edits.scale(0.5).",
            type=type(given).__name__,
        )
    if by in ("key", "edge"):
        raise ArgumentError(
            "By key and by edge, the edit must be omitted: it hides the key.",
            got="by = {by!r}, edit = {edit!r}",
            do="Omit edit=, or sweep by head or by layer.",
            by=by,
            edit=given,
        )
    return given


def _chosen(
    seen: Sequence[CallInBlock],
    layers: int | Sequence[int] | None,
    heads: int | Sequence[int] | None,
    kind: Kind | None,
) -> list[CallInBlock]:
    """The requested layers and heads, in the order in which they run."""
    kinds = tuple(dict.fromkeys(one.kind for one in seen))
    if kind is not None and kind not in kinds:
        raise ArgumentError(
            "kind must be one that the model has ({kinds}).",
            got="kind = {kind!r}",
            do="Choose one of them.",
            kinds=", ".join(kinds),
            kind=kind,
        )
    some = [one for one in seen if kind in (None, one.kind)]
    own_layers = check_members("layers", layers, {one.layer for one in some})
    own_heads = check_members("heads", heads, {head for one in some for head in one.heads})
    return [
        replace(one, heads=tuple(head for head in one.heads if own_heads is None or head in own_heads))
        for one in some
        if own_layers is None or one.layer in own_layers
    ]


def _cases(
    by: str,
    template: Edit | None,
    chosen: Sequence[CallInBlock],
    rows: int | Sequence[int] | None,
    *,
    whole: bool,
) -> Iterator[AblationCase]:
    if by in ("head", "layer"):
        done = remove() if template is None else template
        for seen in chosen:
            for head in seen.heads if by == "head" else (None,):
                place = (seen.kind, seen.layer) if head is None else (seen.kind, seen.layer, head)
                at = _at(done, layers=seen.layer, heads=head, kind=seen.kind)
                yield AblationCase(place, at, seen)
        return
    for kind in dict.fromkeys(seen.kind for seen in chosen):
        first = next(seen for seen in chosen if seen.kind == kind)
        where: dict[str, Any] = {"kind": kind}
        if not whole:
            where |= {
                "layers": tuple(seen.layer for seen in chosen if seen.kind == kind),
                "heads": first.heads,
            }
        if by == "key":
            yield from (
                AblationCase((kind, key), block(span(key, key + 1), **where)) for key in range(first.keys)
            )
        else:
            yield from _edges(first, rows, where)


def _edges(
    seen: CallInBlock, rows: int | Sequence[int] | None, where: dict[str, Any]
) -> Iterator[AblationCase]:
    """Every pair of query and key that the mask of the first layer allows."""
    own = check_members("rows", rows, set(range(seen.queries)))
    visible = seen.visible()
    for query in range(seen.queries) if own is None else sorted(own):
        for key in np.flatnonzero(visible[query]).tolist():
            yield AblationCase((seen.kind, query, key), block(_edge(seen, query, key), **where))


def _edge(seen: CallInBlock, query: int, key: int) -> Mask:
    # In cross-attention a query is at its own place in its own text.
    position = query if seen.kind == "cross" else query + seen.keys - seen.queries
    return span(position, position + 1).T & span(key, key + 1)


def _at(done: Edit, **place: Any) -> Edit:
    """The edit at one place."""
    if isinstance(done, EditSequence):
        return EditSequence(tuple(_at(part, **place) for part in done.parts))
    assert isinstance(done, HeadEdit)
    where: dict[str, Any] = {
        name: (at,) if isinstance(at, int) else at for name, at in place.items() if at is not None
    }
    return replace(done, scope=replace(done.scope, **where))
