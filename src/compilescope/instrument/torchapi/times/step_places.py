"""Reads a step that torch's profiler recorded with stacks: the user's line of each operator.

The profiler's tree of events has what its trace lacks: the line from which each function is called.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from compilescope.base.package import PACKAGE
from compilescope.base.patterns import late
from compilescope.instrument.torchapi.stacks import origin
from compilescope.knowledge.profiles.calls import (
    WAIT,
    CallPlace,
    HostLine,
    StepPlaces,
    UserLine,
    Within,
    is_backward,
    is_call,
    within_mark,
)
from compilescope.knowledge.profiles.kernel_rows import work_of_operator
from compilescope.knowledge.profiles.trace import STEP
from compilescope.record.stack import plain_function_name

_MOST_LINES = 20
"""Of the host's lines. Chosen: the longest few are what a reader acts on."""
_LEAST_US = 1.0
"""Of a line. Chosen: what takes less is lost in the profiler's own cost."""
_PYTHON = ("PyCall", "PyCCall")
_GENERATED = late(r"[/\\][a-z0-9]{2}[/\\]c[a-z0-9]{40,}\.py$")
"""Inductor's code in its cache."""


class _Enclosing(NamedTuple):
    """What an event lies in."""

    at: UserLine | None = None
    within: Within = ""
    function: str = ""
    code: UserLine | None = None


def read_step_places(profiler: Any) -> StepPlaces:
    """Of a `torch.profiler.profile` that has stopped."""
    tree = profiler.profiler.kineto_results.experimental_event_tree()
    begin, end, thread = _step(tree)
    events = [pair for pair in _calls(tree) if begin <= pair[0].start_time_ns < end]
    events.sort(key=lambda pair: pair[0].start_time_ns)
    forward: dict[int, UserLine] = {}
    for event, around in events:
        operator = event.tag.name == "TorchOp"
        if operator and around.at is not None and not is_backward(event.name):
            for number in _sequence_numbers(event):
                forward.setdefault(number, around.at)
    calls = [
        _place(event, around, forward)
        if event.tag.name == "TorchOp"
        else CallPlace(WAIT, around.at)
        for event, around in events
        if event.tag.name != "TorchOp" or is_call(event.name)
    ]
    generated = {
        event.name: _place(event, around, forward)
        for event, around in events
        if event.tag.name == "TorchOp" and _is_generated(event.name)
    }
    doubles = [place for place in generated.values() if "float64" in place.dtypes]
    # Python of other threads (a progress bar's, say) is not what the step waits for.
    own = [event for event in tree if thread is None or event.start_tid == thread]
    return StepPlaces(calls, doubles, _host_lines(own, begin, end))


def _step(tree: list[Any]) -> tuple[float, float, int | None]:
    """When it begins and ends, and its thread. Around it the profiler starts and stops."""
    for event in _operators(*tree):
        if event.name.startswith(STEP):
            return event.start_time_ns, event.end_time_ns, event.start_tid
    return 0, float("inf"), None


def _calls(tree: list[Any]) -> Iterator[tuple[Any, _Enclosing]]:
    """The outermost operators, kernels of Inductor's code, and waits for a device, with what they
    lie in."""
    todo = [(event, _Enclosing()) for event in reversed(tree)]
    while todo:
        event, around = todo.pop()
        kind = event.tag.name
        if kind in _PYTHON:
            at = _called_from(event, around.function) or around.at
            if _waits(event):
                yield event, around._replace(at=at)
                continue
            code = _generated_line(event) or around.code
            if kind == "PyCall":
                around = _Enclosing(_own_frame(event) or at, around.within, _function(event), code)
            else:
                around = _Enclosing(at, around.within, around.function, code)
        elif kind == "TorchOp":
            called = is_call(event.name) and "USER_SCOPE" not in str(event.extra_fields.scope)
            if called or _is_generated(event.name):
                yield event, around
                continue
            around = around._replace(within=within_mark(event.name, around.within))
        todo += [(child, around) for child in reversed(event.children)]


def _waits(event: Any) -> bool:
    """`torch.cuda.synchronize()`, or the method of a stream or an event."""
    if _short(event) != WAIT:
        return False
    return event.tag.name == "PyCCall" or "torch" in str(event.extra_fields.callsite.file_name)


def _is_generated(name: str) -> bool:
    """A Triton kernel, which Inductor's launcher tells to the profiler with what it takes."""
    return name.startswith("triton_")


def _place(event: Any, around: _Enclosing, forward: dict[int, UserLine]) -> CallPlace:
    at, within = around.at, around.within
    if is_backward(event.name):
        within = "backward"
        numbers = _sequence_numbers(event)
        at = next((forward[number] for number in numbers if number in forward), at)
    flops, moved = 0.0, 0.0
    dtypes: dict[str, None] = {}
    for each in _operators(event):
        fields = each.extra_fields
        tensors = [value for value in fields.inputs if hasattr(value, "sizes")]
        # A Python number is a tensor without dimensions here, of float64: `x * 2.0`.
        sized = [value for value in tensors if len(value.sizes)]
        dtypes |= {str(value.dtype).removeprefix("torch."): None for value in sized}
        work = work_of_operator(each.name, [list(value.sizes) for value in tensors])
        if work is not None:
            flops += work.flops
            moved += work.elements * tensors[0].dtype.itemsize
    return CallPlace(event.name, at, around.code, within, tuple(sorted(dtypes)), flops, moved)


def _operators(*events: Any) -> Iterator[Any]:
    """They, and all in them."""
    todo = [*events]
    while todo:
        each = todo.pop()
        if each.tag.name == "TorchOp":
            yield each
        todo += each.children


def _sequence_numbers(event: Any) -> list[int]:
    found = (each.extra_fields.sequence_number for each in _operators(event))
    return [number for number in found if number >= 0]


def _called_from(event: Any, function: str) -> UserLine | None:
    """The user's line that calls this function; None if it is not the user's."""
    fields = event.extra_fields  # Its frames don't outlive it.
    return _line(fields.caller, function)


def _generated_line(event: Any) -> UserLine | None:
    """The line of Inductor's code that calls this function."""
    fields = event.extra_fields
    file = _whole_path(fields.caller.file_name)
    return UserLine(file, fields.caller.line_number) if _GENERATED.search(file) else None


def _own_frame(event: Any) -> UserLine | None:
    """The first line of a function of the user's, for what it does without a call: `a @ b`."""
    fields = event.extra_fields
    found = _line(fields.callsite, _function(event))
    return None if found is None else UserLine(found.file, found.line, found.function, False)


def _is_torchs(event: Any) -> bool:
    fields = event.extra_fields
    file = _whole_path(fields.callsite.file_name)
    return origin(file) == "torch" or _GENERATED.search(file) is not None


def _function(event: Any) -> str:
    """From `train.py(12): step`. Of code that is gone by now torch 2.13 reads a name at random."""
    try:
        return plain_function_name(str(event.name).rpartition("): ")[2])
    except UnicodeDecodeError:
        return ""


def _line(frame: Any, function: str) -> UserLine | None:
    file = _whole_path(frame.file_name)
    ours = file.startswith(PACKAGE + os.sep)
    if ours or origin(file) != "user" or _GENERATED.search(file) or not os.path.isfile(file):
        return None
    return UserLine(file, frame.line_number, function)


@functools.lru_cache(maxsize=4096)
def _whole_path(name: str) -> str:
    """The profiler takes away the folder of `sys.path` that a file lies in."""
    if os.path.isabs(name):
        return name
    for folder in sys.path:
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path):
            return path
    return name


def _host_lines(tree: list[Any], begin: float, end: float) -> list[HostLine]:
    """Calls from the user's lines in which torch has no part, while the step lasts."""
    times: dict[UserLine, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    todo: list[tuple[Any, UserLine | None, str, bool]] = [
        (event, None, "", False) for event in tree
    ]
    while todo:
        event, at, function, in_torch = todo.pop()
        if event.tag.name not in _PYTHON:
            todo += [(child, at, function, in_torch) for child in event.children]
            continue
        at = _called_from(event, function) or at
        own = None
        if event.tag.name == "PyCall":
            function, own = _function(event), _own_frame(event)
            # What surrounds compiled code may call no operator, and is torch's all the same.
            in_torch = own is None and (in_torch or _is_torchs(event))
        alone = not any(True for _ in _operators(event))
        if own is None and at is not None and alone and not in_torch:
            times[at][_short(event)] += (
                max(min(event.end_time_ns, end) - event.start_time_ns, 0) / 1e3
            )
            continue
        if own is not None and alone:
            inner = sum(child.duration_time_ns for child in event.children)
            times[own][own.function] += max(event.duration_time_ns - inner, 0) / 1e3
        todo += [(child, own or at, function, in_torch) for child in event.children]
    found = [
        HostLine(at, sum(named.values()), max(named, key=lambda name: named[name]))
        for at, named in times.items()
    ]
    found = [line for line in found if line.us >= _LEAST_US]
    return sorted(found, key=lambda line: -line.us)[:_MOST_LINES]


def _short(event: Any) -> str:
    """`<built-in function sleep>` is `sleep` to its caller."""
    try:
        name = str(event.name)
    except UnicodeDecodeError:
        return ""
    words = name.strip("<>").split(" of ")[0].split()
    return words[-1].rpartition("(")[0] or words[-1] if words else name
