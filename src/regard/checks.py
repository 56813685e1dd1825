"""Checks of single arguments: each returns the value, or raises an error with its name and its range.

>>> check_integer("heads", 8)
8
>>> check_integer("heads", 0)
Traceback (most recent call last):
regard.errors.ArgumentError: heads must be a whole number, 1 or more. Got heads = 0. Pass a positive integer.

NumPy's numbers count as numbers; ``True`` and ``False`` do not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from numbers import Integral
from typing import Any, TypeGuard

from regard.errors import ArgumentError

SHOWN = 60
"""How many characters of a wrong argument an error shows."""


def is_integer(given: object, least: float = -math.inf, most: float = math.inf) -> TypeGuard[int]:
    """Whether this is a whole number from ``least`` to ``most``.

    >>> is_integer(3, 0, 4), is_integer(3.0), is_integer(True), is_integer(-1, 0)
    (True, False, False, False)
    """
    if isinstance(given, bool) or not isinstance(given, Integral):
        return False
    return least <= int(given) <= most


def is_index(given: object, count: int) -> TypeGuard[int]:
    """Whether this is one of ``0 … count − 1``.

    >>> is_index(4, 5), is_index(5, 5), is_index(-1, 5)
    (True, False, False)
    """
    return is_integer(given, 0, count - 1)


def is_number(given: object, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether this is a finite number from ``least`` to ``most``.

    >>> is_number(0.5, 0, 1), is_number(math.nan), is_number(True), is_number("1")
    (True, False, False, False)
    """
    number = _float(given)
    return least <= number <= most and math.isfinite(number)


def check_integer(
    name: str, given: Any, *, least: int = 1, most: int | None = None, example: int | None = None
) -> int:
    """A whole number from ``least`` to ``most``; the error suggests ``example``.

    >>> check_integer("n", 9, least=0, most=5)
    Traceback (most recent call last):
    regard.errors.ArgumentError: n must be a whole number from 0 to 5. Got n = 9. Pass an integer in range.
    """
    if is_integer(given, least, math.inf if most is None else most):
        return int(given)
    raise ArgumentError(
        "{name} must be a whole number, {least} or more."
        if most is None
        else "{name} must be a whole number from {least} to {most:,}.",
        got="{name} = {given}",
        do="Try {example}."
        if example is not None
        else "Pass a positive integer."
        if (least, most) == (1, None)
        else "Pass an integer in range.",
        name=name,
        least=least,
        most=most,
        example=example,
        given=_shown(given),
    )


def check_integers(name: str, given: int | Iterable[int], *, least: int = 0) -> tuple[int, ...]:
    """One whole number or several, in their order; at least one.

    >>> check_integers("layers", 3), check_integers("layers", [2, 0])
    ((3,), (2, 0))
    """
    found: tuple[Any, ...] = tuple(given) if isinstance(given, Iterable) else (given,)
    for one in found:
        if not is_integer(one, least):
            raise ArgumentError(
                "{name} must be whole numbers, {least} or more.",
                got="{given}",
                do="Pass one number or a list of them.",
                name=name,
                least=least,
                given=_shown(one),
            )
    if not found:
        raise ArgumentError(
            "{name} must name at least one.", got="an empty list", do="Omit it to select all.", name=name
        )
    return tuple(int(one) for one in found)


def check_position(name: str, given: Any, length: int) -> int:
    """A position in a text of this length, counted from 0; −1 is the last.

    >>> check_position("row", -1, 5), check_position("row", 3, 5)
    (4, 3)
    """
    if not is_integer(given, -length, length - 1):
        raise ArgumentError(
            "{name} must be a position in the text (0 … {last}).",
            got="{name} = {given}",
            do="Count from 0; −1 is the last.",
            name=name,
            last=length - 1,
            given=_shown(given),
        )
    return given % length


def check_number(
    name: str, given: Any, least: float, most: float = math.inf, *, example: float | None = None
) -> float:
    """A finite number from ``least`` to ``most``.

    >>> check_number("residual", 0.5, 0, 1)
    0.5
    >>> check_number("residual", 2, 0, 1, example=0.5)
    Traceback (most recent call last):
    regard.errors.ArgumentError: residual must be a number from 0 to 1. Got residual = 2. Try 0.5.
    """
    if is_number(given, least, most):
        return float(given)
    raise ArgumentError(
        "{name} must be a finite number, {least:g} or more."
        if most == math.inf
        else "{name} must be a number from {least:g} to {most:g}.",
        got="{name} = {given}",
        do="Omit it to use the default." if example is None else "Try {example}.",
        name=name,
        least=least,
        most=most,
        example=example,
        given=_shown(given),
    )


def check_positive(name: str, given: Any, *, example: float | None = None) -> float:
    """A finite number above 0.

    >>> check_positive("softcap", 0, example=50)
    Traceback (most recent call last):
    regard.errors.ArgumentError: softcap must be a finite number above 0. Got softcap = 0. Try 50.
    """
    number = _float(given)
    if 0 < number < math.inf:
        return number
    raise ArgumentError(
        "{name} must be a finite number above 0.",
        got="{name} = {given}",
        do="Omit it to use the default." if example is None else "Try {example}.",
        name=name,
        example=example,
        given=_shown(given),
    )


def check_probability(name: str, given: Any) -> float:
    """A probability of dropping something: at least 0 and below 1.

    >>> check_probability("dropout", 0)
    0.0
    """
    number = _float(given)
    if 0 <= number < 1:
        return number
    raise ArgumentError(
        "{name} must be a probability, at least 0 and below 1.",
        got="{name} = {given}",
        do="Try 0.1, or 0 for none.",
        name=name,
        given=_shown(given),
    )


def check_choice(name: str, given: Any, known: Collection[object]) -> Any:
    """One of the known values.

    >>> check_choice("norm", "middle", ("pre", "post"))
    Traceback (most recent call last):
    regard.errors.ArgumentError: norm must be one of pre, post. Got norm = 'middle'. Choose one of them.
    """
    if given in tuple(known):
        return given
    raise ArgumentError(
        "{name} must be one of {known}.",
        got="{name} = {given}",
        do="Choose one of them.",
        name=name,
        known=", ".join(map(str, known)),
        given=_shown(given),
    )


def check_members(
    name: str, given: int | Iterable[int] | None, known: Collection[int]
) -> frozenset[int] | None:
    """One or several of these numbers; None, which means all of them, stays None.

    >>> sorted(check_members("layers", [2, 0], range(3)))
    [0, 2]
    """
    if given is None:
        return None
    asked = [given] if isinstance(given, int) else list(given)
    if not asked or any(isinstance(one, bool) or one not in known for one in asked):
        raise ArgumentError(
            "{name} must be among {known}.",
            got="{name} = {given}",
            do="Count from 0, or omit it to use all.",
            name=name,
            known=", ".join(map(str, sorted(known))),
            given=_shown(given),
        )
    return frozenset(asked)


def _float(given: Any) -> float:
    """The number as a float; NaN, which is in no range, if this is not a number."""
    if isinstance(given, (bool, str, bytes)):
        return math.nan
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return math.nan


def _shown(given: object) -> str:
    return repr(given)[:SHOWN]
