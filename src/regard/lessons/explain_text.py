"""``explain()``: attention over a text, every step with its formula, shape and numbers.

Without a model the vectors are small, so that a reader can follow by hand: random ones, or those of
a table of words. With a model they are the model's own: one query of one head, from a recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.errors import ArgumentError
from regard.kernels.reference import Numbers, ReferenceStep, Trace
from regard.lessons.facts import text as say
from regard.lessons.model_explanation import explain_model
from regard.lessons.number_grid import grid_of, looks_of
from regard.lessons.sentence_explanation import PROJECTIONS, attend_sentence
from regard.lessons.word_attention import EXAMPLE, Vectors, attend_words, check_vectors, read_vectors
from regard.masks import Mask, parse
from regard.views.explanation import Explanation, Step

TRANSLATOR = "translator"
"""The model name of the built-in translator."""

TABLE = "example"
"""The name of the table of word vectors that comes with regard."""

_FORMULAS = {
    "x": "x",
    "w_q": "W_q",
    "w_k": "W_k",
    "w_v": "W_v",
    "w_o": "W_o",
    "queries": "q = x W_q",
    "keys": "k = x W_k",
    "values": "v = x W_v",
    "q": "q = [q₀ q₁ …]",
    "k": "k = [k₀ k₁ …]",
    "v": "v = [v₀ v₁ …]",
    "dots": "q kᵀ",
    "scores": "s = q kᵀ / √{channels}",
    "masked": "s = −∞",
    "lse": "lse = log Σ exp(s)",
    "weights": "w = exp(s − lse)",
    "heads": "o = w v",
    "joined": "o = [o₀ o₁ …]",
    "output": "y = o W_o",
}
_PAIRS = ("dots", "scores", "masked", "weights")


def explain(
    text: str,
    *,
    lang: str = "en",
    mask: Mask | str | None = None,
    heads: int | None = None,
    width: int | None = None,
    seed: int | None = None,
    vectors: str | Path | Mapping[str, Sequence[float]] | None = None,
    model: str | Path | None = None,
    pair: str | None = None,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    token: int | str | None = None,
) -> Explanation:
    """Attention over ``text``, step by step; ``str()`` of the result is Markdown.

    Args:
        text: a sentence.
        lang: ``"en"`` or ``"zh"``.
        mask: which keys each query may see, as a mask or its text, for example ``"causal"``.
        heads: the number of heads, by default 1.
        width: channels of the word vectors, by default 4.
        seed: of the random vectors, by default 42.
        vectors: a table of word vectors, or the JSON file of one; ``"example"`` comes with regard.
        model: explain a model's own numbers: ``"translator"`` is the built-in one, anything else a
            folder or a name on the hub. The built-in one is used if only ``kind``, ``layer``, ``head`` or
            ``token`` is given.
        pair: for a model, the second sentence or the decoder's text.
        kind: ``"encoder"``, ``"decoder"`` or ``"cross"``.
        layer: of the model.
        head: of the layer.
        token: the query to explain, as its text or its position.

    >>> import regard
    >>> explanation = regard.explain("I love AI", mask="causal")
    >>> [step.name for step in explanation.steps][:5]
    ['x', 'w_q', 'queries', 'w_k', 'keys']
    >>> print(str(explanation).splitlines()[0])
    # I love AI
    """
    small = {"mask": mask, "heads": heads, "width": width, "seed": seed, "vectors": vectors}
    chosen = {"pair": pair, "kind": kind, "layer": layer, "head": head, "token": token}
    if model is not None or any(value is not None for value in chosen.values()):
        _refuse("A model has its own vectors, heads and masks.", small)
        name = None if model is None or str(model) == TRANSLATOR else model
        return explain_model(
            text, lang=lang, model=name, pair=pair, kind=kind, layer=layer, head=head, token=token
        )
    rule = parse(mask) if isinstance(mask, str) else mask
    if vectors is not None:
        _refuse("A table has its own vectors, and one head.", {"heads": heads, "width": width, "seed": seed})
        return _of_words(text, vectors, rule, lang)
    return _of_sentence(
        text,
        rule,
        lang,
        heads=1 if heads is None else heads,
        width=4 if width is None else width,
        seed=42 if seed is None else seed,
    )


def _refuse(must: str, options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ArgumentError(must, got="{given}", do="Omit them.", given=", ".join(given))


def _of_sentence(
    text: str, mask: Mask | None, lang: str, *, heads: int, width: int, seed: int
) -> Explanation:
    lesson = attend_sentence(text, width=width, heads=heads, mask=mask, seed=seed)
    about = [say("explain.about.sentence", lang, words=len(lesson.words), width=width, heads=heads)]
    # With one head there is nothing to split.
    left_out = {"q", "k", "v", "joined"} if heads == 1 else set()
    weights = lesson.trace["weights"].mean(axis=0)
    title = "explain.looks" if heads == 1 else "explain.looks.heads"
    return _explanation(lesson.words, lesson.trace, left_out, weights, about, mask, lang, title)


def _of_words(
    text: str, vectors: str | Path | Mapping[str, Sequence[float]], mask: Mask | None, lang: str
) -> Explanation:
    known, name = _table(vectors)
    found = attend_words(text, known, mask=mask)
    trace = Trace([ReferenceStep("x", "x", found.trace["q"])])
    trace.steps.extend(step for step in found.trace if step.name not in ("q", "k", "v", "output"))
    trace.steps.append(ReferenceStep("mixed", "weights x", found.trace.output))
    width = found.trace["q"].shape[-1]
    about = [say("explain.about.words", lang, words=len(found.words), width=width, table=name)]
    return _explanation(found.words, trace, set(), found.weights, about, mask, lang, "explain.looks")


def _table(vectors: str | Path | Mapping[str, Sequence[float]]) -> tuple[Vectors, str]:
    if isinstance(vectors, Mapping):
        plain = {word: list(numbers) for word, numbers in vectors.items()}
        return check_vectors(plain, "vectors"), "vectors"
    path = EXAMPLE if str(vectors) == TABLE else Path(vectors).expanduser()
    return read_vectors(path), path.name


def _explanation(
    words: tuple[str, ...],
    trace: Trace,
    left_out: set[str],
    weights: Numbers,
    about: list[str],
    mask: Mask | None,
    lang: str,
    looks_title: str,
) -> Explanation:
    if mask is not None:
        about = [*about, say("explain.about.mask", lang, mask=mask)]
    steps = tuple(_step(step, trace, words, lang) for step in trace if step.name not in left_out)
    return Explanation(
        " ".join(words),
        tuple(about),
        lang,
        steps,
        say(looks_title, lang),
        looks_of(words, words, weights, lang),
    )


def _step(step: ReferenceStep, trace: Trace, words: tuple[str, ...], lang: str) -> Step:
    value = step.value[..., None] if step.name == "lse" else step.value
    channels = trace["q" if any(one.name == "q" for one in trace) else "x"].shape[-1]
    if step.name in _PAIRS:
        columns = words
    elif step.name == "lse":
        columns = ("",)
    else:
        columns = tuple(str(channel) for channel in range(value.shape[-1]))
    rows = tuple(map(str, range(len(value)))) if step.name in PROJECTIONS else words
    stack = value if value.ndim == 3 else value[None]
    return Step(
        name=step.name,
        title=say(f"explain.{step.name}.title", lang),
        says=say(f"explain.{step.name}.says", lang).format(channels=channels),
        formula=_FORMULAS.get(step.name, "y = w x").format(channels=channels),
        shape=step.value.shape,
        grids=tuple(
            grid_of(
                one,
                rows,
                columns,
                title=say("explain.head", lang, head=place) if len(stack) > 1 else "",
                weights=step.name == "weights",
            )
            for place, one in enumerate(stack)
        ),
    )
