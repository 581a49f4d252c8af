"""What the code that is compiled now is called by its author: the model's class, or a function."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CellType, CodeType, FrameType
from typing import Any

import torch

from compilescope.model.stack import plain_function_name
from compilescope.torchapi.stacks import entered_frame, origin

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
