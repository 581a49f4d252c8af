"""libcst, loaded when the first text is parsed.

Importing it costs more than reading a trace of some megabytes, and most fixes have refused before
they look at a tree. So all below take it from here and name nothing of it while they are imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

__all__ = ["cst", "kinds", "metadata"]
T = TypeVar("T", bound=tuple[type, ...])

if TYPE_CHECKING:
    import libcst as cst
    import libcst.metadata as metadata
else:

    class _Late(ModuleType):
        """A module that is imported when the first of its names is asked for."""

        def __getattr__(self, name: str) -> Any:
            real = importlib.import_module(self.__name__)
            # From now on its names are found without coming here.
            self.__dict__.update(vars(real))
            return getattr(real, name)

    cst = _Late("libcst")
    metadata = _Late("libcst.metadata")


class _Kinds:
    """As a tuple of classes is: `isinstance` takes it, and it can be unpacked."""

    def __init__(self, make: Callable[[], tuple[type, ...]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> tuple[type, ...]:
        return self._make()

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._made)

    def __iter__(self) -> Iterator[type]:
        return iter(self._made)


def kinds(make: Callable[[], T]) -> T:
    """A tuple of libcst's classes for `isinstance`, made when it is first needed."""
    return cast("T", _Kinds(make))
