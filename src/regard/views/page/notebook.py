"""``regard.show()``: a page inside a notebook, which also works after the notebook is exported."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard import atomic
from regard.checks import check_integer
from regard.deprecation import renamed_arguments
from regard.recording import Recording
from regard.views.page.page_html import document
from regard.views.page.page_payload import TokenDisplay
from regard.views.page.page_relevance import rows_asked
from regard.views.page.write_page import PageOptions, PageStart, by_head, payload_for

if TYPE_CHECKING:
    from torch import Tensor

    from regard.ablation import Ablation


class Display:
    """A page that a notebook shows as the value of a cell.

    It has its own frame, so that it cannot interfere with other pages or with the notebook.
    ``data`` is the whole page; ``save`` writes it.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> with torch.no_grad(), regard.watch(model) as seen:
    ...     _ = model(torch.tensor([[5, 6, 7]]))
    >>> regard.show(seen).data[:15]
    '<!doctype html>'
    """

    def __init__(self, data: str, height: int) -> None:
        self.data = data
        self.height = height

    def __repr__(self) -> str:
        return f"<Display of a page, {len(self.data) / 1e6:.2g} MB: show it in a notebook, or save(path) it>"

    def _repr_html_(self) -> str:
        # Sandboxed: the page runs its script and may offer a file, and reaches nothing of the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.data)}" title="attention" '
            f'sandbox="allow-scripts allow-downloads" allow="clipboard-write" '
            f'style="width: 100%; height: {self.height}px; border: 0;"></iframe>'
        )

    def save(self, path: str | Path) -> Path:
        """Write the page as a file."""
        atomic.write_text(path, self.data)
        return Path(path)


@renamed_arguments(yes="force")
def show(
    recording: Recording,
    other: Recording | None = None,
    *,
    height: int = 720,
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
    compact: bool = False,
) -> Display:
    """A recording, or two compared, in a Jupyter notebook: the page of :func:`regard.page`.

    It is ``height`` pixels high.

    ``compact=True`` hides all toolbars, for slides and blogs; keyboard shortcuts still work.
    The other options are those of ``page()``.

    >>> import torch, regard
    >>> model = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True)
    >>> with regard.watch(model) as seen:
    ...     _ = model(torch.randn(1, 5, 16))
    >>> show(seen)._repr_html_().startswith("<iframe")
    True
    """
    options = PageOptions(
        batch=batch,
        layers=layers,
        other=other,
        other_layers=other_layers,
        names=names,
        title=title,
        lang=lang,
        start=PageStart(view, kind, layer, head, compact=compact, what=what),
        wording=TokenDisplay(words, source_words),
        effects=by_head(effects),
        direction=direction,
        relevance=rows_asked(relevance),
        force=force,
    )
    return displayed(recording, options, height)


def displayed(recording: Recording, options: PageOptions, height: int) -> Display:
    """The page with these options, to be shown in a notebook."""
    check_integer("height", height, example=720)
    return Display(document(payload_for(recording, options)), height)
