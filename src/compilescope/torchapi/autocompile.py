"""Compiles for a program that never calls torch.compile: its outermost modules, or named ones.

A module is outermost when no other module's call is on the stack. It gets `Module.compile()` at
its first call, in place, so the program keeps its own objects.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo.external_utils

from compilescope.model.stack import origin_of

EVERY_OUTERMOST = "*"


def compile_modules(names: tuple[str, ...], backend: str | None) -> None:
    """From now on, compile modules as they are first called."""
    modules = tuple(name for name in names if ":" not in name)
    if not modules:
        return
    options = {"backend": backend} if backend else {}
    call = torch.nn.Module.__call__
    depth = threading.local()

    @functools.wraps(call)
    def compile_then_call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        # Under Dynamo this function is traced: it must then be nothing but the call itself.
        if torch.compiler.is_compiling():
            return call(self, *args, **kwargs)
        outer = getattr(depth, "value", 0)
        if _wanted(self, modules, outer) and self._compiled_call_impl is None:
            _compile(self, options)
        depth.value = outer + 1
        try:
            return call(self, *args, **kwargs)
        finally:
            depth.value = outer

    torch.nn.Module.__call__ = compile_then_call


def _compile(module: torch.nn.Module, options: dict[str, Any]) -> None:
    """`Module.compile()`, also for a module of torch's own.

    Seen in torch 2.13: compiling `nn.Linear` in place captures nothing, since Dynamo skips torch's
    own functions unless they are called through this wrapper, as `torch.compile(module)` does.
    """
    code = getattr(type(module).forward, "__code__", None)
    wrap = getattr(torch._dynamo.external_utils, "wrap_inline", None)
    if wrap is None or code is None or origin_of(code.co_filename) != "torch":
        module.compile(**options)
        return
    called = wrap(module._call_impl)
    # Dynamo keeps what it compiled by code object: two modules that share one would push each
    # other out, and look like recompiles of one function.
    called.__code__ = called.__code__.replace()
    module._compiled_call_impl = torch.compile(called, **options)


def _wanted(module: torch.nn.Module, names: tuple[str, ...], depth: int) -> bool:
    from torch._dynamo.eval_frame import OptimizedModule

    if isinstance(module, OptimizedModule):
        return False
    kind = type(module)
    if EVERY_OUTERMOST in names:
        return depth == 0
    return kind.__name__ in names or f"{kind.__module__}.{kind.__qualname__}" in names


def compiled(function: Callable[..., Any], backend: str | None = None) -> Callable[..., Any]:
    """What a function named by --compile becomes where it is defined."""
    options = {"backend": backend} if backend else {}
    wrapped: Callable[..., Any] = torch.compile(function, **options)
    return wrapped
