"""Compiles for a program that never calls torch.compile: its outermost modules, or named ones.

A module is outermost when no other module's call is on the stack. Each call of it then is what a
call of `torch.compile(module)` is, and the program keeps its own objects. `Module.__call__` stays
torch's own: Dynamo knows it by its identity, and traces whatever stands in its place. The only way
in is the attribute that `Module.compile()` sets: it is looked up at each call, and tells which
compiled function to call, if any. So no frame of ours is on the stack while a module runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

import torch
import torch._dynamo.eval_frame
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch._dynamo import trace_rules
from torch._dynamo.eval_frame import OptimizedModule
from torch._dynamo.external_utils import wrap_inline
from torch._guards import CompileContext
from torch.fx._symbolic_trace import is_fx_symbolic_tracing

from compilescope.instrument.torchapi.regions import calls_region

EVERY_OUTERMOST = "*"
_CALL: Any = torch.nn.Module.__call__
_TORCHS_CALL: CodeType = _CALL.__code__
_WRAPPER = "compile_wrapper"
"""What the function that `torch.compile` returns is called in its own code (torch 2.11 to 2.15)."""
_EVAL_FRAME = torch._dynamo.eval_frame.__file__
_TORCH = os.path.dirname(torch.__file__) + os.sep


def compile_modules(names: tuple[str, ...], backend: str | None) -> None:
    """From now on, compile modules as they are called."""
    modules = tuple(name for name in names if ":" not in name)
    if not modules:
        return
    _skip_own_code()
    compiler = _Compiler(modules, {"backend": backend} if backend else {})
    torch.nn.Module._compiled_call_impl = _CompiledCall(compiler)
    _watch_overrides(compiler)


class _CompiledCall:
    """`Module._compiled_call_impl` of a module that nobody compiled in place: its own would hide
    this one."""

    def __init__(self, compiler: _Compiler) -> None:
        self._compiler = compiler

    def __get__(self, module: Any, owner: Any = None) -> Any:
        # Dynamo traces this where a module has hooks: it must then be nothing but torch's None.
        if torch.compiler.is_compiling() or module is None or get_eval_frame_callback() is not None:
            return None
        asks = sys._getframe(1)
        if asks.f_code is not _TORCHS_CALL:
            return None
        return self._compiler.compiled(module, _CALL, asks.f_back)


class _OwnCall:
    """The `__call__` of a class that has its own: torch.compile compiles it too."""

    def __init__(self, compiler: _Compiler, call: FunctionType) -> None:
        self._compiler = compiler
        self._call = call

    def __get__(self, module: Any, owner: Any = None) -> Any:
        if module is None:
            return self._call
        if get_eval_frame_callback() is None:
            asks = sys._getframe(1)
            # torch asks for the method to compile or to trace it, the program to call it.
            if not asks.f_code.co_filename.startswith(_TORCH):
                compiled = self._compiler.compiled(module, self._call, asks)
                if compiled is not None:
                    return compiled
        return MethodType(self._call, module)

    def __getattr__(self, name: str) -> Any:
        # Guards of Dynamo find this in the class, and ask it for what functions have.
        return getattr(self._call, name)


def _watch_overrides(compiler: _Compiler) -> None:
    base: Any = torch.nn.Module

    def meet_class(cls: Any, /, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        call = vars(cls).get("__call__")
        if isinstance(call, FunctionType):
            _free_parents(compiler, cls)
            compiler.know(call.__code__)
            cls.__call__ = _OwnCall(compiler, call)

    meet_class.__name__ = "__init_subclass__"
    base.__init_subclass__ = classmethod(meet_class)


def _free_parents(compiler: _Compiler, cls: Any) -> None:
    """Dynamo follows `super().__call__` to a function alone: a class that is derived from gets its
    own back, and is compiled from torch's own call on."""
    for parent in cls.__mro__[1:]:
        own = vars(parent).get("__call__")
        if isinstance(own, _OwnCall):
            parent.__call__ = own._call
            compiler.forget(own._call.__code__)


class _Compiler:
    """Which call of a module is compiled, and by what."""

    def __init__(self, names: tuple[str, ...], options: dict[str, Any]) -> None:
        self._names = names
        self._options = options
        self._calls = {id(_TORCHS_CALL): _TORCHS_CALL}  # Equal code is not the same.
        self._context: Any = None
        self._compiled: dict[Callable[..., Any], Callable[..., Any]] = {}

    def know(self, call: CodeType) -> None:
        """As one that calls a module."""
        self._calls[id(call)] = call

    def forget(self, call: CodeType) -> None:
        self._calls.pop(id(call), None)

    def compiled(
        self, module: torch.nn.Module, call: Callable[..., Any], caller: FrameType | None
    ) -> Callable[..., Any] | None:
        """What to call in place of `call`; None where this one is not to be compiled."""
        if not self._is_wanted(module, caller) or _is_traced() or _is_beyond(module):
            return None
        if self._context is None:
            self._context = torch.compile(torch.nn.Identity(), **self._options).dynamo_ctx
        context: Callable[[Any], Callable[..., Any]] = self._context
        if hasattr(module, "_initialize_hook"):
            # Its sizes are found first, as torch does it; afterwards it is as any other.
            return context(module)
        if _is_skipped(module):
            # As `torch.compile(module)` does it where Dynamo would skip the forward. Made for each
            # call: who keeps it keeps the module.
            return context(wrap_inline(module))
        # Dynamo keeps what it compiled with the code: one function does for all modules.
        known = self._compiled.get(call)
        if known is None:
            known = self._compiled.setdefault(call, context(call))
        return MethodType(known, module)

    def _is_wanted(self, module: torch.nn.Module, caller: FrameType | None) -> bool:
        kind = type(module)
        if kind.__name__ in self._names or f"{kind.__module__}.{kind.__qualname__}" in self._names:
            return not _is_compiled(caller)
        return EVERY_OUTERMOST in self._names and not self._is_within(caller)

    def _is_within(self, frame: FrameType | None) -> bool:
        """Is a call of a module, or of compiled code, on the stack?"""
        while frame is not None:
            if id(frame.f_code) in self._calls or _runs_compiled(frame.f_code):
                return True
            frame = frame.f_back
        return False


def _is_compiled(frame: FrameType | None) -> bool:
    while frame is not None:
        if _runs_compiled(frame.f_code):
            return True
        frame = frame.f_back
    return False


def _runs_compiled(code: CodeType) -> bool:
    # Where a region is called eagerly, what stands for it is on the stack, and torch's is not.
    return calls_region(code) or (code.co_name == _WRAPPER and code.co_filename == _EVAL_FRAME)


def _is_traced() -> bool:
    """By torch.jit, FX or a compilation under way: these want the module itself."""
    return (
        torch._C._get_tracing_state() is not None
        or is_fx_symbolic_tracing()
        or CompileContext.try_get() is not None
    )


def _is_beyond(module: torch.nn.Module) -> bool:
    """Is it compiled already, or is it what torch.compile refuses?"""
    return isinstance(module, (OptimizedModule, torch.jit.ScriptModule))


def _is_skipped(module: torch.nn.Module) -> bool:
    forward = module.forward
    return isinstance(forward, MethodType) and bool(trace_rules.check(forward))


def _skip_own_code() -> None:
    """Dynamo compiles what the eager part of a compiled function calls; never these."""
    skip = getattr(torch._dynamo.eval_frame, "skip_code", None)
    for function in (_CompiledCall.__get__, _OwnCall.__get__):
        if skip is not None:
            skip(function.__code__)


def compiled(function: Callable[..., Any], backend: str | None = None) -> Callable[..., Any]:
    """What a function named by --compile becomes where it is defined."""
    options = {"backend": backend} if backend else {}
    wrapped: Callable[..., Any] = torch.compile(function, **options)
    return wrapped
