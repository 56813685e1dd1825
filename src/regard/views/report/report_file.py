"""``write_report()``: the results of a survey as files that open in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from regard.heads.survey.corpus_batches import CorpusBatches
from regard.heads.survey.survey_folder import replace_file
from regard.heads.survey.survey_results import Survey
from regard.heads.survey.surveyed_model import SurveyedModel
from regard.languages import check_language
from regard.recording import Recording
from regard.views.html import visible_text
from regard.views.page import estimate_page, page
from regard.views.report.report_html import document

LARGEST = 16_000_000
"""Bytes above which the page of an example shows only the layer of the example."""


def write_report(
    survey: Survey,
    subject: SurveyedModel,
    batches: CorpusBatches,
    folder: Path,
    *,
    pages: int = 12,
    lang: str = "en",
) -> Path:
    """Write ``report.html``, and ``examples/NNN.html`` for the ``pages`` texts that are the best examples.

    ``lang`` is the language of the report, "en" or "zh", and the one in which the pages open.
    """
    check_language(lang)
    examples = list(survey.examples())
    links = _write_pages(survey, subject, batches, folder, examples, pages, lang)
    text = document(survey, examples, links, subject.tokens, lang)
    path = folder / "report.html"
    replace_file(path, visible_text(text).encode("utf-8"))
    return path


def _write_pages(
    survey: Survey,
    subject: SurveyedModel,
    batches: CorpusBatches,
    folder: Path,
    examples: Sequence[dict[str, Any]],
    count: int,
    lang: str,
) -> dict[int, str]:
    """Write the pages of the best examples; return the link of each example whose text has a page."""
    chosen = _chosen(survey, examples, count)
    parts = batches.find(list(chosen)) if chosen else {}
    links: dict[int, str] = {}
    for number, (place, first) in enumerate(chosen.items()):
        if place not in parts:
            continue  # the corpus has changed in the meantime; the report still has the rest
        recording = subject.record(parts[place])
        layers = None if estimate_page(recording).nbytes <= LARGEST else [first["layer"]]
        name = f"examples/{number:03d}.html"
        title = f"{parts[place].where} · {Path(subject.reader.name).name}"
        page(
            recording,
            folder / name,
            layers=layers,
            title=title,
            lang=lang,
            view="lines",
            layer=first["layer"],
            head=first["head"],
        )
        for index, example in enumerate(examples):
            if (example["document"], example["part"]) == place and layers in (None, [example["layer"]]):
                links[index] = f"{name}#{_address(recording, example, layers)}"
    return links


def _chosen(
    survey: Survey, examples: Sequence[dict[str, Any]], count: int
) -> dict[tuple[int, int], dict[str, Any]]:
    """Different texts, each with the head it is the best example of; heads with clear roles come first."""
    clear = {
        (head.name, head.layer, head.head): 0.0 if head.best is None else head.scores[head.best].excess
        for head in survey.heads
    }
    best = [one for one in examples if not one["rank"]]
    best.sort(key=lambda one: -clear[one["name"], one["layer"], one["head"]])
    chosen: dict[tuple[int, int], dict[str, Any]] = {}
    for one in best:
        if len(chosen) < count:
            chosen.setdefault((one["document"], one["part"]), one)
    return chosen


def _address(recording: Recording, example: dict[str, Any], layers: Sequence[int] | None) -> str:
    """The fragment of the URL that opens the head of the example, at its query."""
    calls = [call for call in recording if layers is None or call.layer in layers]
    for index, call in enumerate(calls):
        if (call.name, call.layer) == (example["name"], example["layer"]):
            head = call.head_numbers.index(example["head"])
            return urlencode(
                {"view": "lines", "call": index, "head": head, "heads": head, "query": example["query"]}
            )
    return ""
