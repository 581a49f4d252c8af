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
    from compilescope.accelerators import aot_mock_backend, mini_backend, mock_backend
    from compilescope.backends.adapters.base import AcceleratorAdapter
    from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
    from compilescope.backends.adapters.compiling import AdapterError
    from compilescope.backends.adapters.references.inductor import InductorAdapter
    from compilescope.backends.adapters.references.mocked import MockAdapter
    from compilescope.backends.adapters.results import CompilationResult, CompilationStatus
    from compilescope.backends.mini.adapter import MiniAdapter
    from compilescope.backends.mock.refusal import ConstraintError
    from compilescope.diff.config import ComparisonConfig
    from compilescope.diff.metrics import compare_tensors
    from compilescope.diff.pictures import VisualizationConfig
    from compilescope.diff.report import DiffReport
    from compilescope.front import Capture, load
    from compilescope.front import capture as capture
    from compilescope.front import explain as explain
    from compilescope.inspector import GuardInspector
    from compilescope.minify.saving import save_repro
    from compilescope.numbers import KernelDiffHarness
    from compilescope.report.islands import islands_text
    from compilescope.rules.constraints.dtype import DtypeConstraint
    from compilescope.rules.constraints.layout import LayoutConstraint
    from compilescope.rules.constraints.memory import MemoryConstraint
    from compilescope.rules.constraints.operators import UnsupportedOpsConstraint
    from compilescope.rules.constraints.shape import ShapeConstraint
    from compilescope.rules.hardware.constraint import Constraint

__all__ = [
    "AcceleratorAdapter",
    "AcceleratorCapabilities",
    "AdapterError",
    "Capture",
    "ComparisonConfig",
    "CompilationResult",
    "CompilationStatus",
    "Constraint",
    "ConstraintError",
    "DiffReport",
    "DtypeConstraint",
    "GuardInspector",
    "InductorAdapter",
    "KernelDiffHarness",
    "LayoutConstraint",
    "MemoryConstraint",
    "MiniAdapter",
    "MockAdapter",
    "ShapeConstraint",
    "UnsupportedOpsConstraint",
    "VisualizationConfig",
    "__version__",
    "aot_mock_backend",
    "capture",
    "compare_tensors",
    "explain",
    "islands_text",
    "load",
    "mini_backend",
    "mock_backend",
    "save_repro",
]
_HOMES = {
    "AcceleratorAdapter": "backends.adapters.base",
    "AcceleratorCapabilities": "backends.adapters.capabilities",
    "AdapterError": "backends.adapters.compiling",
    "Capture": "front",
    "CompilationResult": "backends.adapters.results",
    "CompilationStatus": "backends.adapters.results",
    "ComparisonConfig": "diff.config",
    "Constraint": "rules.hardware.constraint",
    "ConstraintError": "backends.mock.refusal",
    "DiffReport": "diff.report",
    "DtypeConstraint": "rules.constraints.dtype",
    "GuardInspector": "inspector",
    "InductorAdapter": "backends.adapters.references.inductor",
    "KernelDiffHarness": "numbers",
    "LayoutConstraint": "rules.constraints.layout",
    "MemoryConstraint": "rules.constraints.memory",
    "MiniAdapter": "backends.mini.adapter",
    "MockAdapter": "backends.adapters.references.mocked",
    "ShapeConstraint": "rules.constraints.shape",
    "UnsupportedOpsConstraint": "rules.constraints.operators",
    "VisualizationConfig": "diff.pictures",
    "aot_mock_backend": "accelerators",
    "compare_tensors": "diff.metrics",
    "islands_text": "report.islands",
    "load": "front",
    "mini_backend": "accelerators",
    "mock_backend": "accelerators",
    "save_repro": "minify.saving",
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
