"""How a forked child becomes the program: what a new interpreter would have set up for it."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import types
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from compilescope.repair.trials.child.imports import tell_imported
from compilescope.repair.trials.child.overlay import Overlay, ending_as_python, run_script
from compilescope.repair.trials.warm.environments import COLD, differing
from compilescope.settings import current_environment, read_settings, take_environment

_OURS = ("compilescope", "msgspec")
"""In a fresh process they are there from the start too."""


def become(order: Mapping[str, Any], environment: Mapping[str, str]) -> Callable[[], None]:
    """What is left to do at the end: run the program. `environment` is the warm process' own."""
    folder = Path(order["folder"])
    _take_streams(folder)
    os.chdir(order["cwd"])
    take_environment(order["environment"])
    command: list[str] = order["command"]
    sys.orig_argv = list(command)

    def cold(reason: str) -> None:
        (folder / COLD).write_text(reason, encoding="utf-8")
        os._exit(0)

    def check() -> str:
        names = differing(current_environment(), environment)
        return f"{names[0]} is set before torch is imported" if names else ""

    loaded = _loaded_files(sys.modules)
    hidden = _Hidden(check, cold)
    hidden.hide()
    if read_settings().run_dir is not None:
        hidden.after_torch = _begin_capture
    from compilescope.repair.trials.child import startup

    overlay = startup.begin()
    for path in overlay.paths:
        if path in loaded:
            cold(f"the warm process has imported {path}")
    return lambda: _run(command[1:], overlay)


def _take_streams(folder: Path) -> None:
    """The objects of Python's own streams stay: only what is behind them is another file."""
    for number, (name, flags) in enumerate(
        (
            ("stdin", os.O_RDONLY),
            ("stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            ("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        )
    ):
        descriptor = os.open(folder / name, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)


def _begin_capture() -> None:
    from compilescope.recorder import autoload

    # The program comes first. A run without events says that capture did not begin.
    with suppress(Exception):
        autoload.begin()


def _run(words: Sequence[str], overlay: Overlay) -> None:
    """As `python WORDS` does."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    first, *rest = words
    runner: Any = runpy
    if first == "-m":
        _first_on_path(os.getcwd())
        sys.argv = ["-m", *rest[1:]]
        with ending_as_python():
            runner._run_module_as_main(rest[0])
    elif first == "-c":
        _first_on_path("")
        sys.argv = ["-c", *rest[1:]]
        with ending_as_python():
            exec(compile(rest[0], "<string>", "exec", dont_inherit=True), main.__dict__)
    elif os.path.isdir(first) or zipfile.is_zipfile(first):
        sys.path.insert(0, os.path.abspath(first))
        sys.argv = list(words)
        with ending_as_python():
            runner._run_module_as_main("__main__", False)
    else:
        sys.argv = list(words)
        run_script(first, overlay)


def _first_on_path(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, folder)


# Modules that the warm process has imported, hidden until the program imports them itself.
#
# So the program finds what it would find in a new interpreter, at the time when it would: torch's
# seeds and hooks are set at `import torch`. Where something is not as it was when torch was really
# imported (variables, another file of that name), this process is no use, and says so.


class _Hidden:
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

    def __init__(self, hidden: _Hidden) -> None:
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


def _loaded_files(modules: Mapping[str, ModuleType]) -> set[str]:
    """The files of all that is imported."""
    files = (_file(module) for module in list(modules.values()))
    return {os.path.realpath(file) for file in files if file}
