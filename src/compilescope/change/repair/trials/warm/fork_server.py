"""The warm process at work: it forks a child for each order, which becomes the program and ends as
Python does.

What was imported before the fork is not taken apart: that would be most of the work, for nothing.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import gc
import importlib
import inspect
import itertools
import json
import linecache
import os
import runpy
import sys
import threading
import types
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from compilescope.base.processes.channel import Channel
from compilescope.base.processes.fork import fork_is_safe, serve_forks
from compilescope.base.settings import (
    current_environment,
    read_settings,
    take_environment,
)
from compilescope.change.repair.trials.child.imports import tell_imported
from compilescope.change.repair.trials.child.overlay import Overlay, ending_as_python, run_script
from compilescope.change.repair.trials.warm.environments import (
    COLD,
    IMPORTED,
    Imports,
    changed,
    differing,
    to_become,
)
from compilescope.instrument.torchapi.first_imports import first_imports, imports_start_workers

_PRELOADED = (
    "compilescope.instrument.recorder.autoload",
    "compilescope.instrument.recorder.journal",
    "compilescope.instrument.recorder.recorder",
    "compilescope.instrument.torchapi.hook",
    "compilescope.instrument.torchapi.install",
    "compilescope.change.repair.trials.child.startup",
    "compilescope.change.repair.trials.child.tasks",
    "compilescope.change.repair.trials.child.prober",
    "compilescope.change.repair.trials.child.surveyor",
    "compilescope.change.repair.trials.replay_checks",
)
Program = Callable[[], None]
Environments: TypeAlias = "dict[str, dict[str, str]]"
"""By package: the variables when it was imported."""
_known_modules: frozenset[str] = frozenset()
"""What was imported before the child was forked."""
_folder: Path | None = None
"""In a child: where it writes."""


def serve(descriptor: int, imports: Imports) -> Program | None:
    """None at the end; in a child, the program that it is to run. `imports` come first."""
    global _known_modules
    control = Channel.given(descriptor)
    environments = _preload(imports)
    _known_modules = frozenset(sys.modules)
    hello = {"safe": fork_is_safe(), "modules": sorted(_top_level())}
    control.send(json.dumps(hello).encode())
    order = serve_forks(control, _learn)
    return None if order is None else _child(json.loads(order), environments)


# What the warm process imports for its children.
#
# torch, Dynamo and our own code, then whatever parts of torch a child turned out to need. Importing
# only: no operator runs, so no thread starts.


def _learn(order: bytes, is_last: bool) -> None:
    """What one child imported, the next one finds."""
    global _known_modules
    try:
        names = json.loads(Path(json.loads(order)["folder"], IMPORTED).read_bytes())
    except (OSError, ValueError, KeyError):
        return
    if learn(names):
        _known_modules = frozenset(sys.modules)


def _report_imported(names: list[str]) -> None:
    """In the child, at its end."""
    if _folder is not None:
        (_folder / IMPORTED).write_text(json.dumps(names), encoding="utf-8")


def _child(order: dict[str, Any], environments: Environments) -> Program:
    if "task" in order:
        _do(order)
    global _folder
    _folder = Path(order["folder"])
    return _become(order, environments)


def _do(order: dict[str, Any]) -> None:
    """A function of ours, JSON to JSON. It never returns."""
    module, _, name = order["task"].partition(":")
    status = 1
    try:
        function: Any = getattr(importlib.import_module(module), name)
        answer = json.dumps({"answer": function(order["payload"])})
        Path(order["answer"]).write_text(answer, encoding="utf-8")
        status = 0
    except Exception:  # The border of a worker: whoever asked does it again, and sees it.
        pass
    finally:
        os._exit(status)


def _preload(imports: Imports) -> Environments:
    """Leaves the process as quiet as it was: caches empty, collector on. Variables are changed as
    the program changes them. Gives what they were, by package."""
    started_with = current_environment()
    found: Environments = {}
    for name, changes in imports:
        take_environment(changed(started_with, changes))
        _import([name])
        found |= dict.fromkeys(_top_level() - found.keys(), current_environment())
    _import(itertools.chain(["torch"], first_imports(), _PRELOADED))
    return found | dict.fromkeys(_top_level() - found.keys(), current_environment())


_LEARNT = ("torch.", "compilescope.instrument.torchapi.")


def learn(names: Collection[str]) -> bool:
    """Import parts of torch and hooks on it that a child had to import: the next one will need
    them too. Was there anything to import?"""
    new = [name for name in names if name not in sys.modules and name.startswith(_LEARNT)]
    if new and not imports_start_workers():
        _import(new)
    return bool(new)


def _import(names: Iterable[str]) -> None:
    gc.disable()  # Most of what an import makes stays.
    for name in names:
        with contextlib.suppress(Exception):  # Then the program imports it, as ever.
            importlib.import_module(name)
    linecache.clearcache()
    importlib.invalidate_caches()
    cached: Any = inspect
    # By file name: the main file of a child is another one.
    for known in ("modulesbyfile", "_filesbymodname"):
        getattr(cached, known, {}).clear()
    # What is here stays: a child's collector need not look at it, nor copy its pages. To look for
    # garbage in it first would take longer than all of that is worth.
    gc.freeze()
    gc.enable()


def _top_level() -> set[str]:
    """The names that are imported now, without their parts."""
    return {name.partition(".")[0] for name in list(sys.modules)} - {"__main__"}


_OURS = ("compilescope", "msgspec")
"""In a fresh process they are there from the start too."""


def _become(order: Mapping[str, Any], environments: Environments) -> Callable[[], None]:
    """What is left to do at the end: run the program."""
    folder = Path(order["folder"])
    _take_streams(folder)
    os.chdir(order["cwd"])
    take_environment(order["environment"])
    command: list[str] = order["command"]
    sys.orig_argv = list(command)

    def cold(reason: str, imports: Imports | None = None) -> None:
        told = {"reason": reason, "imports": imports}
        (folder / COLD).write_text(json.dumps(told), encoding="utf-8")
        os._exit(0)

    modules = list(sys.modules.values())
    hidden = _Hidden(environments, cold)
    hidden.hide()
    if read_settings().run_dir is not None:
        hidden.after_torch = _begin_capture
    from compilescope.change.repair.trials.child import startup

    overlay = startup.begin()
    for path in _loaded_of(overlay.paths, modules):
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
    from compilescope.instrument.recorder import autoload

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

    def __init__(self, environments: Environments, cold: Callable[..., None]) -> None:
        """`cold` ends this process with a reason and, where only variables stand in the way, with
        what has been imported under which."""
        self._started_with = current_environment()
        self._environments = environments
        self._imports: Imports = []
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
        now = current_environment()
        self._imports.append((name, to_become(self._started_with, now)))
        known = self._environments.get(name)
        # What came with parts of torch that a child turned out to need may come at either time.
        times = [known] if known else [self._started_with, self._environments["torch"]]
        if all(names := differing(now, each) for each in times):
            self._cold(f"{names[0]} is set before {name} is imported", self._imports)
        if reason := self._other_file(name):
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


def _loaded_of(paths: Collection[str], modules: Collection[ModuleType]) -> list[str]:
    """Which of these files the modules are from, by whatever name. Files are told apart by their
    numbers: to resolve the links in the paths of all that torch imports takes a fifth of a second.
    """
    wanted = {number: path for path in paths if (number := _file_number(path)) is not None}
    if not wanted:
        return []
    numbers = {_file_number(file) for file in map(_file, modules) if file}
    return [path for number, path in wanted.items() if number in numbers]


def _file_number(path: str) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


_KEPT = ("__builtins__", "__name__", "__loader__", "__spec__")


def run_to_the_end(program: Program) -> None:
    """As Python's own end: threads, exit handlers, objects, streams. It never returns."""
    status = 0
    try:
        program()
    except SystemExit as leaving:
        status = _status(leaving)
    # The border: what is wrong here must not keep the process from ending.
    with suppress(Exception):
        private: Any = threading
        private._shutdown()
    with suppress(Exception):
        exits: Any = atexit
        exits._run_exitfuncs()
    _flush()
    with suppress(Exception):
        _report_imported([name for name in list(sys.modules) if name not in _known_modules])
    if threading.active_count() == 1:  # Daemons that still run use what the program has.
        _drop(_known_modules)
    _flush()
    os._exit(status)


def _status(leaving: SystemExit) -> int:
    code = leaving.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    with suppress(Exception):
        sys.stderr.write(f"{code}\n")
    return 1


def _drop(known: Collection[str]) -> None:
    """The program's globals go, so that its files are closed and its finalizers run."""
    for name, module in reversed(list(sys.modules.items())):
        names = getattr(module, "__dict__", None)
        if (name in known and name != "__main__") or not isinstance(names, dict):
            continue
        for private in (True, False):
            for key in list(names):
                if key not in _KEPT and private == (key[:1] == "_" and key[:2] != "__"):
                    with suppress(Exception):
                        names[key] = None
    gc.collect()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(Exception):
        ctypes.CDLL(None).fflush(None)
