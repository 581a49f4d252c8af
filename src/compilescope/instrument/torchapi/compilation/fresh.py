"""What was compiled in this process already, how long that took, and how to have it compiled as if
for the first time.

Dynamo keeps compiled code, and the mark of a function that it gave up, with the code object. There
is no way to put that aside for one call, so it is dropped, as `torch._dynamo.explain` does. Less is
dropped than `torch.compiler.reset` drops: compile ids, CUDA graphs and the sizes that were seen to
change stay. The caches of compiled code are empty or unused for a while.

A module that `.compile()` compiled in place stays a module, and calls what that made of it.
`torch.compile` around it changes nothing: Dynamo skips torch's own `__call__`, and the module calls
its own compilation, with its own backend.

Where torch lacks the place that every compilation passes, nothing is counted; who asks for steady
state then has only the steps' own times to go by.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import CodeType, ModuleType
from typing import Any

import torch

from compilescope.instrument.torchapi.stacks import code_ref, origin
from compilescope.record.bodies import CompiledFunction
from compilescope.record.stack import origin_of


def is_compiled_in_place(model: Any) -> bool:
    return getattr(model, "_compiled_call_impl", None) is not None


def to_compile(model: Any) -> Any:
    """What to give to `torch.compile` so that its backend is the one that is called."""
    if not is_compiled_in_place(model):
        return model
    if not shares_frame(model):
        return model._call_impl  # As `.compile()` does it: the user's forward is entered.
    return with_own_code(model._call_impl)


def shares_frame(model: Any) -> bool:
    """A module whose forward is torch's own: Dynamo compiles them all in one frame."""
    if not isinstance(model, torch.nn.Module):
        return False
    code = getattr(type(model).forward, "__code__", None)
    return code is not None and origin_of(code.co_filename) == "torch"


def with_own_code(function: Any) -> Any:
    """The function in a frame that no other compilation shares, for Dynamo keeps what it compiled,
    and counts it against its limits, by code object, and which sizes it saw by file, line and name:
    other sizes of another function would be dynamic. Itself where this torch has no such frame."""
    import torch._dynamo.external_utils

    wrap = getattr(torch._dynamo.external_utils, "wrap_inline", None)
    if wrap is None:
        return function
    called = wrap(function)
    code = called.__code__
    called.__code__ = code.replace(co_name=f"{code.co_name}_{next(_own_frames)}")
    return called


_own_frames = itertools.count(1)


def compiled_functions() -> list[CompiledFunction] | None:
    """The program's functions that Dynamo looked at, most compilations first; one without any was
    given up, or its code was dropped since. None where this torch does not tell."""
    dynamo = sys.modules.get("torch._dynamo.convert_frame")
    if dynamo is None:
        return []  # Never imported: nothing can have been compiled.
    codes, entries_of = _seen_codes(dynamo), _entries_of()
    if codes is None or entries_of is None:
        return None
    counts: dict[tuple[str, int, str], CompiledFunction] = {}
    for code in codes:
        if origin(code.co_filename) not in ("user", "library"):
            continue
        ref = code_ref(code)
        # What a function left after a break counts with it.
        key = (ref.file, ref.line, ref.function)
        known = counts.get(key, CompiledFunction(*key))
        number = known.compilations + len(entries_of(code))
        counts[key] = CompiledFunction(*key, number)
    return sorted(counts.values(), key=lambda each: -each.compilations)


@contextmanager
def compiled_anew() -> Iterator[list[CompiledFunction]]:
    """Within the block Dynamo compiles as in a new process; what it compiled there goes again.

    Yields the functions whose compiled code was dropped: they compile again when next called.
    """
    dropped = [each for each in compiled_functions() or () if each.compilations]
    _drop()
    sizes = _put_sizes_aside()
    try:
        yield dropped
    finally:
        _drop()
        _put_sizes_back(sizes)


def as_compiled(function: Any, options: dict[str, Any], backend: Any = "eager") -> Any:
    """`function` with `torch.compile` around it, and `backend` unless `options` name one.

    What is compiled already stays as it is; with options, what was given to `torch.compile` is
    compiled with them.
    """
    if is_compiled(function):
        if not options:
            return function
        function = not_compiled(function)
    return torch.compile(to_compile(function), **{"backend": backend, **options})


def is_compiled(function: Any) -> bool:
    """Is it something that `torch.compile` made, or a module that `.compile()` compiled?"""
    from torch._dynamo import OptimizedModule

    if isinstance(function, OptimizedModule):
        return True
    if is_compiled_in_place(function):
        return True
    # Also a method whose class has it compiled. What torch.compiler.disable made is none.
    wrapped = hasattr(function, "_torchdynamo_orig_callable")
    return wrapped and not getattr(function, "_torchdynamo_disable", False)


def not_compiled(function: Any) -> Any:
    """What was given to `torch.compile`, where that can be had."""
    from torch._dynamo import OptimizedModule
    from torch._dynamo.eval_frame import innermost_fn

    if isinstance(function, OptimizedModule):
        return function._orig_mod
    return innermost_fn(function)


def _seen_codes(dynamo: ModuleType) -> list[CodeType] | None:
    """The code objects that Dynamo has looked at and that still exist."""
    trackers = [getattr(dynamo, name, None) for name in ("input_codes", "output_codes")]
    if not all(hasattr(tracker, "seen") for tracker in trackers):
        return None
    codes = [reference() for tracker in trackers for reference in list(tracker.seen)]  # type: ignore[union-attr]
    distinct = {id(code): code for code in codes if code is not None}
    return list(distinct.values())


def _entries_of() -> Any:
    """Code object -> its cache entries; None where this torch does not show them."""
    from torch._dynamo import eval_frame

    return getattr(eval_frame, "_debug_get_cache_entry_list", None)


def _drop() -> None:
    """All compiled code, and all marks of functions that were given up."""
    from torch._dynamo import convert_frame

    reset = getattr(torch._dynamo, "reset_code", None)
    codes = _seen_codes(convert_frame)
    lock = getattr(convert_frame, "compile_lock", None)
    if reset is None or codes is None or lock is None:
        torch.compiler.reset()
        return
    with lock:
        for code in codes:
            reset(code)


def _put_sizes_aside() -> Any:
    """The sizes that Dynamo saw change: one that varied once would be dynamic at once."""
    pgo = _sizes()
    if pgo is None:
        return None
    kept = (pgo._CODE_STATE, pgo._INIT_CODE_STATE)
    pgo._CODE_STATE = pgo._INIT_CODE_STATE = None
    return kept


def _put_sizes_back(kept: Any) -> None:
    pgo = _sizes()
    if pgo is not None:
        pgo._CODE_STATE, pgo._INIT_CODE_STATE = kept if kept is not None else (None, None)


def _sizes() -> Any:
    try:
        from torch._dynamo import pgo
    except ImportError:
        return None
    return pgo if hasattr(pgo, "_CODE_STATE") and hasattr(pgo, "_INIT_CODE_STATE") else None


def compile_nothing() -> None:
    """For the rest of this process: `torch.compile` leaves functions as they are."""
    torch.compiler.set_stance("force_eager")


@contextmanager
def fresh_cache() -> Iterator[None]:
    """Within the block nothing compiled before is found, in memory or on disk, and afterwards
    nothing of it is left.

    Before the first such block Inductor is used once: what a process pays a single time (imports,
    a look at the C++ compiler, precompiled headers) is no part of what the block measures.
    """
    _use_inductor_once()
    torch.compiler.reset()
    with ExitStack() as stack:
        try:
            from torch._inductor.utils import fresh_cache as torchs_own

            stack.enter_context(torchs_own())
        except ImportError:  # The name is private: without it, no cache is as good as an empty one.
            from torch._inductor import config

            stack.enter_context(config.patch(force_disable_caches=True))
        yield
    torch.compiler.reset()


@functools.cache
def _use_inductor_once() -> None:
    # Without a compiler it fails here as it will in the block, which is where to say so.
    with suppress(Exception):
        torch.compile(lambda x: x + 1)(torch.ones(8))


@contextmanager
def uncached() -> Iterator[None]:
    """A part compiled before would be found in a cache, by a backend that has changed since."""
    with ExitStack() as stack:
        for module, name in (
            ("torch._functorch.config", "enable_autograd_cache"),
            ("torch._inductor.config", "fx_graph_cache"),
            ("torch._inductor.config", "fx_graph_remote_cache"),
        ):
            # Importing Inductor takes seconds; who has not imported it does not use its cache.
            config = sys.modules.get(module)
            if config is not None and hasattr(config, name):
                stack.enter_context(config.patch(**{name: False}))
        yield


class CompilationClock:
    """Counts from `install` on, for good: the process is there for nothing else."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.at_begin: Callable[[], None] | None = None
        """Called as something begins to compile, in the modes that it is compiled for."""
        self._local = threading.local()

    def install(self) -> bool:
        """False where this torch has no place that every compilation passes."""
        self._count_loading()
        return self._count_compiling()

    def _count_loading(self) -> None:
        import torch

        load: Any = getattr(torch.compiler, "load_cache_artifacts", None)
        if load is None:
            return

        @functools.wraps(load)
        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return load(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - begun

        torch.compiler.load_cache_artifacts = timed

    def _count_compiling(self) -> bool:
        try:
            from torch._dynamo import metrics_context
        except ImportError:
            return False
        context: Any = getattr(metrics_context, "MetricsContext", None)
        if context is None:
            return False
        enter, leave = context.__enter__, context.__exit__

        @functools.wraps(enter)
        def begin(self_: Any) -> Any:
            self.count += 1
            depth = getattr(self._local, "depth", 0)
            self._local.depth = depth + 1
            if not depth:
                self._local.begun = time.perf_counter()
                if self.at_begin is not None:
                    self.at_begin()
            return enter(self_)

        @functools.wraps(leave)
        def end(self_: Any, *error: Any) -> Any:
            depth = self._local.depth = max(getattr(self._local, "depth", 1) - 1, 0)
            if not depth:
                self.seconds += time.perf_counter() - getattr(self._local, "begun", 0.0)
            return leave(self_, *error)

        context.__enter__, context.__exit__ = begin, end
        return True
