"""compilescope: a debugger for torch.compile.

with compilescope.capture() as run:
    compiled(x)
print(run.summary())
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from compilescope.version import VERSION as __version__

if TYPE_CHECKING:
    from compilescope.accelerators import aot_mock_backend, mock_backend
    from compilescope.backends.adapter import AcceleratorAdapter
    from compilescope.backends.capabilities import AcceleratorCapabilities
    from compilescope.backends.compiling import AdapterError
    from compilescope.backends.references.inductor import InductorAdapter
    from compilescope.backends.references.mocked import MockAdapter
    from compilescope.backends.refusal import ConstraintError
    from compilescope.backends.results import CompilationResult, CompilationStatus
    from compilescope.front import Capture, load
    from compilescope.front import capture as capture
    from compilescope.front import explain as explain
    from compilescope.inspector import GuardInspector
    from compilescope.report.islands import islands_text
    from compilescope.rules.constraint import Constraint
    from compilescope.rules.constraints.dtype import DtypeConstraint
    from compilescope.rules.constraints.layout import LayoutConstraint
    from compilescope.rules.constraints.memory import MemoryConstraint
    from compilescope.rules.constraints.operators import UnsupportedOpsConstraint
    from compilescope.rules.constraints.shape import ShapeConstraint

__all__ = [
    "AcceleratorAdapter",
    "AcceleratorCapabilities",
    "AdapterError",
    "Capture",
    "CompilationResult",
    "CompilationStatus",
    "Constraint",
    "ConstraintError",
    "DtypeConstraint",
    "GuardInspector",
    "InductorAdapter",
    "LayoutConstraint",
    "MemoryConstraint",
    "MockAdapter",
    "ShapeConstraint",
    "UnsupportedOpsConstraint",
    "__version__",
    "aot_mock_backend",
    "capture",
    "explain",
    "islands_text",
    "load",
    "mock_backend",
]
_HOMES = {
    "AcceleratorAdapter": "backends.adapter",
    "AcceleratorCapabilities": "backends.capabilities",
    "AdapterError": "backends.compiling",
    "Capture": "front",
    "CompilationResult": "backends.results",
    "CompilationStatus": "backends.results",
    "Constraint": "rules.constraint",
    "ConstraintError": "backends.refusal",
    "DtypeConstraint": "rules.constraints.dtype",
    "GuardInspector": "inspector",
    "InductorAdapter": "backends.references.inductor",
    "LayoutConstraint": "rules.constraints.layout",
    "MemoryConstraint": "rules.constraints.memory",
    "MockAdapter": "backends.references.mocked",
    "ShapeConstraint": "rules.constraints.shape",
    "UnsupportedOpsConstraint": "rules.constraints.operators",
    "aot_mock_backend": "accelerators",
    "islands_text": "report.islands",
    "load": "front",
    "mock_backend": "accelerators",
}
"""Where the public names live."""


def __getattr__(name: str) -> Any:
    # Lazy: `compilescope --help` must not pay for what it does not use, and torch least of all.
    if name not in _HOMES:
        raise AttributeError(f"module 'compilescope' has no attribute {name!r}")
    return getattr(importlib.import_module(f"compilescope.{_HOMES[name]}"), name)


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
