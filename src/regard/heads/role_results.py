"""The roles of heads: their scores, the clearest of them, and a pair of tokens that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.errors import ArgumentError
from regard.heads.head_table import PLACE
from regard.heads.significance import LEVEL
from regard.interception.call_types import Kind
from regard.languages import Texts
from regard.notebook_table import html_table
from regard.table import Table, Value

TEXTS = Texts("heads")

ROLES = (
    "previous", "next", "self", "first", "separator", "induction", "duplicate", "alignment", "same",
    "positional", "broad",
)  # fmt: skip
"""Every role, from the particular to the general."""

TIERS = (
    ("previous", "next", "self", "induction", "duplicate", "alignment"),
    ("first", "separator", "same", "positional"),
    ("broad",),
)
"""A clear role takes precedence over those of later tiers.

Equal tokens and distance are general roles, of which the earlier ones are special cases. The first token and
separators are where heads rest when what they look for is not there.
"""

CLEAR = 0.5
"""The least excess over chance of a clear role."""

SHORT = 32
"""Texts with fewer tokens are too short: a given key is hit by chance in more than 3 of 100 cases."""


@dataclass(frozen=True)
class Example:
    """A query and a key that show a role: their positions, their tokens, and the weight between them.

    >>> print(Example(0, 3, 2, 0.91, "sat", "cat"))
    'sat' → 'cat' (0.91)
    """

    batch: int
    query: int
    key: int
    weight: float
    query_token: str | None = None
    key_token: str | None = None

    def __str__(self) -> str:
        here = self.query if self.query_token is None else f"{self.query_token!r}"
        there = self.key if self.key_token is None else f"{self.key_token!r}"
        return f"{here} → {there} ({self.weight:.2f})"


@dataclass(frozen=True)
class Score:
    """How far a head plays a role, in [0, 1], and the score of attention by chance.

    >>> round(Score(0.9, 0.1).excess, 3)
    0.889
    """

    value: float
    chance: float = 0.0
    example: Example | None = None
    p: float | None = None
    """How likely shuffled weights score as high; None for what no shuffling changes (broad)."""
    adjusted: float | None = None
    """The same, corrected for the number of heads and roles that were tested."""

    @property
    def excess(self) -> float:
        """``(value − chance) / (1 − chance)``, at least 0: the part of the way from chance to certainty."""
        return max(0.0, (self.value - self.chance) / (1 - self.chance)) if self.chance < 1 else 0.0

    @property
    def clear(self) -> bool:
        """Whether the excess is at least 0.5, and significant where that can be told.

        >>> Score(0.9, 0.1, adjusted=0.001).clear, Score(0.9, 0.1, adjusted=0.2).clear
        (True, False)
        """
        return self.excess >= CLEAR and (self.adjusted is None or self.adjusted <= LEVEL)


@dataclass(frozen=True)
class Head:
    """One head of one call, with a score for each role that could be measured."""

    call: int
    name: str
    kind: Kind
    layer: int
    head: int
    run: int
    scores: Mapping[str, Score] = field(default_factory=dict)
    beside: bool = False
    """Whether heads of other kinds were recorded beside it, as in an encoder-decoder."""
    shown: str | None = field(default=None, compare=False)
    """The requested role, which is then shown instead of the best."""

    def __str__(self) -> str:
        kind = f"{self.kind} " if self.beside else ""
        return f"{kind}layer {self.layer} head {self.head} {self.in_words()}"

    @property
    def best(self) -> str | None:
        """The clearest role, or None if none is clear.

        A role is clear if its excess over chance is at least 0.5 and shuffled weights do not reach it too.
        A particular role (such as previous) that is clear takes precedence over a general one (positional)
        and over the places where heads rest (first). User-defined roles come before all others.

        >>> Head(0, "", "encoder", 0, 0, 0, {"previous": Score(0.8), "positional": Score(0.9)}).best
        'previous'
        """
        own = tuple(role for role in self.scores if role not in ROLES)
        for tier in (own, *TIERS):
            clear = [role for role in tier if role in self.scores and self.scores[role].clear]
            if clear:
                return max(clear, key=lambda role: self.scores[role].excess)
        return None

    @property
    def example(self) -> Example | None:
        """The pair of tokens that shows the best role, or the requested one."""
        role = self.shown or self.best
        return None if role is None or role not in self.scores else self.scores[role].example

    def in_words(self, lang: str = "en") -> str:
        """What the head does, in English or Chinese.

        >>> head = Head(0, "", "encoder", 2, 5, 0, {"previous": Score(0.934)})
        >>> head.in_words(), head.in_words("zh")
        ('attends to the previous token (0.93)', '关注前一个词元（0.93）')
        """
        role = self.shown or self.best
        if role is None or role not in self.scores:
            return TEXTS.say("role.none", lang)
        score = self.scores[role]
        key = "role.scored" if score.clear else "role.scored.unclear"
        return TEXTS.say(key, lang, role=in_words(role, lang), score=score.value)


@dataclass(frozen=True)
class Roles:
    """The roles of every head of a recording.

    ``for head in roles`` gives each; ``roles.strongest("previous")`` those that play a role best;
    ``roles.table`` all scores as a table, which goes to pandas, polars, Arrow, CSV and JSON.

    >>> import torch, regard
    >>> model = regard.nn.LanguageModel(50, width=16, heads=2, layers=1).eval()
    >>> with torch.no_grad(), regard.watch(model) as seen:
    ...     _ = model(torch.arange(1, 41)[None])
    >>> [head.head for head in regard.heads.roles(seen)]
    [0, 1]
    """

    heads: tuple[Head, ...]
    tokens: int | None = None
    """How many positions the texts have together, of the longest kind; None if not counted."""

    @property
    def short(self) -> bool:
        """Whether there is too little text for roles to mean anything: fewer than 32 tokens.

        A head that rests on one key out of n does so by chance in one of n cases.
        """
        return self.tokens is not None and self.tokens < SHORT

    @property
    def names(self) -> tuple[str, ...]:
        """Every role, followed by the user-defined ones."""
        own = dict.fromkeys(role for head in self.heads for role in head.scores if role not in ROLES)
        return (*ROLES, *own)

    def __repr__(self) -> str:
        clear = sum(head.best is not None for head in self.heads)
        return f"<Roles of {len(self)} heads, {clear} of them clear>"

    def _repr_html_(self) -> str:
        clear = self.clearest(len(self))
        others = [head for head in self.heads if head.best is None]
        rows = ((head.kind, head.layer, head.head, *_in_cells(head)) for head in (*clear, *others))
        return html_table(("kind", "layer", "head", "role", "score", "example"), rows, repr(self)[1:-1])

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[Head]:
        return iter(self.heads)

    def __getitem__(self, index: int) -> Head:
        return self.heads[index]

    def strongest(self, role: str, count: int = 5) -> tuple[Head, ...]:
        """The heads that score highest in a role, highest first; each shows that role."""
        check_role(role, self.names)
        able = [replace(head, shown=role) for head in self.heads if role in head.scores]
        return tuple(sorted(able, key=lambda head: -head.scores[role].value)[:count])

    def clearest(self, count: int = 5) -> tuple[Head, ...]:
        """The heads whose best role stands out most, clearest first; those that look everywhere come last."""
        clear = [(head.best, head) for head in self.heads if head.best is not None]
        clear.sort(key=lambda pair: (pair[0] == "broad", -pair[1].scores[pair[0]].excess))
        return tuple(head for _, head in clear[:count])

    @property
    def table(self) -> Table:
        """One row per head: where it is, its scores, its best role with its p-value and its example."""
        example = ("example_batch", "example_query", "example_key", "example_weight")
        columns = (*PLACE, *self.names, "best", "p", *example, "query_token", "key_token")
        return Table(columns, [self._row(head) for head in self.heads])

    def _row(self, head: Head) -> tuple[Value, ...]:
        scores = (head.scores[role].value if role in head.scores else None for role in self.names)
        shown = head.example
        example: tuple[Value, ...] = (None,) * 6
        if shown is not None:
            where = (shown.batch, shown.query, shown.key)
            example = (*where, shown.weight, shown.query_token, shown.key_token)
        place = (head.call, head.name, head.kind, head.layer, head.head, head.run)
        likely = None if head.best is None else head.scores[head.best].adjusted
        return (*place, *scores, head.best, likely, *example)

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The table as a ``polars.DataFrame``."""
        return self.table.to_polars()

    def to_arrow(self) -> Any:
        """The table as a ``pyarrow.Table``."""
        return self.table.to_arrow()

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as comma-separated text."""
        return self.table.to_csv(path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The table as a JSON list of records."""
        return self.table.to_json(path)


def _in_cells(head: Head) -> tuple[Value, ...]:
    """What a head does, its score, and the pair of tokens that shows it."""
    if head.best is None:
        return None, None, None
    shown = head.example
    named = shown is not None and shown.query_token is not None and shown.key_token is not None
    pair = f"{shown.query_token} → {shown.key_token}" if shown is not None and named else None
    return in_words(head.best), head.scores[head.best].value, pair


def in_words(role: str, lang: str = "en") -> str:
    """What a head with this role does.

    >>> in_words("next"), in_words("next", "zh")
    ('attends to the next token', '关注后一个词元')
    """
    if role not in ROLES:
        return TEXTS.say("role.own", lang, role=role)
    return TEXTS.say(f"role.{role}", lang)


def check_role(role: object, known: Sequence[str] = ROLES) -> None:
    """Raise unless this is the name of a role."""
    if role not in known:
        raise ArgumentError(
            "A role must be one of {known}.",
            got="{role!r}",
            do="Choose one of them.",
            known=", ".join(known),
            role=role,
        )
