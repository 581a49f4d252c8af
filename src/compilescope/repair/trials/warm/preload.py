"""What the warm process imports for its children.

torch, Dynamo and our own code, then whatever parts of torch a child turned out to need. Importing
only: no operator runs, so no thread starts.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import linecache
import sys
from collections.abc import Collection
from typing import Any

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


def preload() -> None:
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


def top_level() -> set[str]:
    """The names that are imported now, without their parts."""
    return {name.partition(".")[0] for name in list(sys.modules)} - {"__main__"}
