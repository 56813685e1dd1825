"""Old names of arguments and of classes, which keep working for one release."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """Accept keyword arguments under their old names too, with a ``DeprecationWarning``.

    >>> @renamed_arguments(yes="force")
    ... def write(*, force: bool = False) -> bool:
    ...     return force
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     write(yes=True)
    True
    >>> print(caught[0].message)
    write(yes=) is now write(force=); the old name will stop working in the next release.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old in names.keys() & kwargs.keys():
                said = f"{function.__name__}({old}=) is now {function.__name__}({names[old]}=)"
                if names[old] in kwargs:
                    raise TypeError(f"{said}; pass only the new one.")
                warnings.warn(
                    f"{said}; the old name will stop working in the next release.",
                    DeprecationWarning,
                    stacklevel=2,
                )
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast(Function, call)

    return decorate


def renamed_names(module: str, **names: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that still knows the old names of what it exports, with a warning.

    >>> old_name = renamed_names("regard.deprecation", renamed="renamed_names")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     old_name("renamed") is renamed_names
    True
    >>> print(caught[0].message)
    regard.deprecation.renamed is now renamed_names; the old name will stop working in the next release.
    """

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is now {names[name]}; the old name will stop working in the next release.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(sys.modules[module], names[name])

    return look_up
