"""Backends for a comparison: found by name, counted, compiling as if for the first time; and what
is known of each graph that they are given.

Read from Dynamo's context while the backend is called, before the backend changes the graph.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.capabilities import has
from compilescope.instrument.torchapi.compilation.fresh import (
    shares_frame,
    to_compile,
    with_own_code,
)
from compilescope.instrument.torchapi.graphs.values import symbols_in
from compilescope.instrument.torchapi.stacks import code_ref
from compilescope.record.stack import CodeRef

_INDUCTOR = "torch._inductor"


def known_backends() -> list[str]:
    """All names that torch.compile takes here, those for debugging too."""
    listed = torch.compiler.list_backends
    takes = inspect.signature(listed).parameters
    return sorted(listed(exclude_tags=()) if "exclude_tags" in takes else listed())


def find_backend(wanted: str | Callable[..., Any]) -> Callable[..., Any]:
    """The backend's function."""
    if not isinstance(wanted, str):
        if not callable(wanted):
            raise ToolError(f"A backend must be a name or a function, not {type(wanted).__name__}.")
        return wanted
    known = known_backends()
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
        hint = (
            f"Did you mean {' or '.join(near)}?"
            if near
            else f"The backends are {', '.join(known)}."
        )
        raise ToolError(f"There is no backend named {wanted!r}.", hint=hint)
    from torch._dynamo.backends.registry import lookup_backend

    try:
        found: Callable[..., Any] = lookup_backend(wanted)
    except Exception as error:  # The border to a plugin: an entry point that fails to import.
        words = " ".join(str(error).split())[:200]
        raise ToolError(
            f"The backend {wanted!r} cannot be loaded: {type(error).__name__}: {words}"
        ) from error
    return found


class CountedBackend:
    """Hands graphs on to a backend, and knows how often, for how long, and what it raised."""

    def __init__(
        self, backend: str | Callable[..., Any], before: Callable[[], Any] | None = None
    ) -> None:
        """`before` each call, what it gives is kept."""
        self._backend = find_backend(backend)
        self._before = before
        self.compiles: list[Compile] = []
        self.kept: list[Any] = []
        """What `before` gave, one for each of `compiles`."""
        self.inductor = backend == "inductor" or _is_inductor(self._backend)
        self.calls = 0
        self.seconds = 0.0
        self.error: Exception | None = None
        self.__name__ = getattr(self._backend, "__name__", type(self._backend).__name__)
        config = getattr(self._backend, "get_compiler_config", None)
        if config is not None:
            self.get_compiler_config = config

    def __call__(self, graph: Any, inputs: Any, **more: Any) -> Any:
        self.calls += 1
        self.compiles.append(note_compile(graph, inputs))
        self.kept.append(self._before() if self._before is not None else None)
        started = time.perf_counter()
        try:
            return self._backend(graph, inputs, **more)
        except Exception as error:
            if not _is_restart(error):
                # Dynamo may be set to swallow it.
                self.error = self.error or error
            raise
        finally:
            self.seconds += time.perf_counter() - started


def compiled_alone(function: Any, backend: CountedBackend, **options: Any) -> Any:
    """`torch.compile` that neither uses nor disturbs earlier compilations of the function."""
    called = to_compile(function)
    if has("argument/isolate_recompiles"):
        options = {"isolate_recompiles": True, **options}
        # Sizes that Dynamo saw in a frame are not isolated (torch 2.15).
        called = with_own_code(called) if shares_frame(called) else called
    else:
        # Entries are told apart by their backend there, but all count against one limit: after
        # eight comparisons of torch's own modules, which share a frame, nothing was compiled.
        called = with_own_code(called)
    return torch.compile(called, backend=backend, **options)


@contextlib.contextmanager
def eager_random_numbers() -> Iterator[bool]:
    """Inductor draws as eager mode does within the block; gives whether this torch can do that."""
    try:
        from torch._inductor import config
    except ImportError:
        yield False
        return
    if not hasattr(config, "fallback_random"):
        yield False
        return
    with config.patch(fallback_random=True):
        yield True


@contextlib.contextmanager
def nothing_compiled() -> Iterator[None]:
    """Everything runs eagerly, what the model itself compiled too."""
    with torch.compiler.set_stance("force_eager"):
        yield


def uncompiled(model: Any) -> Any:
    """What torch.compile was given, where it made this."""
    for _ in range(8):
        inner = getattr(model, "_orig_mod", None) or getattr(
            model, "_torchdynamo_orig_callable", None
        )
        # What was taken from Dynamo on purpose carries the same mark.
        if inner is None or getattr(model, "_torchdynamo_disable", False):
            return model
        model = inner
    return model


def root_error(error: BaseException) -> BaseException:
    """What a backend or the traced code raised, without torch's wrapping around it."""
    from torch._dynamo.exc import BackendCompilerFailed

    for _ in range(8):
        inner = getattr(error, "inner_exception", None) or error.__cause__
        if not isinstance(error, BackendCompilerFailed) or not isinstance(inner, BaseException):
            return error
        if inner is error:
            return error
        error = inner
    return error


def _is_inductor(backend: Any) -> bool:
    while isinstance(backend, functools.partial):
        backend = backend.func
    return str(getattr(backend, "__module__", "")).startswith(
        (_INDUCTOR, "torch._dynamo.backends.inductor")
    )


def _is_restart(error: BaseException) -> bool:
    from torch._dynamo.exc import RestartAnalysis

    return isinstance(error, RestartAnalysis)


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
