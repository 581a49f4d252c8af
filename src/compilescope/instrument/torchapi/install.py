"""Puts hooks on torch and takes them off again.

A module that is not imported yet is left alone: a program that never compiles never pays for
`torch._dynamo`. Its hooks are put on the moment it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from compilescope.base.plugins import discover
from compilescope.instrument.torchapi import hooks as hooks_package
from compilescope.instrument.torchapi.guards.versions import CompiledVersions
from compilescope.instrument.torchapi.hook import Hook, Watch, observed
from compilescope.instrument.torchapi.sinks import announce
from compilescope.instrument.torchapi.times.phases import PhaseLog
from compilescope.instrument.torchapi.times.region_calls import CallCounts
from compilescope.instrument.torchapi.times.region_times import Timing
from compilescope.instrument.torchapi.times.step_profiler import StepProfiler
from compilescope.record.bodies import HookUnavailable

GROUP = "compilescope.hooks"
"""The entry points of packages that bring hooks of their own."""
_Swap = tuple[str, Any, Any]
"""A name, what it is bound to, and what it is to be bound to."""


def all_hooks() -> list[Hook]:
    """In the order of their ids, whichever files they are in."""
    found = discover(hooks_package, "HOOK", Hook, several="HOOKS", group=GROUP)
    return sorted(found, key=lambda hook: hook.id)


@contextmanager
def hooked(watch: Watch) -> Iterator[None]:
    """Watch torch.compile in this process until the end of the block."""
    with ExitStack() as undo:
        hook_into(watch, undo)
        yield


def hook_into(watch: Watch, undo: ExitStack) -> None:
    """Watch torch.compile in this process until the stack is closed.

    One that is never closed is simply dropped when Python comes down; a generator would run to its
    end then, with half of its modules gone.
    """
    announce(watch.sink, undo)
    watch.phases = PhaseLog(watch.sink)
    undo.callback(watch.phases.close)
    watch.versions = CompiledVersions(watch.sink)
    undo.callback(watch.versions.write)
    watch.counts = CallCounts(watch.sink, watch.versions.look)
    undo.callback(watch.counts.close)
    if watch.time:
        watch.timing = Timing(watch.sink)
        undo.callback(watch.timing.close)
    if watch.profile:
        watch.profiler = StepProfiler(watch.sink, watch.profile)
        undo.callback(watch.profiler.close)
    present: list[tuple[Hook, ModuleType]] = []
    waiting: dict[str, list[Hook]] = {}
    for hook in all_hooks():
        if hook.only_with and not getattr(watch, hook.only_with):
            continue
        module = sys.modules.get(hook.module)
        if module is not None and not _importing(module):
            present.append((hook, module))
        else:
            waiting.setdefault(hook.module, []).append(hook)
    _attach(present, watch, undo)
    if waiting:
        finder = _AfterImport(waiting, lambda found: _attach(found, watch, undo))
        sys.meta_path.insert(0, finder)
        undo.callback(_undo, _remove, finder)
    watch.counts.count_existing()
    if watch.timing is not None:
        watch.timing.time_existing_regions()
    if watch.profiler is not None:
        watch.profiler.watch_existing_regions()


def _attach(found: list[tuple[Hook, ModuleType]], watch: Watch, undo: ExitStack) -> None:
    """Those that are bound in many modules together: torch has thousands to walk over."""
    everywhere: list[_Swap] = []
    for hook, module in found:
        if hook.unless and find_target(module, hook.unless) is not None:
            continue
        place = find_target(module, hook.target)
        if place is None and _stood_in_for(hook, module):
            continue
        if place is None:
            target = f"{hook.module}.{hook.target}"
            watch.sink.emit(HookUnavailable(hook.id, target, hook.loses))
            continue
        owner, name, original = place
        wrapper = observed(original, hook, watch)
        if hook.everywhere:
            everywhere.append((name, original, wrapper))
        else:
            setattr(owner, name, wrapper)
            undo.callback(_undo, _put_back, owner, name, wrapper, original)
    if everywhere:
        _replace_bindings(everywhere)
        undo.callback(_undo, _replace_bindings, [(name, new, old) for name, old, new in everywhere])


def _stood_in_for(hook: Hook, module: ModuleType) -> bool:
    """Does another hook see the same elsewhere? It says itself what it loses."""
    return any(other.module == hook.module and other.unless == hook.target for other in all_hooks())


def _undo(function: Callable[..., None], *args: Any) -> None:
    """Hooks that stay on to the end are not worth taking off while Python itself comes down."""
    if not sys.is_finalizing():
        function(*args)


def find_target(module: ModuleType, target: str) -> tuple[Any, str, Any] | None:
    """The owner, the name and the function of a choke point, if this torch has it."""
    owner: Any = module
    *path, name = target.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    original = getattr(owner, "__dict__", {}).get(name)
    return None if original is None else (owner, name, original)


def _put_back(owner: Any, name: str, wrapper: Any, original: Any) -> None:
    # Someone else may have patched it since; their patch still calls ours, which is harmless.
    if vars(owner).get(name) is wrapper:
        setattr(owner, name, original)


def _replace_bindings(swaps: list[_Swap]) -> None:
    # Torch has two thousand modules, and each of our captures comes by.
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("torch"):
            continue
        bound = getattr(module, "__dict__", {})
        for name, old, new in swaps:
            if bound.get(name) is old:
                setattr(module, name, new)


def _importing(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _remove(finder: MetaPathFinder) -> None:
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)


class _AfterImport(MetaPathFinder):
    """Finds nothing itself: it lets the others find, and acts once their module has run."""

    def __init__(
        self,
        waiting: dict[str, list[Hook]],
        attach: Callable[[list[tuple[Hook, ModuleType]]], None],
    ) -> None:
        self._waiting = waiting
        self._attach = attach

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in self._waiting:
            return None
        for finder in self._behind():
            spec: ModuleSpec | None = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._follow(fullname, spec.loader)
                return spec
        return None

    def _behind(self) -> list[Any]:
        """Those that are asked after it. One in front of it may be that of a capture within this
        one, which asks this one."""
        finders = list(sys.meta_path)
        behind = finders[finders.index(self) + 1 :] if self in finders else finders
        return [finder for finder in behind if hasattr(finder, "find_spec")]

    def _follow(self, fullname: str, loader: Loader) -> None:
        """Attach after the loader has run the module. The loader stays the module's own."""
        exec_module = loader.exec_module

        def exec_then_attach(module: ModuleType) -> None:
            # It has done its work: the loader is torch's own again. Two captures follow one loader.
            vars(loader).pop("exec_module", None)
            exec_module(module)
            self._attach([(hook, module) for hook in self._waiting.pop(fullname, ())])

        # Python drops the import machinery's frames from tracebacks; this one is of their kind.
        exec_then_attach.__code__ = exec_then_attach.__code__.replace(
            co_filename="<frozen importlib._bootstrap>", co_name="_call_with_frames_removed"
        )
        loader.exec_module = exec_then_attach  # type: ignore[method-assign]
