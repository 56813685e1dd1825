"""The HTML file of a playable: skeleton, style, program and starting numbers in one. It loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.languages import Texts
from regard.texts import LANGUAGES, read_table
from regard.views.html import html_document, json_in_html, policy, theme_of_choice
from regard.views.script_bundle import script

ASSETS = Path(__file__).parent / "assets"

TEXTS = Texts("play")

NOSCRIPT = (
    "<noscript>This page computes attention in the browser. Please allow JavaScript. · "
    "本页在浏览器中计算注意力，请启用 JavaScript。</noscript>"
)


@dataclass(frozen=True)
class Playable:
    """One of the pages: its name on the command line, that of its file and texts, and its lessons."""

    name: str
    page: str
    lessons: tuple[int, ...]

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"play-{self.page}.html"

    @property
    def entry(self) -> str:
        """Its module, as the bundles name it."""
        return f"play/assets/{self.page.replace('-', '_')}.js"

    def title(self, lang: str = "en") -> str:
        """Its title in a language.

        >>> PLAYABLES["query"].title(), PLAYABLES["query"].file
        ('One query', 'play-one-query.html')
        """
        return TEXTS.say(f"{self.page}.title", lang)


PLAYABLES = {
    one.name: one
    for one in (
        Playable("query", "one-query", (1, 3)),
        Playable("sentence", "sentence", (2, 5, 6, 10)),
        Playable("masks", "masks", (4, 9)),
        Playable("transformer", "transformer", (7,)),
    )
}
"""The pages in the order in which a learner meets them, by their names on the command line."""


@dataclass(frozen=True)
class CourseLinks:
    """Where the course is, seen from a page: addresses by language, and for lessons also their titles."""

    home: Mapping[str, str]
    lessons: Mapping[str, Sequence[tuple[str, str]]]  # (title, address)


def playable_html(
    playable: Playable,
    start: Mapping[str, Any] | None = None,
    *,
    lang: str = "en",
    beside: Sequence[Playable] = (),
    course: CourseLinks | None = None,
) -> str:
    """The page as text.

    ``start`` holds the numbers that the page begins with. It links to the pages ``beside`` it in the same
    folder and names its lessons; where the page is part of a site, it links to them in the ``course`` there.

    >>> "<title>One query · regard</title>" in playable_html(PLAYABLES["query"])
    True
    """
    program = script(playable.entry)
    data = {
        "page": playable.page,
        "language": lang,
        "links": [[one.page, one.file] for one in beside],
        "lessons": playable.lessons,
        "course": None if course is None else asdict(course),
        "start": start or {},
        "texts": {one: _steps_of_explain(one) for one in LANGUAGES},
        "errors": _errors_in(program),
    }
    body = "\n".join(
        [
            '<div id="play"></div>',
            NOSCRIPT,
            f'<script type="application/json" data-regard="play">{json_in_html(data)}</script>',
            f'<script type="module">{program}</script>',
        ]
    )
    style = theme_of_choice() + (ASSETS / "play.css").read_text(encoding="utf-8")
    return html_document(
        f"{playable.title(lang)} · regard",
        body,
        lang=lang,
        head=[policy(program), f"<style>\n{style}</style>"],
    )


def _steps_of_explain(lang: str) -> dict[str, str]:
    """The names of the steps and what they do, in the words of ``regard explain``."""
    found = read_table("lessons", lang)
    return {key: text for key, text in found.items() if key.startswith("explain.") and key.count(".") == 2}


def _errors_in(program: str) -> dict[str, str]:
    """The Chinese of the errors that the program may raise; their English is in the program."""
    return {key: text for key, text in read_table("errors", "zh").items() if f'"{key}"' in program}
