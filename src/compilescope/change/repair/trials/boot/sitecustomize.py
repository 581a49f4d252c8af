"""First on the path of a program that is tried: lays its new texts over the files on disk.

Runs in whatever Python the program starts, so a Python without compilescope is left in peace.
Chains to the sitecustomize that this one hides, if there is one.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))


def _begin() -> None:
    try:
        from compilescope.change.repair.trials.child import startup
    except ImportError:
        return
    startup.begin()


def _chain() -> None:
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        # The module under this name stays ours: replacing it makes `site` complain.
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


# Whom this one hides looks for whom it hides itself, and must not find us again.
sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
_begin()
_chain()
