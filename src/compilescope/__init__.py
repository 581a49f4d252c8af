"""compilescope: a debugger for torch.compile.

with compilescope.capture() as run:
    compiled(x)
print(run.summary())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from compilescope.version import VERSION as __version__

if TYPE_CHECKING:
    from compilescope.accelerators import aot_mock_backend, mini_backend, mock_backend
    from compilescope.backends.adapters.base import AcceleratorAdapter
    from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
    from compilescope.backends.adapters.contract import CompilationResult, CompilationStatus
    from compilescope.backends.adapters.island import AdapterError
    from compilescope.backends.adapters.references import InductorAdapter, MockAdapter
    from compilescope.backends.mini.adapter import MiniAdapter
    from compilescope.backends.mock.messages import ConstraintError
    from compilescope.diff.pictures import VisualizationConfig
    from compilescope.diff.report import DiffReport
    from compilescope.front import Capture, capture, explain, load
    from compilescope.inspector import GuardInspector
    from compilescope.magics import load_ipython_extension as load_ipython_extension
    from compilescope.magics import unload_ipython_extension as unload_ipython_extension
    from compilescope.minify.repros import save_repro
    from compilescope.numbers import KernelDiffHarness
    from compilescope.report.islands import islands_text
    from compilescope.rules.constraints.dtype import DtypeConstraint
    from compilescope.rules.constraints.layout import LayoutConstraint
    from compilescope.rules.constraints.memory import MemoryConstraint
    from compilescope.rules.constraints.operators import UnsupportedOpsConstraint
    from compilescope.rules.constraints.shape import ShapeConstraint
    from compilescope.rules.hardware.constraint import Constraint
    from compilescope.tensors.comparison import compare_tensors
    from compilescope.tensors.tolerances import ComparisonConfig

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
    "AdapterError": "backends.adapters.island",
    "Capture": "front",
    "CompilationResult": "backends.adapters.contract",
    "CompilationStatus": "backends.adapters.contract",
    "ComparisonConfig": "tensors.tolerances",
    "Constraint": "rules.hardware.constraint",
    "ConstraintError": "backends.mock.messages",
    "DiffReport": "diff.report",
    "DtypeConstraint": "rules.constraints.dtype",
    "GuardInspector": "inspector",
    "InductorAdapter": "backends.adapters.references",
    "KernelDiffHarness": "numbers",
    "LayoutConstraint": "rules.constraints.layout",
    "MemoryConstraint": "rules.constraints.memory",
    "MiniAdapter": "backends.mini.adapter",
    "MockAdapter": "backends.adapters.references",
    "ShapeConstraint": "rules.constraints.shape",
    "UnsupportedOpsConstraint": "rules.constraints.operators",
    "VisualizationConfig": "diff.pictures",
    "aot_mock_backend": "accelerators",
    "capture": "front",
    "compare_tensors": "tensors.comparison",
    "explain": "front",
    "islands_text": "report.islands",
    "load": "front",
    "load_ipython_extension": "magics",
    "mini_backend": "accelerators",
    "mock_backend": "accelerators",
    "save_repro": "minify.repros",
    "unload_ipython_extension": "magics",
}
"""Where the public names live, and those that IPython asks for."""
_BACKENDS = ("AcceleratorAdapter", "InductorAdapter", "MiniAdapter", "MockAdapter")
"""Whoever imports one of these compiles with it; `accelerators` sees to its own."""


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    # Lazy: `compilescope --help` must not pay for what it does not use, and torch least of all.
    if name not in _HOMES:
        raise AttributeError(f"module 'compilescope' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"compilescope.{_HOMES[name]}"), name)
    if name in _BACKENDS:
        from compilescope.automatic import begin

        begin()
    return found
