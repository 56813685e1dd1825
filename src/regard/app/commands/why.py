"""``regard why``: which words and which heads an answer of a model rests on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard import atomic
from regard.app.languages import TEXTS, lang_option
from regard.app.output_errors import show
from regard.app.shared_options import check_page_file, force_option, model_option, pair_option
from regard.app.text_argument import HELP, read_argument
from regard.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

    from regard.app.answering_model import AnsweringModel
    from regard.heads import Roles
    from regard.heads.answer_shares import AnswerShares


@click.command(epilog=HELP)
@click.argument("text")
@model_option
@pair_option
@click.option(
    "--target", metavar="TOKEN", help='The token or class to explain, such as " Mary"; by default the answer.'
)
@click.option("--against", metavar="TOKEN", help="Why --target and not this one: the difference of logits.")
@click.option(
    "--row", type=int, metavar="N", help="The position at which the answer is read; −1 is the last."
)
@click.option(
    "--method",
    type=click.Choice(["relevance", "attribution", "gradient"]),
    default="relevance",
    show_default=True,
    help="How shares are computed.",
)
@click.option(
    "--most",
    "--top",
    "most",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="Print at most N heads.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=check_page_file,
    help="Also the page, with gradients.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print the share of every token as CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print the shares of tokens and heads as JSON.")
@lang_option
@force_option
def why(
    text: str,
    model: str | None,
    pair: str | None,
    target: str | None,
    against: str | None,
    row: int | None,
    method: str,
    most: int,
    out: Path | None,
    as_csv: bool,
    as_json: bool,
    lang: str,
    force: bool,
) -> None:
    """See which words an answer rests on, and which heads carried it.

    A decoder's answer is its next token, a classifier's its best class, that of a masked language model the
    word at its mask, and a translator's every token that it writes.

    \b
    regard why "The cat sat on the mat."
    regard why "The capital of France is" --model ./smollm2 --method attribution
    regard why @prompt.txt --model ./gpt2 --target " Mary" --against " John" --out why.html
    """
    from regard import machine

    machine.prepare()  # before torch is imported

    from regard.app.answering_model import answering_model
    from regard.views.terminal_weights import SafeConsole

    if as_csv and as_json:
        raise click.UsageError("Choose --csv or --json.")
    atomic.check_writable(out)
    quiet = SafeConsole(stderr=True) if as_csv or as_json else SafeConsole()
    other = None if pair is None else read_argument(pair)
    typed = read_argument(text)
    subject = answering_model(quiet, typed, model=model, pair=other, lang=lang)
    found = _shares(subject, row, target, against, method, lang)
    names = [subject.name(answer.target) for answer in found.answers]
    if as_csv:
        show(found.tokens(names, subject.tokens, subject.source_tokens).to_csv())
    elif as_json:
        show(_json(subject, found, names))
    else:
        _say(quiet, subject, found, most, lang)
    if out is not None:
        _write_page(quiet, subject, found, typed, out, force=force, lang=lang)


def _shares(
    subject: AnsweringModel,
    row: int | None,
    target: str | None,
    against: str | None,
    method: str,
    lang: str,
) -> AnswerShares:
    from regard.app.model_input import progress
    from regard.heads.answer_shares import answer_shares

    questions = subject.questions(row, target, against)
    with progress(TEXTS.say("why.asking", lang)) as report:
        found = answer_shares(subject.model, subject.inputs, questions, method=method, progress=report)
    found.recording.tokens = list(subject.tokens)
    if subject.source_tokens is not None:
        found.recording.source_tokens = list(subject.source_tokens)
    return found


def _say(
    console: Console,
    subject: AnsweringModel,
    found: AnswerShares,
    most: int,
    lang: str,
) -> None:
    from regard.app.model_input import progress
    from regard.heads import roles
    from regard.views.terminal_answers import show_answers

    looks: Roles | None = None
    with progress(TEXTS.say("reading.roles", lang)) as report:
        looks = roles(found.recording, progress=report)
    numbers = [answer.target for answer in found.answers]
    several = len(numbers) > 1
    if several:
        console.print(subject.text(numbers), style="bold", markup=False, highlight=False)
    against = found.answers[0].against
    show_answers(
        console,
        found,
        [subject.name(number).strip() if several else subject.label(number) for number in numbers],
        tokens=subject.tokens,
        source_tokens=subject.source_tokens,
        against=None if against is None else subject.label(against),
        roles=looks,
        most=most,
        lang=lang,
    )


def _json(subject: AnsweringModel, found: AnswerShares, names: list[str]) -> str:
    """Everything that was found, as one object."""
    tokens = list(found.tokens(names, subject.tokens, subject.source_tokens))
    answers: list[dict[str, Any]] = [
        {
            "row": answer.row,
            "answer": name,
            "target": answer.target,
            "against": answer.against,
            "logit": answer.logit,
            "probability": answer.probability,
            "tokens": [
                {key: row[key] for key in ("side", "position", "token", "share")}
                for row in tokens
                if row["row"] == answer.row
            ],
        }
        for answer, name in zip(found.answers, names, strict=True)
    ]
    whole = {"method": found.method, "answers": answers, "heads": list(found.heads)}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _write_page(
    console: Console,
    subject: AnsweringModel,
    found: AnswerShares,
    text: str,
    path: Path,
    *,
    force: bool,
    lang: str,
) -> None:
    """The page opened on the text, on what the method reads, at the head that carried the answer most."""
    from regard.app.commands.look import name_file
    from regard.app.model_input import busy
    from regard.views.page import estimate_page, page
    from regard.views.page.write_page import LARGEST

    size = estimate_page(found.recording)
    if size.nbytes > LARGEST and not force:
        raise ArgumentError(
            "A page can have at most {largest:.0f} MB; browsers become slow beyond that.",
            got="{in_words}",
            do="Shorten the text, or write it anyway with --force.",
            largest=LARGEST / 1e6,
            in_words=size.in_words(lang),
        )
    title = _asked(subject, found) + (text if len(text) <= 80 else f"{text[:79]}…")
    best: dict[str, Any] = max(found.heads, key=lambda head: abs(float(head["share"])))  # type: ignore[arg-type]
    start = {name: best[name] for name in ("kind", "layer", "head")} | _shown(found)
    with busy(console, TEXTS.say("look.writing", lang)):
        written = page(found.recording, path, title=title, view="text", force=force, lang=lang, **start)
    name_file(console, written, TEXTS.say("look.written", lang, megabytes=written.stat().st_size / 1e6))


def _asked(subject: AnsweringModel, found: AnswerShares) -> str:
    """The one answer that the page explains, for its title; nothing if there are several."""
    answer = found.answers[0]
    if len(found.answers) > 1:
        return ""
    other = "" if answer.against is None else f" − {subject.label(answer.against)}"
    return f"{subject.label(answer.target)}{other} ← "


def _shown(found: AnswerShares) -> dict[str, Any]:
    """What the page opens on: the relevance of the answer's row, or the quantity that shares are sums of."""
    answer = found.answers[0]
    if found.method == "attribution":
        return {"what": "contribution", "direction": answer.direction}
    if found.method == "relevance" and len(found.answers) == 1:
        return {"relevance": answer.row}
    return {"what": "product"}
