"""One query of one head of a real model, explained with the numbers that the model had.

Q, K, V, the bias, the mask and the scale come from a recording; the steps from them to the output are
done again in float64, and the weights compared with those of the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.errors import ArgumentError, RecordingError
from regard.interception.call_types import KINDS
from regard.kernels.reference import Numbers, Trace, attention
from regard.lessons.facts import text as say
from regard.lessons.number_grid import grid_of, looks_of
from regard.lessons.sentence_explanation import MOST_WORDS
from regard.recording import Call, Recording, ScoredCall, load_reader
from regard.recording.attention_row import AttentionRow, row_of
from regard.translator import embedded, embedded_alignment_head, look
from regard.views.explanation import Explanation, Grid, Step
from regard.views.page.display_tokens import text_of

SHOWN = 10
"""The number of keys shown individually: those with the largest weights."""


def explain_model(
    text: str,
    *,
    lang: str = "en",
    model: str | Path | None = None,
    pair: str | None = None,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    token: int | str | None = None,
) -> Explanation:
    """Read a text with a model, by default the built-in translator, and explain one of its rows."""
    if model is not None:
        seen = load_reader(model).read(text, pair=pair, projections=True)
        return explain_recording(
            seen, title=text, name=_short(model), lang=lang, kind=kind, layer=layer, head=head, token=token
        )
    seen = look(embedded(), text, translation=pair, projections=True).recording
    if kind in (None, "cross") and layer is None and head is None:
        best = embedded_alignment_head()  # the head whose cross-attention aligns the two texts
        kind, layer, head = "cross", best.layer, best.head
    name = say("explain.translator", lang)
    return explain_recording(
        seen, title=text, name=name, lang=lang, kind=kind, layer=layer, head=head, token=token
    )


def _short(model: str | Path) -> str:
    """The name of a model for readers: of a long absolute path, its end."""
    parts = Path(model).parts
    return f"…/{parts[-2]}/{parts[-1]}" if Path(model).is_absolute() and len(parts) > 3 else str(model)


def explain_recording(
    seen: Recording,
    *,
    title: str = "",
    name: str = "",
    lang: str = "en",
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    token: int | str | None = None,
) -> Explanation:
    """Explain one row of a recording that has values; with ``projections=True``, up to the layer's output.

    By default the cross-attention, if there is any; the first layer and head; the token in the middle.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model, values=True) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> explain_recording(seen, head=1, token=3)["output"].shape
    (1, 8)
    """
    call = _call(seen, kind, layer)
    number = call.head_numbers[0] if head is None else head
    queries = _labels(seen.query_tokens(call), call.queries)
    keys = _labels(seen.key_tokens(call), call.keys)
    query = _position(token, queries, seen.query_tokens(call))
    row = row_of(call, number, query)
    trace = _calculated(row)
    about = [
        say(
            "explain.about.model", lang,
            model=name or seen.model, kind=say(f"explain.kind.{call.kind}", lang),
            layer=call.layer, head=number,
        ),
        say(
            "explain.about.token", lang,
            token=queries[query], position=query, queries=call.queries,
            visible=int(row.allowed.sum()), keys=call.keys,
        ),
        say(
            "explain.about.checked", lang,
            difference=float(np.abs(trace["weights"][0, 0] - row.weights).max()),
        ),
    ]  # fmt: skip
    if call.kind == "cross" and query + 1 < call.queries:
        following = queries[query + 1]  # a decoder's row belongs to the token that it has read
        about.insert(2, say("explain.about.next", lang, token=queries[query], following=following))
    if isinstance(call, ScoredCall) and call.projection is not None and call.residual is None:
        about.append(say("explain.about.no_residual", lang))
    several = call.queries <= MOST_WORDS
    rows = range(call.queries) if several else [query]
    weights = call.weights(number, rows=list(rows)).double().cpu().numpy()
    return Explanation(
        title or " ".join(queries),
        tuple(about),
        lang,
        (
            *_steps(trace, row, queries[query], keys, lang),
            *_layer_steps(call, number, query, queries[query], lang),
        ),
        say("explain.looks.head", lang, layer=call.layer, head=number),
        looks_of([queries[place] for place in rows], keys, weights, lang),
    )


# ---- which row -------------------------------------------------------------------------------


def _call(seen: Recording, kind: str | None, layer: int | None) -> Call:
    if not len(seen):
        raise RecordingError(
            "An explanation needs a recording with at least one attention call.",
            got="{seen!r}",
            do="Run the model inside the watch block.",
            seen=seen,
        )
    kinds = [known for known in KINDS if any(call.kind == known for call in seen)]
    if kind is not None and kind not in kinds:
        raise ArgumentError(
            "kind must be one of the recorded kinds ({kinds}).",
            got="kind = {kind!r}",
            do="Choose one.",
            kinds=", ".join(kinds),
            kind=kind,
        )
    wanted = kind or kinds[-1]  # cross is last
    layers = sorted({call.layer for call in seen if call.kind == wanted})
    if layer is not None and layer not in layers:
        raise ArgumentError(
            "layer must be one of the recorded layers ({layers}).",
            got="layer = {layer}",
            do="Choose one.",
            layers=", ".join(map(str, layers)),
            layer=layer,
        )
    place = layers[0] if layer is None else layer
    return next(call for call in seen if call.kind == wanted and call.layer == place)


def _labels(tokens: Sequence[str] | None, count: int) -> list[str]:
    return [str(place) for place in range(count)] if tokens is None else list(text_of(tokens).tokens)


def _position(token: int | str | None, shown: Sequence[str], raw: Sequence[str] | None) -> int:
    """The position of the query, given as a position (also from the end) or the text of a token."""
    count = len(shown)
    if token is None:
        return count // 2
    number = token if isinstance(token, int) else _number(token)
    if number is not None:
        if not -count <= number < count:
            raise ArgumentError(
                "token must be a position (0 … {count}) or the text of a token.",
                got="{number}",
                do="Count from 0, or backwards from −1.",
                count=count - 1,
                number=number,
            )
        return number % count
    found = [place for place in range(count) if token in (shown[place], raw[place] if raw else None)]
    if not found:
        raise ArgumentError(
            "token must be the text of one of the tokens ({shown}).",
            got="{token!r}",
            do="Choose one of them, or a position.",
            shown=" ".join([*shown[:40], *["…"] * (count > 40)]),
            token=token,
        )
    if len(found) > 1:
        raise ArgumentError(
            "token must match exactly one token.",
            got="{token!r}, which is at positions {found}",
            do="Pass its position.",
            token=token,
            found=", ".join(map(str, found)),
        )
    return found[0]


def _number(token: str) -> int | None:
    try:
        return int(token)
    except ValueError:
        return None


_TITLES = {"q": "query", "k": "keys", "v": "values"}


# ---- its steps -------------------------------------------------------------------------------


def _calculated(row: AttentionRow) -> Trace:
    """The row in float64, with a head axis, which sinks need."""
    return attention(
        row.q[None, None],
        row.k[None],
        row.v[None],
        mask=None if row.allowed.all() else row.allowed[None, None],
        bias=None if row.bias is None else row.bias[None, None],
        scale=row.scale,
        softcap=row.softcap,
        sinks=None if row.sink is None else [row.sink],
    )


@dataclass(frozen=True, eq=False)
class _ShownKeys:
    """The keys that are shown individually, and the labels of the rest."""

    shown: list[int]
    others: list[int]  # seen, and summed
    hidden: int  # not seen
    labels: list[str]
    others_label: str
    hidden_label: str

    def grid(
        self,
        values: Numbers,
        columns: Sequence[str],
        *,
        others: Sequence[float | None] | None = None,
        hidden: Sequence[float | None] | None = None,
        more: Sequence[tuple[str, Sequence[float | None]]] = (),
        weights: bool = False,
    ) -> Grid:
        """A row for each shown key, one for all others, one for the hidden ones, and the rest."""
        whole = grid_of(values[self.shown], self.labels, columns, weights=weights)
        rows, lines = list(whole.rows), list(whole.values)
        for label, line in (
            (self.others_label, others if self.others else None),
            (self.hidden_label, hidden if self.hidden else None),
            *more,
        ):
            if line is not None:
                rows.append(label)
                lines.append(tuple(line))
        return Grid(tuple(rows), whole.columns, tuple(lines), "", weights)


def _choose(trace: Trace, row: AttentionRow, keys: Sequence[str], lang: str) -> _ShownKeys:
    order = np.argsort(-trace["weights"][0, 0], kind="stable")
    seen = [int(key) for key in order if row.allowed[key]]
    shown, others = seen[:SHOWN], seen[SHOWN:]
    if len(others) == 1:  # a row for one other key may as well show it
        shown, others = seen, []
    hidden = int((~row.allowed).sum())
    labels = [f"{keys[key]} ({key})" for key in shown]
    return _ShownKeys(
        shown,
        others,
        hidden,
        labels,
        say("explain.others", lang, count=len(others)),
        say("explain.hidden", lang, count=hidden),
    )


def _steps(trace: Trace, row: AttentionRow, word: str, names: Sequence[str], lang: str) -> list[Step]:
    keys = _choose(trace, row, names, lang)
    channels = [str(channel) for channel in range(row.q.shape[-1])]
    outputs = [str(channel) for channel in range(row.v.shape[-1])]
    count, weights = len(row.k), trace["weights"][0, 0]
    nothing = [None]

    def step(name: str, formula: str, shape: tuple[int, ...], grid: Grid, **values: object) -> Step:
        title = say(f"explain.{_TITLES.get(name, name)}.title", lang)
        return Step(name, title, say(f"explain.row.{name}", lang).format(**values), formula, shape, (grid,))

    def column(name: str) -> Numbers:
        line: Numbers = trace[name][0, 0][:, None]
        return line

    root = np.isclose(row.scale, len(channels) ** -0.5)
    scaled = f"s = q·k / √{len(channels)}" if root else f"s = q·k · {row.scale:.4g}"
    steps = [
        step("q", "q", (1, len(channels)), grid_of(row.q[None], [word], channels), token=word),
        step(
            "k", "k", (count, len(channels)), keys.grid(row.k, channels), shown=len(keys.shown), count=count
        ),
        step("v", "v", (count, len(outputs)), keys.grid(row.v, outputs)),
        step("dots", "q·k = Σ q_c k_c", (1, count), keys.grid(column("dots"), [""], others=nothing)),
        step("scores", scaled, (1, count), keys.grid(column("scores"), [""], others=nothing)),
    ]
    if row.softcap is not None:
        formula = f"s = {row.softcap:g} · tanh(s / {row.softcap:g})"
        steps.append(step("capped", formula, (1, count), keys.grid(column("capped"), [""], others=nothing)))
    if row.bias is not None:
        both = np.stack([row.bias, trace["biased"][0, 0]], axis=-1)
        steps.append(
            step("biased", "s = s + b", (1, count), keys.grid(both, ["b", "s + b"], others=[None] * 2))
        )
    if not row.allowed.all():
        grid = keys.grid(column("masked"), [""], others=nothing, hidden=[-np.inf])
        steps.append(step("masked", "s = −∞", (1, count), grid, hidden=keys.hidden, count=count))
    lse = float(trace["lse"][0, 0])
    sink = [] if row.sink is None else [(say("explain.sink", lang), [row.sink])]
    lse_grid = Grid((*(name for name, _ in sink), "lse"), ("",), (*(tuple(line) for _, line in sink), (lse,)))
    steps.append(step("lse", "lse = log Σ exp(s)", (1,), lse_grid))
    rest = weights[keys.others].sum()
    taken = [] if row.sink is None else [(say("explain.sink", lang), [float(np.exp(row.sink - lse))])]
    steps.append(
        step(
            "weights",
            "w = exp(s − lse)",
            (1, count),
            keys.grid(weights[:, None], [""], others=[float(rest)], hidden=[0.0], more=taken, weights=True),
        )
    )
    parts = weights[:, None] * row.v
    steps.append(
        step(
            "weighted",
            "w v",
            (count, len(outputs)),
            keys.grid(parts, outputs, others=[float(value) for value in parts[keys.others].sum(axis=0)]),
        )
    )
    steps.append(
        step("output", "o = Σ w v", (1, len(outputs)), grid_of(trace.output[0], [word], outputs), token=word)
    )
    return steps


# ---- from the head to the layer ----------------------------------------------------------------


def _layer_steps(call: Call, head: int, query: int, word: str, lang: str) -> list[Step]:
    """All heads, W_o and the residual, for a call with its projection and all of its heads."""
    if not isinstance(call, ScoredCall) or call.projection is None or call.v is None:
        return []
    if not call.has_all_heads:
        return []  # the other heads would be missing in the sum
    weights = call.weights(None, rows=query)[:, 0].double().cpu()  # (head, key)
    values = call.v[0].double().cpu().repeat_interleave(call.heads // call.v.shape[1], 0)  # (head, key, c)
    outputs = (weights[:, None] @ values)[:, 0].numpy()  # (head, channel)
    parts = np.einsum("hc,hcw->hw", outputs, call.projection.double().cpu().numpy())  # (head, width)
    names = [say("explain.head", lang, head=one) for one in call.head_numbers]
    total = parts.sum(0)
    lines = [(names[head], parts[head]), (say("explain.all_heads", lang), total)]
    if call.projection_bias is not None:
        total = total + call.projection_bias.double().cpu().numpy()
        lines.append((say("explain.with_bias", lang), total))

    def step(name: str, formula: str, shape: tuple[int, ...], grid: Grid, **values: object) -> Step:
        says = say(f"explain.row.{name}", lang).format(**values)
        return Step(name, say(f"explain.{name}.title", lang), says, formula, shape, (grid,))

    def grid(lines: Sequence[tuple[str, Numbers]]) -> Grid:
        columns = [str(channel) for channel in range(len(lines[0][1]))]
        return grid_of(np.stack([line for _, line in lines]), [label for label, _ in lines], columns)

    width = parts.shape[1]
    joined = grid(list(zip(names, outputs, strict=True)))
    steps = [
        step("joined", "[o_0 … o_H]", (outputs.size,), joined, heads=call.heads, token=word),
        step("projected", "y = Σ_h o_h W_o", (1, width), grid(lines)),
    ]
    if call.residual is not None:
        x = call.residual[0, query].double().cpu().numpy()
        sums = grid([(say("explain.before", lang), x), ("x + y", x + total)])
        steps.append(step("residual", "x + y", (1, width), sums, token=word))
    return steps
