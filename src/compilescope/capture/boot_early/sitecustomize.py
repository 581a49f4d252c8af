"""For programs that switch torch's extensions off: wait for torch from the interpreter's start.

Chains to the sitecustomize that this one hides, if there is one.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))


class _AfterTorch:
    """Finds nothing: it watches for torch, and begins to record once it is imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_then_begin(module):
                run(module)
                sys.path.append(os.path.join(os.path.dirname(_HERE), "boot"))
                try:
                    import compilescope_boot

                    compilescope_boot.begin()
                finally:
                    sys.path.pop()

            spec.loader.exec_module = run_then_begin
        return spec


def _chain():
    others = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        # The module under this name stays ours: replacing it makes `site` complain.
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def _watch_end():
    sys.path.append(os.path.join(os.path.dirname(_HERE), "boot"))
    try:
        import compilescope_boot

        compilescope_boot.watch_end()
    finally:
        sys.path.pop()


sys.meta_path.insert(0, _AfterTorch())
_watch_end()
_chain()
