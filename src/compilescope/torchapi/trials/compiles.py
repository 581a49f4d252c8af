"""What is known of each graph that a backend is given: its function, why it recompiled, its sizes.

Read from Dynamo's context while the backend is called, before the backend changes the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.model.stack import CodeRef
from compilescope.torchapi.graphs.values import symbols_in
from compilescope.torchapi.stacks import code_ref


@dataclass(frozen=True)
class Compile:
    """One graph that a backend was given."""

    compile_id: str = ""
    """Dynamo's `frame/compile`; empty where Dynamo was not at work."""
    frame: CodeRef | None = None
    reason: str = ""
    """Of a recompile: the guard that failed, in PyTorch's words."""
    symbolic: bool = False
    """Some size is a symbol: the graph serves other sizes too."""
    code: str = ""
    """The graph, to know it again."""
    raw_id: Any = None

    @property
    def recompiled(self) -> bool:
        """The number in the compile id says less: another backend's compilations count too."""
        return bool(self.reason)

    @property
    def function(self) -> str:
        """`forward (from line 14)` for what follows a graph break."""
        if self.frame is None:
            return ""
        resumed = self.frame.resumed_at
        return f"{self.frame.function} (from line {resumed})" if resumed else self.frame.function

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Within the block the backend sees the compile id that it saw then."""
        if self.raw_id is None:
            yield
            return
        from torch._guards import CompileContext, compile_context

        with compile_context(CompileContext(self.raw_id)):
            yield

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        frame = self.frame
        return {
            "compile_id": self.compile_id,
            "file": frame.file if frame else "",
            "line": frame.line if frame else 0,
            "function": frame.function if frame else "",
            "resumed_at": frame.resumed_at if frame else None,
            "recompiled": self.recompiled,
            "reason": self.reason,
            "symbolic": self.symbolic,
        }


def note_compile(graph: Any, inputs: Sequence[Any]) -> Compile:
    """Of the call of a backend that is under way, before the backend changes the graph."""
    from torch._guards import CompileContext

    raw = CompileContext.current_compile_id()
    return Compile(
        compile_id="" if raw is None else str(raw),
        frame=_frame() if raw is not None else None,
        reason=_reason() if raw is not None else "",
        symbolic=_is_symbolic(graph, inputs),
        code=str(getattr(graph, "code", "")),
        raw_id=raw,
    )


def _frame() -> CodeRef | None:
    """The code object that is being compiled; None where this torch doesn't say (2.13 does)."""
    try:
        from torch._dynamo.symbolic_convert import InstructionTranslator

        return code_ref(InstructionTranslator.current_tx().output.root_tx.f_code)
    except (ImportError, AttributeError):
        return None


def _reason() -> str:
    """As `TORCH_LOGS=recompiles` would print it, without the compile id before it."""
    try:
        from torch._dynamo.utils import get_metrics_context

        said = get_metrics_context()._metrics.get("recompile_reason")
    except (ImportError, AttributeError):
        return ""
    first = str(said or "").strip().split("\n", 1)[0]
    name, _, rest = first.partition(": ")
    words = rest if "/" in name and " " not in name else first
    return words.split("  # ", 1)[0].strip()


def _is_symbolic(graph: Any, inputs: Sequence[Any]) -> bool:
    if any(isinstance(value, (torch.SymInt, torch.SymFloat)) for value in inputs):
        return True
    nodes = getattr(getattr(graph, "graph", None), "nodes", ())
    noted = (node.meta.get("example_value") for node in nodes if node.op == "placeholder")
    return any(symbols_in(value) for value in noted)
