"""Modules that the warm process has imported, hidden until the program imports them itself.

So the program finds what it would find in a new interpreter, at the time when it would: torch's
seeds and hooks are set at `import torch`. Where something is not as it was when torch was really
imported (variables, another file of that name), this process is no use, and says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from compilescope.repair.trials.child.imports import tell_imported

_OURS = ("compilescope", "msgspec")
"""In a fresh process they are there from the start too."""


class Hidden:
    """The modules, by the package that they belong to."""

    def __init__(self, check: Callable[[], str], cold: Callable[[str], None]) -> None:
        """`check` says why torch would be another one if it was imported now; `cold` ends this
        process with that reason."""
        self._check = check
        self._cold = cold
        self._packages: dict[str, dict[str, ModuleType]] = {}
        self.after_torch: Callable[[], None] = lambda: None

    def hide(self, stays: Collection[str] = _OURS) -> None:
        own = sys.stdlib_module_names | set(sys.builtin_module_names) | set(stays)
        for name, module in list(sys.modules.items()):
            top = name.partition(".")[0]
            if top not in own and not top.startswith("_") and _file(sys.modules.get(top)):
                self._packages.setdefault(top, {})[name] = module
        for names in self._packages.values():
            for name in names:
                del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._packages:
            return None
        real = self._packages[name][name].__spec__
        spec = ModuleSpec(name, _HidingLoader(self))
        if real is not None:
            spec.origin, spec.has_location = real.origin, real.has_location
            spec.submodule_search_locations = real.submodule_search_locations
        return spec

    def invalidate_caches(self) -> None:
        """Nothing is cached."""

    def module(self, name: str) -> ModuleType:
        return self._packages[name][name]

    def show(self, name: str) -> None:
        """The program imports it."""
        reason = self._check() or self._other_file(name)
        if reason:
            self._cold(reason)
        shown = list(self._packages) if name == "torch" else [name]
        for each in shown:
            modules = self._packages.pop(each)
            sys.modules.update(modules)
            tell_imported(modules)
        if name == "torch":
            self.after_torch()

    def _other_file(self, name: str) -> str:
        """Would the program get another module of this name?"""
        was = _file(self._packages[name][name])
        found = PathFinder.find_spec(name, sys.path)
        now = found.origin if found is not None else None
        if was and now and os.path.realpath(was) == os.path.realpath(now):
            return ""
        return f"it has another module {name}"


class _HidingLoader(Loader):
    """Gives the module as it is."""

    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self._real: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = self._hidden.module(spec.name)
        self._real = module.__spec__  # Importing sets ours in its place.
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._real
        self._hidden.show(module.__name__)


def _file(module: ModuleType | None) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


def loaded_files(modules: Mapping[str, ModuleType]) -> set[str]:
    """The files of all that is imported."""
    files = (_file(module) for module in list(modules.values()))
    return {os.path.realpath(file) for file in files if file}
