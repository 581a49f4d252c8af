"""compilescope: a debugger for torch.compile.

with compilescope.capture() as run:
    compiled(x)
print(run.summary())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from compilescope.base.version import VERSION as __version__

if TYPE_CHECKING:
    from compilescope.apps.accelerators import aot_mock_backend, mini_backend, mock_backend
    from compilescope.apps.front import Capture, capture, explain, load
    from compilescope.apps.inspector import GuardInspector
    from compilescope.apps.magics import load_ipython_extension as load_ipython_extension
    from compilescope.apps.magics import unload_ipython_extension as unload_ipython_extension
    from compilescope.apps.numbers import KernelDiffHarness
    from compilescope.backends.adapters.base import AcceleratorAdapter
    from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
    from compilescope.backends.adapters.contract import CompilationResult, CompilationStatus
    from compilescope.backends.adapters.island import AdapterError
    from compilescope.backends.adapters.references import InductorAdapter, MockAdapter
    from compilescope.backends.mini.adapter import MiniAdapter
    from compilescope.backends.mock.messages import ConstraintError
    from compilescope.change.minify.repros import save_repro
    from compilescope.change.repair.verification.callables import verify
    from compilescope.knowledge.rules.constraints.dtype import DtypeConstraint
    from compilescope.knowledge.rules.constraints.layout import LayoutConstraint
    from compilescope.knowledge.rules.constraints.memory import MemoryConstraint
    from compilescope.knowledge.rules.constraints.operators import UnsupportedOpsConstraint
    from compilescope.knowledge.rules.constraints.shape import ShapeConstraint
    from compilescope.knowledge.rules.hardware.constraint import Constraint
    from compilescope.measure.diff.pictures import VisualizationConfig
    from compilescope.measure.diff.report import DiffReport
    from compilescope.measure.tensors.comparison import compare_tensors
    from compilescope.measure.tensors.tolerances import ComparisonConfig
    from compilescope.report.islands import islands_text

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
    "verify",
]
_HOMES = {
    "AcceleratorAdapter": "backends.adapters.base",
    "AcceleratorCapabilities": "backends.adapters.capabilities",
    "AdapterError": "backends.adapters.island",
    "Capture": "apps.front",
    "CompilationResult": "backends.adapters.contract",
    "CompilationStatus": "backends.adapters.contract",
    "ComparisonConfig": "measure.tensors.tolerances",
    "Constraint": "knowledge.rules.hardware.constraint",
    "ConstraintError": "backends.mock.messages",
    "DiffReport": "measure.diff.report",
    "DtypeConstraint": "knowledge.rules.constraints.dtype",
    "GuardInspector": "apps.inspector",
    "InductorAdapter": "backends.adapters.references",
    "KernelDiffHarness": "apps.numbers",
    "LayoutConstraint": "knowledge.rules.constraints.layout",
    "MemoryConstraint": "knowledge.rules.constraints.memory",
    "MiniAdapter": "backends.mini.adapter",
    "MockAdapter": "backends.adapters.references",
    "ShapeConstraint": "knowledge.rules.constraints.shape",
    "UnsupportedOpsConstraint": "knowledge.rules.constraints.operators",
    "VisualizationConfig": "measure.diff.pictures",
    "aot_mock_backend": "apps.accelerators",
    "capture": "apps.front",
    "compare_tensors": "measure.tensors.comparison",
    "explain": "apps.front",
    "islands_text": "report.islands",
    "load": "apps.front",
    "load_ipython_extension": "apps.magics",
    "mini_backend": "apps.accelerators",
    "mock_backend": "apps.accelerators",
    "save_repro": "change.minify.repros",
    "unload_ipython_extension": "apps.magics",
    "verify": "change.repair.verification.callables",
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
        from compilescope.instrument.automatic import begin

        begin()
    return found
