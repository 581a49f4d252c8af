"""Does something as soon as a module has been imported, whoever imports it."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable, Collection
from importlib.machinery import ModuleSpec
from typing import Any

from compilescope.record.uncollected import uncollected


def after_import(name: str, do: Callable[[], None]) -> None:
    """Call `do` once: now, if the module is there already."""
    if name in sys.modules:
        do()
    else:
        sys.meta_path.insert(0, _Watcher(name, do))


def tell_imported(names: Collection[str]) -> None:
    """These modules have come at once, without being looked for one by one."""
    for watcher in list(sys.meta_path):
        if isinstance(watcher, _Watcher) and watcher.name in names and watcher in sys.meta_path:
            sys.meta_path.remove(watcher)
            watcher.do()


class _Watcher:
    """Finds nothing by itself."""

    def __init__(self, name: str, do: Callable[[], None]) -> None:
        self.name = name
        self.do = do

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def run_then_do(module: Any) -> None:
                # Most of what an import makes stays: collecting in between is a fifth of its time.
                with uncollected():
                    run(module)
                    # Nor is it looked at later: at Python's end that is a second for torch.
                    gc.freeze()
                self.do()

            loader.exec_module = run_then_do
        return spec

    def invalidate_caches(self) -> None:
        """Nothing is cached."""
