"""compilescope: a debugger for torch.compile.

with compilescope.capture() as run:
    compiled(x)
print(run.summary())
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from compilescope.version import VERSION as __version__

if TYPE_CHECKING:
    from compilescope.front import Capture, load
    from compilescope.front import capture as capture
    from compilescope.front import explain as explain
    from compilescope.inspector import GuardInspector

__all__ = ["Capture", "GuardInspector", "__version__", "capture", "explain", "load"]


def __getattr__(name: str) -> Any:
    # Lazy: `compilescope --help` must not pay for what it does not use.
    if name in ("Capture", "load"):
        from compilescope import front

        return getattr(front, name)
    if name == "GuardInspector":
        from compilescope.inspector import GuardInspector

        return GuardInspector
    raise AttributeError(f"module 'compilescope' has no attribute {name!r}")


class _Package(ModuleType):
    """`capture` and `explain` are functions to users and packages inside; the functions win.

    Importing `compilescope.capture.recorder` binds the package to this module's name `capture`.
    A property outranks that binding.
    """

    @property
    def capture(self) -> Any:
        from compilescope import front

        return front.capture

    @capture.setter
    def capture(self, package: ModuleType) -> None: ...

    @property
    def explain(self) -> Any:
        from compilescope import front

        return front.explain

    @explain.setter
    def explain(self, package: ModuleType) -> None: ...


sys.modules[__name__].__class__ = _Package
