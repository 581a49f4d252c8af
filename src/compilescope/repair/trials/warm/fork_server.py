"""The warm process at work: it forks a child for each order, and says how it ended.

One order at a time, a line of JSON each way. When the other side is gone, so are we and our child.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import linecache
import os
import socket
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from compilescope.processes.fork import ChildBell, die_with_parent, fork_is_safe, kill_group
from compilescope.repair.trials.warm import forked_program
from compilescope.repair.trials.warm.environments import IMPORTED
from compilescope.settings import current_environment
from compilescope.torchapi.first_imports import DYNAMO, imports_start_workers

_OURS = (
    "compilescope.recorder.autoload",
    "compilescope.recorder.journal",
    "compilescope.recorder.recorder",
    "compilescope.torchapi.hook",
    "compilescope.torchapi.install",
    "compilescope.repair.trials.child.tasks",
    "compilescope.repair.trials.child.prober",
    "compilescope.repair.trials.child.surveyor",
    "compilescope.repair.trials.replay_checks",
)
Program = Callable[[], None]
known_modules: frozenset[str] = frozenset()
"""What was imported before the child was forked."""
_folder: Path | None = None
"""In a child: where it writes."""


def serve(descriptor: int) -> Program | None:
    """None at the end; in a child, the program that it is to run."""
    global known_modules
    control = socket.socket(fileno=descriptor)
    environment = current_environment()
    _preload()
    known_modules = frozenset(sys.modules)
    hello = {"safe": fork_is_safe(), "modules": sorted(_top_level())}
    _send(control, hello)
    if not hello["safe"]:
        return None
    reader = control.makefile("rb")
    bell = ChildBell()
    while line := reader.readline():
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            bell.leave()
            reader.close()
            control.close()
            return _child(order, environment)
        _send(control, {"pid": pid})
        status = _wait(pid, control, bell)
        if status is None:
            break
        _send(control, {"status": status})
        _learn(order)
        if not fork_is_safe():
            break  # The other side meets an end, and goes on with fresh processes.
    return None


def _wait(pid: int, control: socket.socket, bell: ChildBell) -> int | None:
    """How the child ended. None where the other side is gone."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        # Nothing is said while a child runs: what can be read is the end.
        if bell.wait([control]):
            kill_group(pid)
            return None


# What the warm process imports for its children.
#
# torch, Dynamo and our own code, then whatever parts of torch a child turned out to need. Importing
# only: no operator runs, so no thread starts.


def _learn(order: dict[str, Any]) -> None:
    """What one child imported, the next one finds."""
    global known_modules
    try:
        names = json.loads(Path(order["folder"], IMPORTED).read_bytes())
    except (OSError, ValueError, KeyError):
        return
    if learn(names):
        known_modules = frozenset(sys.modules)


def tell_imported(names: list[str]) -> None:
    """In the child, at its end."""
    if _folder is not None:
        (_folder / IMPORTED).write_text(json.dumps(names), encoding="utf-8")


def _child(order: dict[str, Any], environment: dict[str, str]) -> Program:
    os.setsid()
    die_with_parent()
    if "task" in order:
        _do(order)
    global _folder
    _folder = Path(order["folder"])
    return forked_program.become(order, environment)


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


def _send(control: socket.socket, value: Any) -> None:
    control.sendall(json.dumps(value).encode() + b"\n")


def _preload() -> None:
    """Leaves the process as quiet as it was: caches empty, collector on."""
    _import(["torch", DYNAMO, *_OURS])


def learn(names: Collection[str]) -> bool:
    """Import parts of torch that a child had to import: the next one will need them too. Was there
    anything to import?"""
    new = [name for name in names if name not in sys.modules and name.startswith("torch.")]
    if new and not imports_start_workers():
        _import(new)
    return bool(new)


def _import(names: Collection[str]) -> None:
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
    gc.enable()
    gc.collect()
    # What is here stays: a child's collector need not look at it, nor copy its pages.
    gc.freeze()


def _top_level() -> set[str]:
    """The names that are imported now, without their parts."""
    return {name.partition(".")[0] for name in list(sys.modules)} - {"__main__"}
