"""When torch arrives: recording begins as soon as the tests have imported it, and not before.

Importing it for them would change the order of their imports, and cost those who never need it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


@contextmanager
def once_imported(name: str, action: Callable[[], None]) -> Iterator[None]:
    """Call `action` once the module is there: now, or within the block, or never."""
    if name in sys.modules:
        action()
        yield
        return
    finder = _Arrival(name, action)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.leave()


class _Arrival(MetaPathFinder):
    """Finds nothing itself: it lets the others find, and acts once their module has run."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name = name
        self._action = action

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Loader) -> None:
        exec_module = loader.exec_module

        def exec_then_act(module: ModuleType) -> None:
            del loader.exec_module  # The loader is the module's own again.
            exec_module(module)
            # An import that failed may be tried again: only now is the waiting over.
            self.leave()
            self._action()

        loader.exec_module = exec_then_act  # type: ignore[method-assign]
