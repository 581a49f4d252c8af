"""What a hook is, and the wrapper that makes it harmless.

Whatever a hook does, the program gets the value or the exception that it would get anyway. The
hooks of one capture share the state that is kept here.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.guards.misses import Misses
from compilescope.instrument.torchapi.guards.versions import CompiledVersions
from compilescope.instrument.torchapi.sinks import Sink
from compilescope.instrument.torchapi.times.phases import PhaseLog
from compilescope.instrument.torchapi.times.region_calls import CallCounts
from compilescope.instrument.torchapi.times.region_times import Timing
from compilescope.instrument.torchapi.times.step_profiler import StepProfiler
from compilescope.instrument.torchapi.weak_notes import WeakNotes
from compilescope.record.bodies import GraphBreak
from compilescope.record.break_text import BreakTexts
from compilescope.record.cache_key import KeyParts
from compilescope.record.stack import Frame

_MOST_FAULTS = 10
"""That one hook reports. Chosen: one that is passed hundreds of times must not crowd out the
others."""


@dataclass
class FrameMemory:
    """What one thread has seen of the frame it is compiling."""

    code: Any = None
    last_break: GraphBreak | None = None
    last_break_id: str | None = None
    failure_id: str | None = None
    failure_backend: bool = False
    misses: Misses = field(default_factory=Misses)
    graph_id: str | None = None
    """Id of the event for the graph that the backend compiles now."""


@dataclass
class KernelLook:
    """A kernel for which Triton asks its cache."""

    source: Any
    parts: KeyParts
    built: bool = False
    """It was compiled: the cache had nothing."""


class _ThreadMemory(threading.local):
    """A memory for each thread, made when the thread first comes by."""

    def __init__(self) -> None:
        self.frame = FrameMemory()
        self.kernel: KernelLook | None = None


@dataclass
class Watch:
    """The state that the hooks of one capture share."""

    sink: Sink
    ir: bool = False
    calls: bool = False
    """Look for the ATen operators behind each node of Dynamo's graphs."""
    time: bool = False
    profile: int = 0
    """So many steps are to be profiled."""
    timing: Timing | None = None
    """The clock, while hooks are on and `time` asks for one."""
    profiler: StepProfiler | None = None
    """Likewise, for `profile`."""
    counts: CallCounts | None = None
    """How often regions are called, while hooks are on."""
    versions: CompiledVersions | None = None
    """The functions that were compiled again, while hooks are on."""
    phases: PhaseLog | None = None
    """The phases of compilations, while hooks are on."""
    failed: Callable[[BaseException], None] | None = None
    """Who wants to see the errors of backends as they come."""
    texts: BreakTexts = field(default_factory=BreakTexts)
    guard_frames: WeakNotes[dict[str, Frame]] = field(default_factory=WeakNotes)
    """Guard manager -> source -> the user's line that installed the guard."""
    storm_frames: dict[str, dict[str, Frame]] = field(default_factory=dict)
    """The same by Dynamo's number of the frame, of its latest compilation that was looked at."""
    _noted: set[tuple[Any, ...]] = field(default_factory=set)
    thread: _ThreadMemory = field(default_factory=_ThreadMemory)
    """What the thread that asks has seen."""

    @property
    def steady(self) -> bool:
        """Does anybody ask where warm-up ends?"""
        return self.time or self.profile > 0

    @property
    def frame(self) -> FrameMemory:
        return self.thread.frame

    def is_written_soon(self, compile_id: str | None) -> bool:
        """Does this compilation end with its phases? What is told of it can wait for them: both are
        written in one go."""
        return self.phases is not None and self.phases.is_in(compile_id)

    def first_time(self, *key: Any) -> bool:
        """True once for each key."""
        if key in self._noted:
            return False
        self._noted.add(key)
        return True

    def forget_frame(self) -> None:
        self.thread.frame = FrameMemory()


class HookedCall:
    """One call of a choke point. Made for every call: it keeps what it is given, and no more."""

    __slots__ = ("_bound", "_parameters", "args", "kwargs", "result")

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parameters: Parameters,
        result: Any = None,
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.result = result
        self._parameters = parameters
        self._bound: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        """The argument called `name`, whichever way it was passed; KeyError if there is none."""
        return self._by_name()[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._by_name().get(name, default)

    def _by_name(self) -> dict[str, Any]:
        if self._bound is None:
            self._bound = self._parameters.bind(self.args, self.kwargs)
        return self._bound


class Parameters:
    """Of a choke point."""

    __slots__ = ("_names", "_signature")

    def __init__(self, signature: inspect.Signature) -> None:
        self._signature = signature
        kinds = {each.kind for each in signature.parameters.values()}
        simple = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
        self._names = tuple(signature.parameters) if simple else None

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name. `inspect` takes as long for one call as all else in a hook; where
        parameters gather nothing, their order says the same."""
        if self._names is None:
            return self._signature.bind(*args, **kwargs).arguments
        return {**dict(zip(self._names, args, strict=False)), **kwargs}


Observer = Callable[[Watch, HookedCall], None]


@dataclass(frozen=True)
class Hook:
    """One choke point of torch and what to note when it is passed."""

    id: str
    module: str
    """The module that owns the choke point. It is patched when that module is imported."""
    target: str
    """The attribute within it: `function` or `Class.method`."""
    loses: str
    """What the record lacks where torch has no such point."""
    before: Observer | None = None
    after: Observer | None = None
    wants: Callable[[tuple[Any, ...]], bool] | None = None
    """A cheap look at the arguments; False leaves the call alone."""
    first: frozenset[str] = frozenset()
    """Cheaper still: calls whose first argument is none of these are left alone."""
    settles: Callable[[Watch, tuple[Any, ...], Any], bool] | None = None
    """A quick look at arguments and result, for what is passed hundreds of times a compilation;
    True: all is noted, the observer need not be called."""
    everywhere: bool = False
    """torch's modules bind the function by name: patch it in each of them."""
    only_with: Literal["", "ir", "time", "profile", "steady"] = ""
    """Put on only where the capture asks for it: the name of a field of Watch."""
    cleans_up: bool = False
    """It ends what torch began: it is called even if an exception of the program's came before."""
    logs: bool = False
    """It logs in its caller's name, so the wrapper must not look like the caller."""
    unless: str = ""
    """Stands in for another target of the same module, and is left off where torch has that."""


def observed(original: Callable[..., Any], hook: Hook, watch: Watch) -> Callable[..., Any]:
    """`original`, watched. Its value, its exceptions and its arguments stay as they are."""
    try:
        signature = inspect.signature(original)
    except (TypeError, ValueError) as error:
        let_through(error)
        signature = inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )
    parameters = Parameters(signature)
    before, after, settles = hook.before, hook.after, hook.settles
    wants, first = hook.wants, hook.first
    faults = 0

    def failed(error: Exception) -> None:
        nonlocal faults
        faults += 1
        if faults <= _MOST_FAULTS:
            watch.sink.fault(hook.id, error)

    def note(observer: Observer, args: Any, kwargs: Any, result: Any) -> None:
        handled = sys.exc_info()[1]
        try:
            observer(watch, HookedCall(args, kwargs, parameters, result))
        except Exception as error:
            let_through(error, handled)
            failed(error)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if (first and args and args[0] not in first) or (wants is not None and not wants(args)):
            return original(*args, **kwargs)
        if before is not None:
            try:
                note(before, args, kwargs, None)
            except BaseException:
                if hook.cleans_up:
                    original(*args, **kwargs)
                raise
        result = original(*args, **kwargs)
        if after is not None:
            note(after, args, kwargs, result)
        return result

    if settles is not None:
        wrapper = _quickly_observed(original, hook, watch, note, failed)
    if hook.logs:
        # logging passes over frames of its own file when it looks for the caller.
        wrapper.__code__ = wrapper.__code__.replace(co_filename=logging.__file__)
    return functools.update_wrapper(wrapper, original)


def _quickly_observed(
    original: Callable[..., Any],
    hook: Hook,
    watch: Watch,
    note: Callable[..., None],
    failed: Callable[[Exception], None],
) -> Callable[..., Any]:
    """Where a hook `settles`: one call less for each, which would cost as much as all it does."""
    settles, before, after = hook.settles, hook.before, hook.after
    assert settles is not None
    assert (before is None) != (after is None)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs) if before is None else None
        handled = sys.exc_info()[1]
        try:
            settled = settles(watch, args, result)
        except Exception as error:
            let_through(error, handled)
            settled = True
            failed(error)
        if before is None:
            if not settled:
                note(after, args, kwargs, result)
            return result
        if not settled:
            note(before, args, kwargs, None)
        return original(*args, **kwargs)

    return wrapper
