"""Operators that a program calls in a step, and the lines that call them.

The steps whose time is told are recorded without stacks, which are dear; one step more is recorded
with them. The n-th call of an operator in a step is the n-th in that one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from compilescope.profiles.host import host_work
from compilescope.profiles.trace import Trace, TraceSpan

Within = Literal["", "graph", "region", "optimizer", "data", "backward"]
"""`graph`: in Inductor's code; `region`: in a compiled function, by a backend without such."""
_ENGINE = "autograd::engine"
_COMPILED_BACKWARD = "CompiledFunctionBackward"


class UserLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the user's program."""

    file: str
    line: int
    function: str = ""
    exact: bool = True
    """Else the first line of the function in which it happens."""


class CallPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of an operator."""

    name: str
    at: UserLine | None = None
    """Of a backward operator: where the forward one is called."""
    code: UserLine | None = None
    """In compiled code: the line of Inductor's code that calls it."""
    within: Within = ""
    dtypes: tuple[str, ...] = ()
    """Of the tensors that it and all that it calls take, each once."""
    flops: float = 0.0
    """Of products of matrices and convolutions."""
    bytes: float = 0.0
    """What these read and write at least."""


class HostLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Time that the host spends outside of torch, called from a line."""

    at: UserLine
    us: float
    calls: str = ""
    """What takes most of it."""


class StepPlaces(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the step with stacks tells."""

    calls: list[CallPlace] = []
    """In the order of their beginning."""
    generated: list[CallPlace] = []
    """Kernels of Inductor's code that compute in float64, each name once."""
    lines: list[HostLine] = []
    """The longest first."""


def read_places(text: str | None) -> StepPlaces:
    """Empty where it is not what was stored."""
    try:
        return msgspec.json.decode(text, type=StepPlaces) if text else StepPlaces()
    except msgspec.DecodeError:
        return StepPlaces()


def operator_name(name: str) -> str:
    """Without autograd's words for "now comes"."""
    return name.removeprefix(f"{_ENGINE}::evaluate_function: ")


def is_call(name: str) -> bool:
    """An operator; else a mark around operators."""
    if is_backward(name):
        return _COMPILED_BACKWARD not in name
    if _COMPILED_BACKWARD in name:
        return False
    return host_work(TraceSpan(name, "cpu_op", 0, 0, 0)) == "operator"


class StepCall(NamedTuple):
    """An outermost operator of a recorded step."""

    span: TraceSpan
    place: CallPlace


class Calls:
    """The outermost operators of a trace, by thread and time."""

    def __init__(self, trace: Trace, places: StepPlaces) -> None:
        self._known: dict[str, list[CallPlace]] = defaultdict(list)
        for place in places.calls:
            self._known[place.name].append(place)
        self._lanes: dict[int | str, list[StepCall]] = defaultdict(list)
        self._starts: dict[int | str, list[float]] = {}
        counts: dict[tuple[int, str], int] = defaultdict(int)
        begins = [step.start for step in trace.steps]
        for span, within in _outermost(trace.host):
            step = bisect_right(begins, span.start)
            nth = counts[step, span.name]
            counts[step, span.name] += 1
            place = self._place(span.name, nth)
            # The trace itself knows what it lies in.
            place = msgspec.structs.replace(place, within=within)
            self._lanes[span.lane].append(StepCall(span, place))
        for lane, calls in self._lanes.items():
            self._starts[lane] = [call.span.start for call in calls]

    def at(self, lane: int | str, time: float) -> StepCall | None:
        """The one that runs then."""
        index = bisect_right(self._starts.get(lane, []), time) - 1
        if index < 0:
            return None
        call = self._lanes[lane][index]
        return call if time <= call.span.end else None

    def of(self, lane: int | str) -> list[StepCall]:
        return self._lanes.get(lane, [])

    def _place(self, name: str, nth: int) -> CallPlace:
        known = self._known.get(name)
        if not known:
            return CallPlace(name)
        if nth < len(known):
            return known[nth]
        # More calls than in the step with stacks: the last one's line, if all have the same.
        return known[-1] if len({place.at for place in known}) == 1 else CallPlace(name)


def _outermost(host: Iterable[TraceSpan]) -> Iterable[tuple[TraceSpan, Within]]:
    """By beginning; calls within calls are left out. With what they lie in."""
    until: dict[int | str, float] = {}
    marks: dict[int | str, list[tuple[float, Within]]] = defaultdict(list)
    for span in host:
        if span.kind not in ("cpu_op", "user_annotation"):
            continue
        around = marks[span.lane]
        while around and around[-1][0] <= span.start:
            around.pop()
        outer: Within = around[-1][1] if around else ""
        if span.kind == "user_annotation" or not is_call(span.name):
            around.append((span.end, within_mark(span.name, outer)))
        elif span.start >= until.get(span.lane, 0.0):
            until[span.lane] = span.end
            yield span, "backward" if is_backward(span.name) else outer


def within_mark(name: str, outer: Within) -> Within:
    """What lies in a mark of this name."""
    if name.startswith("## Call CompiledFxGraph"):
        return "graph"
    if name.startswith("Torch-Compiled Region"):
        return "region"
    if name.startswith("Optimizer."):
        return "optimizer"
    if name.lower().startswith(("enumerate(dataloader)", "dataloader")):
        return "data"
    return outer


def is_backward(name: str) -> bool:
    return name.startswith(_ENGINE)


# Kernels that Inductor might have fused, and why it did not, in its own words.


class UnfusedPair(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two kernels of one graph that use the same tensors."""

    first: str
    """What it computes: the names of ATen's operators."""
    second: str
    reason: str
    at: UserLine | None = None
    """The user's line of the first one."""
    count: int = 1
    """How many such pairs there are."""


def read_unfused(text: str | None) -> list[UnfusedPair]:
    """Empty where it is not what was stored."""
    try:
        return msgspec.json.decode(text, type=list[UnfusedPair]) if text else []
    except msgspec.DecodeError:
        return []
