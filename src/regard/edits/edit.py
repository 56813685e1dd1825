"""Edits as values: one change of some heads, several in order, or one for each element of the batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from torch import Tensor

from regard.edits.edited_call import EditedCall
from regard.edits.scope import Scope
from regard.errors import ArgumentError, DtypeError
from regard.interception.call_types import InterceptedCall


class Edit(ABC):
    """A change to the attention of a model: a frozen value; ``a + b`` applies a and then b.

    >>> from regard import edits
    >>> edits.remove(heads=1) + edits.scale(0.5, layers=2)
    remove(heads=[1]) + scale(0.5, layers=[2])
    >>> edits.remove(heads=1) == edits.remove(heads=[1])
    True
    """

    @abstractmethod
    def steps(self) -> tuple[EditStep, ...]:
        """The changes one by one, in order."""

    @property
    def batch(self) -> int | None:
        """How many elements the batch must have; None if the edit is the same for all."""
        return None

    def __add__(self, other: object) -> Edit:
        if not isinstance(other, Edit):
            return NotImplemented
        return EditSequence((*_parts(self), *_parts(other)))


class EditStep(NamedTuple):
    """One change, and the elements of the batch that it is for; None means all of them."""

    edit: HeadEdit
    elements: tuple[int, ...] | None


@dataclass(frozen=True, repr=False)
class HeadEdit(Edit):
    """One change of some heads. What it changes, inputs or output, is what a subclass defines."""

    scope: Scope

    def steps(self) -> tuple[EditStep, ...]:
        return (EditStep(self, None),)

    def edit_inputs(self, edited: EditedCall) -> InterceptedCall:
        """The call to compute in place of this one."""
        return edited.call

    def edit_output(self, edited: EditedCall, output: Tensor) -> Tensor:
        """The output ``(batch, head, query, channel)`` in place of this one."""
        del edited
        return output

    def changes(self, edited: EditedCall) -> bool:
        """Whether this edit finds anything to change in the call."""
        return edited.rows is None or bool(edited.rows.any())

    def __repr__(self) -> str:
        own = (repr(getattr(self, field.name)) for field in fields(self) if field.name != "scope")
        name = type(self).__name__.removesuffix("Edit").lower()
        return f"{name}({', '.join([*own, *self.scope.said()])})"


@dataclass(frozen=True, repr=False)
class EditSequence(Edit):
    """Several edits, applied in order."""

    parts: tuple[Edit, ...]

    def steps(self) -> tuple[EditStep, ...]:
        return tuple(step for part in self.parts for step in part.steps())

    @property
    def batch(self) -> int | None:
        return next((part.batch for part in self.parts if part.batch is not None), None)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


def _parts(edit: Edit) -> tuple[Edit, ...]:
    return edit.parts if isinstance(edit, EditSequence) else (edit,)


@dataclass(frozen=True, repr=False)
class Each(Edit):
    """A separate edit for every element of the batch."""

    edits: tuple[Edit | None, ...]

    @property
    def batch(self) -> int:
        return len(self.edits)

    def steps(self) -> tuple[EditStep, ...]:
        return tuple(self._steps())

    def _steps(self) -> Iterator[EditStep]:
        # The elements are independent, so that equal first, second, … steps of several elements become one.
        waiting = [() if edit is None else edit.steps() for edit in self.edits]
        for number in range(max(map(len, waiting))):
            same: dict[HeadEdit, list[int]] = {}
            for element, steps in enumerate(waiting):
                if number < len(steps):
                    same.setdefault(steps[number].edit, []).append(element)
            for edit, elements in same.items():
                yield EditStep(edit, tuple(elements))

    def __repr__(self) -> str:
        return f"each([{', '.join(map(repr, self.edits))}])"


def each(edits: Iterable[Edit | None]) -> Edit:
    """Give every element of the batch its own edit, so that one forward pass tries all of them.

    None leaves an element unchanged.

    >>> from regard.edits import remove
    >>> each([remove(layers=0, heads=head) for head in range(3)]).batch
    3
    """
    given: Sequence[object] = tuple(edits) if isinstance(edits, Iterable) else (edits,)
    for one in given:
        if one is not None and not isinstance(one, Edit):
            raise DtypeError(
                "each needs a list of edits, one per element of the batch.",
                got="{type}",
                do="Pass, for example, each([remove(heads=0), remove(heads=1)]).",
                type=type(one).__name__,
            )
        if isinstance(one, Edit) and one.batch is not None:
            raise ArgumentError(
                "An edit in each must be for one element of the batch.",
                got="each within each",
                do="Put all of them into one list.",
            )
    if not given:
        raise ArgumentError(
            "each needs an edit for every element of the batch.", got="an empty list", do="Pass at least one."
        )
    return Each(given)  # type: ignore[arg-type]
