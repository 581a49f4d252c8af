"""What a hook is, whom it tells, and the wrapper that makes it harmless."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from compilescope.model.bodies import Body, GraphBreak
from compilescope.model.break_text import BreakTexts
from compilescope.model.stack import Frame
from compilescope.torchapi.times.phases import PhaseLog
from compilescope.torchapi.times.timing import Timing

_MOST_FAULTS = 10
"""That one hook reports: one that is passed hundreds of times must not crowd out the others."""


class Sink(Protocol):
    """Where hooks put what they see. The recorder is one."""

    def emit(
        self,
        body: Body,
        stack: Sequence[Frame] = (),
        compile_id: str | None = None,
        sources: Iterable[Frame] = (),
    ) -> str:
        """Append an event; its id comes back. The files that `sources` names are kept."""
        ...

    def artifact(self, text: str, kind: str) -> str: ...
    def fault(self, where: str, error: BaseException) -> None: ...
    def new_epoch(self) -> None: ...


@dataclass
class FrameMemory:
    """What one thread has seen of the frame it is compiling."""

    code: Any = None
    last_break: GraphBreak | None = None
    last_break_id: str | None = None
    failure_id: str | None = None
    failure_backend: bool = False
    misses: list[Any] = field(default_factory=list)
    graph_id: str | None = None
    """Id of the event for the graph that the backend compiles now."""


@dataclass
class Watch:
    """The state that the hooks of one capture share."""

    sink: Sink
    ir: bool = False
    calls: bool = False
    """Look for the ATen operators behind each node of Dynamo's graphs."""
    time: bool = False
    timing: Timing | None = None
    """The clock, while hooks are on and `time` asks for one."""
    phases: PhaseLog | None = None
    """The phases of compilations, while hooks are on."""
    planted_fault: str = ""
    failed: Callable[[BaseException], None] | None = None
    """Who wants to see the errors of backends as they come."""
    texts: BreakTexts = field(default_factory=BreakTexts)
    guard_frames: weakref.WeakKeyDictionary[Any, dict[str, Frame]] = field(
        default_factory=weakref.WeakKeyDictionary
    )
    """Guard manager -> source -> the user's line that installed the guard."""
    _noted: set[tuple[Any, ...]] = field(default_factory=set)
    _local: threading.local = field(default_factory=threading.local)

    @property
    def frame(self) -> FrameMemory:
        memory = getattr(self._local, "frame", None)
        if memory is None:
            memory = self._local.frame = FrameMemory()
        return memory

    def first_time(self, *key: Any) -> bool:
        """True once for each key."""
        if key in self._noted:
            return False
        self._noted.add(key)
        return True

    def forget_frame(self) -> None:
        self._local.frame = FrameMemory()


@dataclass(frozen=True)
class Call:
    """One call of a choke point."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    signature: inspect.Signature
    result: Any = None

    @functools.cached_property
    def _bound(self) -> dict[str, Any]:
        return self.signature.bind(*self.args, **self.kwargs).arguments

    def __getitem__(self, name: str) -> Any:
        """The argument called `name`, whichever way it was passed; KeyError if there is none."""
        return self._bound[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._bound.get(name, default)


Observer = Callable[[Watch, Call], None]


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
    everywhere: bool = False
    """torch's modules bind the function by name: patch it in each of them."""
    only_with: Literal["", "ir", "time"] = ""
    """Put on only where the capture asks for it: the name of a field of Watch."""
    logs: bool = False
    """It logs in its caller's name, so the wrapper must not look like the caller."""
    unless: str = ""
    """Stands in for another target of the same module, and is left off where torch has that."""


class PlantedFault(Exception):
    """Raised on request, to show that a hook's failure stays a hook's failure."""


def observed(original: Callable[..., Any], hook: Hook, watch: Watch) -> Callable[..., Any]:
    """`original`, watched. Its value, its exceptions and its arguments stay as they are."""
    try:
        signature = inspect.signature(original)
    except (TypeError, ValueError):
        signature = inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )
    before, after, wants = hook.before, hook.after, hook.wants
    faults = 0

    def note(observer: Observer, call: Call) -> None:
        nonlocal faults
        try:
            if watch.planted_fault in (hook.id, "all"):
                raise PlantedFault(f"planted in {hook.id}")
            observer(watch, call)
        except Exception as error:
            faults += 1
            if faults <= _MOST_FAULTS:
                watch.sink.fault(hook.id, error)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if wants is not None and not wants(args):
            return original(*args, **kwargs)
        if before is not None:
            note(before, Call(args, kwargs, signature))
        result = original(*args, **kwargs)
        if after is not None:
            note(after, Call(args, kwargs, signature, result))
        return result

    if hook.logs:
        # logging passes over frames of its own file when it looks for the caller.
        wrapper.__code__ = wrapper.__code__.replace(co_filename=logging.__file__)
    return functools.update_wrapper(wrapper, original)
