"""Watches how the program ends, from the interpreter's start: it may fail before it imports torch.

Chains to the sitecustomize that this one hides, if there is one.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))


def _chain():
    paths = [os.path.abspath(path or ".") for path in sys.path]
    # Those before us have chained to us: looked for again, they would run twice.
    hidden = sys.path[paths.index(_HERE) + 1 :] if _HERE in paths else []
    spec = PathFinder.find_spec("sitecustomize", hidden)
    if spec is not None and spec.loader is not None:
        # The module under this name stays ours: replacing it makes `site` complain.
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # The program may ask it for what its own one holds.
        for name, value in vars(module).items():
            if not name.startswith("__"):
                globals().setdefault(name, value)


def _watch():
    import compilescope_boot

    compilescope_boot.watch_end()


_watch()
_chain()
