"""The compiled regions of a program: each object that torch.compile returned, and its calls.

Whatever is compiled goes through one method of torch's context: functions, bound methods, modules,
`Module.compile()`. A region called within another counts as part of that one.

`Versions` is for those who run a region twice. Tensors whose contents were restored after the first
run still have a higher version counter, and autograd would refuse an earlier call's backward pass:
the counters are restored too.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Literal

import torch


class Versions:
    """The counts of some tensors at one time."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        # Tensors of inference mode have no count.
        known = [tensor for tensor in tensors if not tensor.is_inference()]
        self._counts = [(tensor, tensor._version) for tensor in known]

    def restore(self) -> None:
        """Where this torch lets us."""
        setter: Any = getattr(torch._C._autograd, "_unsafe_set_version_counter", None)
        if setter is None:
            return
        moved = [(t, count) for t, count in self._counts if t._version != count]
        if not moved:
            return
        try:
            setter(tuple(t for t, _ in moved), tuple(count for _, count in moved))
        except TypeError:  # torch 2.5 and before take one tensor at a time.
            for tensor, count in moved:
                setter(tensor, count)


Mode = Literal["", "eager", "compiled"]


@dataclass(eq=False)
class CompiledRegion:
    """What one torch.compile was put around."""

    name: str
    eager: Callable[..., Any]
    compiled: Callable[..., Any]
    number: int = -1
    """In the order of first calls; -1 before there was one."""


_keepers: list[Callable[[Any], Any]] = []
"""Of this process, once regions are looked at."""


def keep_region(function: Any) -> Any:
    """What a version no longer compiles as a whole, called all the same as a region: its parts are
    compiled by themselves, or not at all. A module is one from now on."""
    for keep in _keepers:
        function = keep(function)
    return function


OnCall = Callable[[CompiledRegion, tuple[Any, ...], dict[str, Any]], Any]


class Regions:
    """All regions of a process. `on_call` stands for each outermost call of one."""

    def __init__(self, on_call: OnCall) -> None:
        self._on_call = on_call
        self._local = threading.local()
        self._called = 0

    def install(self) -> None:
        """For good: the process is there for nothing else."""
        from torch._dynamo import eval_frame

        context = eval_frame._TorchDynamoContext
        make = context.__call__

        @functools.wraps(make)
        def make_region(self_: Any, fn: Any) -> Any:
            made = make(self_, fn)
            if not isinstance(made, FunctionType) or not callable(getattr(self_, "callback", None)):
                return made  # A module or a class: its functions come by one by one.
            return made if _is_torchs_own(fn) else self._wrapped(made)

        context.__call__ = make_region
        _keepers.append(self._kept)

    @contextlib.contextmanager
    def calling(self, mode: Mode) -> Iterator[None]:
        """Within the block regions are called in this way, and nobody is asked."""
        before = self._mode
        self._local.mode = mode
        try:
            yield
        finally:
            self._local.mode = before

    @property
    def _mode(self) -> Mode:
        found: Mode = getattr(self._local, "mode", "")
        return found

    def _kept(self, function: Any) -> Any:
        if not isinstance(function, torch.nn.Module):
            return self._as_region(function, function)
        # As `Module.compile()` has it.
        call: Any = function._call_impl
        function._compiled_call_impl = self._as_region(call, call)
        return function

    def _wrapped(self, compiled: FunctionType) -> Any:
        eager: Any = getattr(compiled, "_torchdynamo_orig_callable", None)
        return compiled if eager is None else self._as_region(eager, compiled)

    def _as_region(self, eager: Callable[..., Any], compiled: Callable[..., Any]) -> Any:
        region = CompiledRegion(_name(eager), eager, compiled)
        regions = self

        @functools.wraps(compiled)
        def call_region(*args: Any, **kwargs: Any) -> Any:
            mode = regions._mode
            if mode == "eager":
                return eager(*args, **kwargs)
            if mode == "compiled":
                return compiled(*args, **kwargs)
            if region.number < 0:
                region.number = regions._called
                regions._called += 1
            return regions._on_call(region, args, kwargs)

        if hasattr(compiled, "_torchdynamo_wrapper_id"):
            # torch tells its own wrappers from copies of their attributes by this.
            call_region._torchdynamo_wrapper_id = id(call_region)  # type: ignore[attr-defined]
        # Called from the eager part of another region, it is nothing to be compiled.
        wrapper: Any = call_region
        skip = getattr(torch._dynamo.eval_frame, "skip_code", None)
        if skip is not None:
            skip(wrapper.__code__)
        return wrapper


def calls_region(code: CodeType) -> bool:
    """Is this the code that stands for compiled functions once `Regions` are installed?"""
    return code.co_name == "call_region" and code.co_filename == __file__


def _is_torchs_own(function: Any) -> bool:
    """In torch 2.13 an eager `torch.cond` or `while_loop` compiles itself, and needs it."""
    code = getattr(function, "__code__", None)
    return code is not None and "_higher_order_ops" in Path(code.co_filename).parts


def _name(function: Any) -> str:
    """As its author knows it: the function, or the module's class."""
    for _ in range(8):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    owner = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        return type(owner).__qualname__
    if isinstance(function, torch.nn.Module):
        return type(function).__qualname__
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def model_of(function: Any) -> Any:
    """The module whose `__call__` or `_call_impl` this is; else the function."""
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "")
    if isinstance(owner, torch.nn.Module) and name in ("_wrapped_call_impl", "_call_impl"):
        return owner
    return function
