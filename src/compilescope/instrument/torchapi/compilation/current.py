"""The compilation at work now: its id, its modes and settings as Python source, its real tensors.

Everything is only read.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CellType, CodeType, FrameType
from typing import Any

import torch
from torch._guards import CompileContext

from compilescope.instrument.torchapi.stacks import entered_frame, origin
from compilescope.record.stack import plain_function_name


def current_compile_id() -> str | None:
    """Dynamo's `frame/compile`, with `_attempt` after a restart."""
    trace_id = CompileContext.current_trace_id()
    return None if trace_id is None else str(trace_id)


_CALLS_BACKEND = ("_call_user_compiler", "call_user_compiler", "compile_and_call_fx_graph")


def current_model() -> str:
    """The outermost compiled function of those at work; empty outside of a compilation."""
    translator = _translator()
    if translator is None:
        return ""
    frame = entered_frame()
    if frame is not None:
        return _name(frame.f_code, frame.f_locals)
    return _name(translator.f_code, getattr(translator, "f_locals", {}))


def _translator() -> Any:
    """Dynamo's tracer of the frame that it compiles, which is not running yet."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _CALLS_BACKEND:
            found = getattr(frame.f_locals.get("self"), "root_tx", None)
            if found is not None:
                return found
        frame = frame.f_back
    return None


def _name(code: CodeType, variables: Mapping[str, Any]) -> str:
    held = [variables.get(code.co_varnames[0])] if code.co_varnames else []
    if origin(code.co_filename) == "torch":
        # A module of torch's own is compiled by way of a wrapper that holds it.
        held += [_content(variables.get(name)) for name in code.co_freevars]
    for value in held:
        if isinstance(value, torch.nn.Module):
            return type(value).__name__
    # Python 3.10 has the plain name only.
    return plain_function_name(getattr(code, "co_qualname", code.co_name).split(".<locals>.")[-1])


def _content(variable: Any) -> Any:
    """A variable of an enclosing function may come in its cell, which may be empty."""
    if not isinstance(variable, CellType):
        return variable
    try:
        return variable.cell_contents
    except ValueError:
        return None


_ASSIGNMENT = re.compile(r"^torch\._dynamo\.config\.\w+ = (.+)$")


def changed_settings() -> list[str]:
    """Only those with plain values: what is a function or an object cannot be written down."""
    import torch._dynamo.config as config

    write = getattr(config, "codegen_config", None)
    if write is None:
        return []
    kept = []
    for line in str(write()).splitlines():
        match = _ASSIGNMENT.match(line)
        if match is None:
            continue
        try:
            ast.literal_eval(match[1])
        except (ValueError, SyntaxError):
            continue
        kept.append(line)
    return ["import torch._dynamo", *kept] if kept else []


def current_contexts() -> tuple[str, ...]:
    """Context managers that bring about the modes of this moment."""
    found = [] if torch.is_grad_enabled() else ["torch.no_grad()"]
    for device in ("cpu", "cuda", "xpu"):
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
            found.append(f"torch.autocast({device!r}, {dtype})")
    return tuple(found)


def is_restart(error: BaseException) -> bool:
    """Dynamo begins anew: it will hand over another graph in place of this one."""
    from torch._dynamo.exc import RestartAnalysis

    return isinstance(error, RestartAnalysis)


def transform_depth() -> int:
    """How many transforms of `torch.func` and `vmap` are open."""
    stack = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None)
    found = stack() if stack is not None else None
    return len(found or ())


@contextlib.contextmanager
def symbolic_inputs(noted: Sequence[Any], examples: list[Any]) -> Iterator[list[Any]]:
    """The tensors stand for the compiler's own fake ones, whose sizes are symbols.

    `noted` is what the compiler noted of each example.

    Without what that needs of torch the sizes are numbers, and the part is compiled for them.
    """
    from torch._guards import TracingContext, tracing

    mode = next((v.fake_mode for v in noted if hasattr(v, "fake_mode")), None)
    converter = getattr(mode, "fake_tensor_converter", None)
    if mode is None or converter is None or not hasattr(converter, "set_tensor_memo"):
        yield examples
        return
    given: list[Any] = []
    for value, example in zip(noted, examples, strict=True):
        if not isinstance(example, torch.Tensor):
            known = isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
            given.append(value if known else example)
            continue
        if hasattr(value, "fake_mode"):
            fake = value
            # Of a number that came as a tensor the fake one knows the value: it is taken as it is.
            if value.grad_fn is not None or value.requires_grad != example.requires_grad:
                with mode:
                    fake = value.detach().requires_grad_(example.requires_grad)
            converter.set_tensor_memo(example, fake)
        given.append(example)
    with tracing(TracingContext(mode)):
        yield given
