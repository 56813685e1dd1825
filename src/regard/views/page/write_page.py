"""``regard.page()``: a recording as one HTML file, whose size is estimated before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import atomic
from regard.ablation import Ablation
from regard.deprecation import renamed_arguments
from regard.errors import ArgumentError, Phrase, RecordingError
from regard.languages import check_language
from regard.recording import Call, DenseCall, Recording, ScoredCall
from regard.views.column_headings import TEXTS
from regard.views.page.array_packing import ArrayStore
from regard.views.page.page_comparison import ComparedRecording, compare
from regard.views.page.page_html import document, frame_size
from regard.views.page.page_layer import layer_bytes
from regard.views.page.page_payload import FINE_VALUES, Payload, TokenDisplay, payload_of
from regard.views.page.page_quantities import check_what, quantities_of
from regard.views.page.page_relevance import rows_asked
from regard.views.page.thumbnails import SIDE

if TYPE_CHECKING:
    from torch import Tensor

VIEWS = ("text", "overview", "lines", "matrix", "heads", "steps", "picture", "speech")

PER_CALL = 1300
"""Bytes of a call besides its arrays: its description, its line of statistics, and the elements around."""

LARGEST = 200_000_000
"""Bytes above which a page is only written on request, because browsers become slow."""


@dataclass(frozen=True)
class PageEstimate:
    """The size that a page will have, approximately; it depends on how well the numbers compress."""

    calls: int
    nbytes: int

    def __str__(self) -> str:
        return self.in_words()

    def __add__(self, other: PageEstimate) -> PageEstimate:
        """The size of one page of two recordings: it has the program once."""
        return PageEstimate(self.calls + other.calls, self.nbytes + other.nbytes - frame_size())

    def in_words(self, lang: str = "en") -> str:
        """The estimate in English or Chinese.

        >>> PageEstimate(3, 180_000).in_words(), PageEstimate(3, 180_000).in_words("zh")
        ('3 calls, about 0.18 MB', '3 次调用，约 0.18 MB')
        >>> PageEstimate(96, 241_300_000).in_words()
        '96 calls, about 240 MB'
        """
        key = "page.size.one" if self.calls == 1 else "page.size.several"
        return TEXTS.say(key, lang, calls=self.calls, megabytes=float(f"{self.nbytes / 1e6:.2g}"))


def estimate_page(recording: Recording, *, layers: Sequence[int] | int | None = None) -> PageEstimate:
    """About how large ``page(recording)`` will be, without writing it.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True).eval()
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 1000, 512))
    >>> print(estimate_page(seen))  # doctest: +ELLIPSIS
    1 call, about ... MB
    """
    calls = chosen(recording, layers)
    values = sum(call.v[0].numel() for call in calls if isinstance(call, ScoredCall) and call.v is not None)
    what = quantities_of(calls)
    fine = values <= FINE_VALUES or "gradient" in what
    size = sum(_bytes(call, 2 if fine else 1, what) for call in calls)
    return PageEstimate(len(calls), (size + layer_bytes(calls)) * 5 // 4 + frame_size())


def _bytes(call: Call, per_value: int, what: Sequence[str]) -> int:
    """The bytes of one sequence of a call, before they become text."""
    rows = call.heads * call.queries
    pictures = call.heads * min(SIDE, call.queries) * min(SIDE, call.keys)
    size = PER_CALL + pictures * len(what) + 10 * (call.queries + call.keys)
    if isinstance(call, DenseCall):
        return size + rows * (2 * call.keys + 4)
    if not isinstance(call, ScoredCall):
        return size
    size += rows * (2 * call.q.shape[-1] + 6) + call.k.shape[1] * call.keys * (2 * call.k.shape[-1] + 2)
    if "gradient" in what:
        size += rows * (2 * call.gradients.shape[-1] + 2)
    return size + (0 if call.v is None else call.v[0].numel() * per_value)


@renamed_arguments(yes="force")
def page(
    recording: Recording,
    other: Recording | str | Path | None = None,
    path: str | Path | None = None,
    *,
    batch: int = 0,
    layers: Sequence[int] | int | None = None,
    other_layers: Sequence[int] | int | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
    lang: str = "en",
    view: str | None = None,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    words: Sequence[int] | None = None,
    source_words: Sequence[int] | None = None,
    effects: Ablation | None = None,
    what: str | None = None,
    direction: Tensor | None = None,
    relevance: int | Sequence[int] | None = None,
    force: bool = False,
) -> Path:
    """Write a recording, or two side by side, as one HTML file that needs nothing else; returns where it is.

    The page carries Q, K and lse and computes the weights that are displayed. With a second recording it
    shows both: two texts, two models, two layers, or a run with ``regard.edit`` beside the plain one. Where
    the tokens are the same it also shows the difference, and the heads that changed most come first.

    Args:
        recording: the result of ``regard.watch`` or ``regard.load``.
        other: a second recording to compare with; the path may also be given here.
        path: the file, replaced if it exists, its folder made if missing; by default
            ``attention.html`` in the current folder.
        batch: which sequence.
        layers: only these layers.
        other_layers: only these layers of the second recording; by default the same.
        names: what the two sides are called, for example ``["plain", "edited"]``.
        title: shown at the top.
        lang: the language to begin with, "en" or "zh".
        view: the view to begin with: text, overview, lines, matrix, heads or steps.
        kind: what to begin with, "encoder", "decoder" or "cross".
        layer: the layer to begin with.
        head: the head to begin with.
        words: the word of each token, for merging pieces; by default found from the tokens.
        source_words: the same on the encoder's side of an encoder-decoder.
        effects: what ``regard.ablate(model, inputs, metric)`` found by head; each head shows its own, and
            those with the greatest come first.
        what: what to begin with, "weight", "gradient", "product" (weight × gradient) or "contribution"; the
            last three need recordings with ``gradients=True`` and ``projections=True``.
        direction: u in the contribution ``w · (v W_O) · u``, ``(width,)``, a row of the unembedding, say; by
            default contributions are sizes, ``w · ‖v W_O‖``.
        relevance: the rows whose relevance the text can be shaded by, counted as in ``regard.relevance``; the
            page begins with the first. By default those that the backward pass began at, if they are few.
        force: write it even if it is larger than 200 MB.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> page(seen, getfixture("tmp_path") / "x.html", layer=0, head=1).name
    'x.html'
    >>> with regard.edit(model, regard.edits.uniform(heads=1)), regard.watch(model) as edited:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> page(seen, edited, getfixture("tmp_path") / "y.html", names=["plain", "edited"]).name
    'y.html'
    """
    other, path = other_and_path(other, path)
    options = PageOptions(
        batch=batch,
        layers=layers,
        other=other,
        other_layers=other_layers,
        names=names,
        title=title,
        lang=lang,
        start=PageStart(view, kind, layer, head, what=what),
        wording=TokenDisplay(words, source_words),
        effects=by_head(effects),
        direction=direction,
        relevance=rows_asked(relevance),
        force=force,
    )
    target = Path("attention.html" if path is None else path)
    atomic.write_text(target, document(payload_for(recording, options)))
    return target


def other_and_path(
    other: Recording | str | Path | None, path: str | Path | None
) -> tuple[Recording | None, str | Path | None]:
    """The second recording and the file: where there is one recording, the file comes second."""
    if other is None or isinstance(other, Recording):
        return other, path
    if isinstance(other, (str, Path)) and path is None:
        return None, other
    raise ArgumentError(
        "page needs a recording, then perhaps a second one, then perhaps a path.",
        got="{other}",
        do='Pass page(a, b, "x.html") or page(a, "x.html").',
        other=repr(other)[:60],
    )


@dataclass(frozen=True)
class PageStart:
    """What a page opens first."""

    view: str | None = None
    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    heads: Sequence[int] | None = None  # lines of these heads
    theme: str | None = None
    compact: bool = False  # without bars
    what: str | None = None  # the quantity shown


@dataclass(frozen=True)
class PageOptions:
    """All options of a page."""

    batch: int = 0
    layers: Sequence[int] | int | None = None
    title: str = ""
    lang: str = "en"
    start: PageStart = field(default_factory=PageStart)
    wording: TokenDisplay = field(default_factory=TokenDisplay)
    sentence_b: int | None = None
    effects: Ablation | None = None
    direction: Tensor | None = None  # of contributions
    relevance: Sequence[int] | None = None  # rows
    other: Recording | None = None  # to compare with
    other_layers: Sequence[int] | int | None = None  # by default ``layers``
    names: Sequence[str] | None = None  # of the two sides
    force: bool = False


def payload_for(recording: Recording, options: PageOptions) -> Payload:
    """The payload of a page, once its size and its options are checked."""
    check_language(options.lang)
    if options.other is None and (options.other_layers is not None or options.names is not None):
        raise ArgumentError(
            "other_layers and names are for pages of two recordings.",
            got="one recording",
            do="Pass the second one: page(a, b, …).",
        )
    _check_size(recording, options)
    payload = _payload_of_side(recording, options, options.layers)
    if options.other is None:
        return payload
    other = _payload_of_side(options.other, _of_other(options), _other_layers(options), payload.arrays)
    names = _side_names(recording, options.other, options.names)
    return compare(
        ComparedRecording(recording, chosen(recording, options.layers), payload, names[0]),
        ComparedRecording(options.other, chosen(options.other, _other_layers(options)), other, names[1]),
        batch=options.batch,
        chosen=any(one is not None for one in (options.start.kind, options.start.layer, options.start.head)),
    )


def _check_size(recording: Recording, options: PageOptions) -> None:
    size = estimate_page(recording, layers=options.layers)
    if options.other is not None:
        size += estimate_page(options.other, layers=_other_layers(options))
    if size.nbytes > LARGEST and not options.force:
        raise RecordingError(
            "A page can have at most {largest:.0f} MB; browsers become slow beyond that.",
            got="{size}",
            do="Choose fewer layers with layers=[…], or write it anyway with force=True.",
            largest=LARGEST / 1e6,
            size=size,
        )


def _payload_of_side(
    recording: Recording,
    options: PageOptions,
    layers: Sequence[int] | int | None,
    arrays: ArrayStore | None = None,
) -> Payload:
    """The payload of one recording."""
    calls = chosen(recording, layers)
    return payload_of(
        recording,
        calls,
        batch=options.batch,
        title=options.title,
        language=options.lang,
        start=start_of(calls, options.start) | ({"sort": "effect"} if options.effects is not None else {}),
        wording=options.wording,
        sentence_b=options.sentence_b,
        effects=options.effects,
        direction=options.direction,
        relevance=options.relevance,
        arrays=arrays,
    )


def _of_other(options: PageOptions) -> PageOptions:
    """The options of the second recording: it follows the first, so it has nothing to begin with."""
    return replace(options, start=PageStart(options.start.view), effects=None, relevance=None)


def _other_layers(options: PageOptions) -> Sequence[int] | int | None:
    return options.layers if options.other_layers is None else options.other_layers


def _side_names(one: Recording, other: Recording, names: Sequence[str] | None) -> Sequence[str]:
    """What the sides are called: by default the models, if they have different names."""
    if names is None:
        return ("A", "B") if one.model == other.model else (one.model, other.model)
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            "names must be two texts, one for each recording.",
            got="names = {names!r}",
            do='Pass, for example, names=["plain", "edited"].',
            names=names,
        )
    return names


def by_head(effects: Ablation | None) -> Ablation | None:
    """The effects, which must be those of single heads."""
    if effects is None or (isinstance(effects, Ablation) and effects.by == "head"):
        return effects
    raise ArgumentError(
        "effects must be the result of regard.ablate by head.",
        got="a sweep by {by}" if isinstance(effects, Ablation) else "{type}",
        do="Pass regard.ablate(model, inputs, metric).",
        by=getattr(effects, "by", ""),
        type=type(effects).__name__,
    )


def chosen(recording: Recording, layers: Sequence[int] | int | None) -> list[Call]:
    """The calls of some layers, in order."""
    wanted = None if layers is None else {layers} if isinstance(layers, int) else set(layers)
    calls = [call for call in recording.calls if wanted is None or call.layer in wanted]
    missing = sorted((wanted or set()) - {call.layer for call in recording.calls})
    if missing or not calls:
        known = sorted({call.layer for call in recording.calls})
        raise RecordingError(
            "layers must be among those recorded ({known}).",
            got="layers = {missing}" if missing else "no calls",
            do="Run the model inside the with block." if not known else "Choose some of them.",
            known=", ".join(map(str, known)) or Phrase("there are none"),
            missing=missing,
        )
    return calls


def start_of(calls: Sequence[Call], wanted: PageStart) -> dict[str, Any]:
    """What the page opens first, as places in the page instead of the model's numbers."""
    start: dict[str, Any] = {}
    if wanted.view is not None:
        start["view"] = _one_of("view", wanted.view, VIEWS)
    if wanted.theme is not None:
        start["theme"] = _one_of("theme", wanted.theme, ("light", "dark"))
    if wanted.compact:
        start["embed"] = True
    if wanted.what is not None:
        start["what"] = check_what(wanted.what, quantities_of(calls))
    place = 0
    if wanted.kind is not None:
        place = [call.kind for call in calls].index(
            _one_of("kind", wanted.kind, list(dict.fromkeys(call.kind for call in calls)))
        )
        start["call"] = place
    if wanted.layer is not None:
        # Of the requested kind, or of the kind that comes first.
        layers = {
            call.layer: number
            for number, call in reversed(list(enumerate(calls)))
            if wanted.kind in (None, call.kind)
        }
        start["call"] = place = layers[_one_of("layer", wanted.layer, sorted(layers))]
    numbers = calls[place].head_numbers
    if wanted.head is not None:
        start["head"] = numbers.index(_one_of("head", wanted.head, numbers))
        if wanted.view == "lines" and wanted.heads is None:
            start["heads"] = [start["head"]]
    if wanted.heads is not None:
        start["heads"] = [numbers.index(_one_of("heads", head, numbers)) for head in wanted.heads]
    return start


def _one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    if isinstance(value, bool) or value not in known:
        raise ArgumentError(
            "{name} must be one of those on the page ({known}).",
            got="{name} = {value!r}",
            do="Choose one of them.",
            name=name,
            known=", ".join(map(str, known)),
            value=value,
        )
    return value
