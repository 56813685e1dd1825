"""``regard explain``: attention step by step, with small vectors or those of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.app.languages import lang_option
from regard.app.output_errors import show
from regard.app.text_argument import HELP, read_argument

if TYPE_CHECKING:
    from regard.views.explanation import Explanation

FORMATS = ("terminal", "markdown", "html", "json")
ENDINGS = {".md": "markdown", ".html": "html", ".htm": "html", ".json": "json", ".txt": "terminal"}


@click.command(epilog=HELP)
@click.argument("text")
@click.option(
    "--mask", metavar="MASK", help='Which keys each query may see, for example "causal" or "window(1, 1)".'
)
@click.option("--heads", type=int, help="Number of heads.  [default: 1]")
@click.option("--width", type=int, help="Channels of the word vectors.  [default: 4]")
@click.option("--seed", type=int, help="Seed of the random vectors.  [default: 42]")
@click.option(
    "--vectors",
    metavar="FILE",
    help='A table of word vectors, JSON {"word": [numbers], …}; "example" is one for 我 喜欢 学习 AI 技术.',
)
@click.option(
    "--model",
    metavar="NAME-OR-PATH",
    help='Explain a transformers model, or "translator", the built-in one (used if only --layer, '
    "--head, --kind or --token is given).",
)
@click.option("--pair", metavar="TEXT", help="For a model: a second sentence, or the decoder's text.")
@click.option(
    "--kind",
    type=click.Choice(["encoder", "decoder", "cross"]),
    help="The part of the model that --layer refers to.",
)
@click.option("--layer", type=click.IntRange(0), help="Layer of the model.")
@click.option("--head", type=click.IntRange(0), help="Head of the layer.")
@click.option("--token", metavar="TOKEN", help="The query to explain: the text of a token, or its position.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Output format; by default given by the extension of --out, or for the terminal.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@lang_option
def explain(
    text: str,
    mask: str | None,
    heads: int | None,
    width: int | None,
    seed: int | None,
    vectors: str | None,
    model: str | None,
    pair: str | None,
    kind: str | None,
    layer: int | None,
    head: int | None,
    token: str | None,
    form: str | None,
    out: Path | None,
    lang: str,
) -> None:
    """Show attention over the words of TEXT, step by step, with every number.

    \b
    regard explain "I love AI"
    regard explain "I love AI" --mask causal --heads 2 --lang zh
    regard explain "我 喜欢 学习 AI 技术" --vectors example
    regard explain "The cat sat on the mat." --token 猫
    regard explain "The cat sat." --model ./gpt2 --layer 5 --head 1 --token cat --out cat.html
    """
    from regard.app.model_input import busy

    if model is not None or any(one is not None for one in (kind, layer, head, token)):
        from regard import machine

        machine.prepare()  # before torch is imported
    from regard import atomic
    from regard.lessons import explain as explained
    from regard.views.terminal_weights import SafeConsole

    form = form or _form_of(out)
    atomic.check_writable(out)
    with busy(SafeConsole(stderr=True), "…"):
        explanation = explained(
            read_argument(text),
            lang=lang,
            mask=mask,
            heads=heads,
            width=width,
            seed=seed,
            vectors=vectors,
            model=model,
            pair=None if pair is None else read_argument(pair),
            kind=kind,
            layer=layer,
            head=head,
            token=token,
        )
    if out is None:
        _print(explanation, form)
        return
    from regard.lessons.facts import text as say

    atomic.write_text(out, _written(explanation, form))

    SafeConsole(stderr=True).print(say("saved", lang, path=out), highlight=False, markup=False)


def _print(explanation: Explanation, form: str) -> None:
    if form != "terminal":
        show(_written(explanation, form))
        return

    from regard.views.explanation.explanation_terminal import show_explanation
    from regard.views.terminal_weights import SafeConsole

    show_explanation(SafeConsole(highlight=False), explanation)


def _written(explanation: Explanation, form: str) -> str:
    if form == "markdown":
        return explanation.to_markdown()
    if form == "html":
        return explanation.to_html()
    if form == "json":
        return explanation.to_json()
    from io import StringIO

    from regard.views.explanation.explanation_terminal import show_explanation
    from regard.views.terminal_weights import SafeConsole

    console = SafeConsole(file=StringIO(), width=100, highlight=False)
    show_explanation(console, explanation)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _form_of(out: Path | None) -> str:
    """The form that the ending of a file asks for; a file without an ending gets what the terminal shows."""
    ending = out.suffix.lower() if out else ""
    if ending and ending not in ENDINGS:
        from regard.errors import ArgumentError

        raise ArgumentError(
            "The file of an explanation must end in {known}.",
            got="{out}",
            do="Choose one of these endings, or name the form with --format.",
            known=", ".join(ENDINGS),
            out=out,
        )
    return ENDINGS.get(ending, "terminal")
