"""The chromium events of a trace: begins and ends of phases, joined into `CompilePhases`.

They are half of a trace's records, so they are read with as little as possible: name, time, and
the one or two things that torch notes of a phase. Each compilation becomes one event.
"""

from collections import Counter

import msgspec

from compilescope.record.bodies import CompilePhases
from compilescope.record.phases import SeenPhase, by_compilation, recorded

# Chosen: bounds for memory, and a tooltip's length.
_LONGEST_DETAIL = 200
_MOST_KEPT = 2000
_LATEST_US = 9e15
"""In nanoseconds it still is a number that JSON can hold."""


class _Noted(msgspec.Struct):
    compile_id: str | None = None
    cache_state: str | None = None
    kernel_name: str | None = None


class _Event(msgspec.Struct):
    name: str
    ts: float
    ph: str = ""
    args: _Noted | None = None


def _ns(event: _Event) -> int:
    return int(event.ts * 1000)


_decode = msgspec.json.Decoder(_Event).decode


class ReadyEvent(msgspec.Struct):
    """An event that is ready."""

    body: CompilePhases
    compile_id: str | None
    time_ns: int


class Phases:
    """The phases of one process that have begun and are not written yet."""

    def __init__(self) -> None:
        self._stack: list[SeenPhase] = []
        self._open: Counter[str] = Counter()
        """How often each name is on the stack, which may be as deep as the trace is long."""
        self._kept: list[SeenPhase] = []
        self._last_ns = 0
        self.other = 0
        """Events that neither begin nor end a phase."""
        self.last_ts = 0.0

    def add(self, payload: bytes) -> list[ReadyEvent]:
        """One event; what is complete with it comes back. Raises msgspec.DecodeError."""
        event = _decode(payload)
        if not 0 <= event.ts < _LATEST_US:
            raise msgspec.ValidationError("no time")
        self.last_ts = event.ts
        if event.ph == "B":
            self._begin(event)
        elif event.ph == "E":
            return self._end(event)
        else:
            self.other += 1
        return []

    def finish(self) -> list[ReadyEvent]:
        """Phases without an end are told as far as they are known."""
        for phase in self._stack:
            phase.end_ns, phase.unended = self._last_ns, True
        self._stack = []
        self._open.clear()
        return self._take()

    def _begin(self, event: _Event) -> None:
        noted = event.args.compile_id if event.args else None
        # torch writes the absence of an id as a word.
        compile_id = None if noted == "None" else noted
        phase = SeenPhase(event.name, _ns(event), len(self._stack), compile_id)
        self._stack.append(phase)
        self._open[phase.name] += 1
        self._kept.append(phase)
        self._last_ns = _ns(event)

    def _end(self, event: _Event) -> list[ReadyEvent]:
        stack = self._stack
        if not self._open[event.name]:
            return []  # Its beginning is not in this log.
        self._last_ns = _ns(event)
        while stack[-1].name != event.name:
            # An error took it past its end, which is no later than that of what encloses it.
            inner = self._pop()
            inner.end_ns, inner.unended = _ns(event), True
        phase = self._pop()
        phase.end_ns = _ns(event)
        noted = event.args
        if noted is not None and (noted.cache_state or noted.kernel_name):
            detail = f"cache {noted.cache_state}" if noted.cache_state else ""
            detail = f"kernel {noted.kernel_name}" if noted.kernel_name else detail
            phase.detail = detail[:_LONGEST_DETAIL]
        # Those that are open stay: where they are most of them, all would be looked at each time.
        if not stack or len(self._kept) >= max(_MOST_KEPT, 2 * len(stack)):
            return self._take()
        return []

    def _pop(self) -> SeenPhase:
        phase = self._stack.pop()
        if self._open[phase.name] == 1:
            del self._open[phase.name]
        else:
            self._open[phase.name] -= 1
        return phase

    def _take(self) -> list[ReadyEvent]:
        done = [phase for phase in self._kept if phase.end_ns is not None]
        self._kept = [phase for phase in self._kept if phase.end_ns is None]
        return [_written(outer, group) for outer, group in by_compilation(done)]


def _written(outer: str | None, group: list[SeenPhase]) -> ReadyEvent:
    end = max(phase.end_ns or 0 for phase in group)
    return ReadyEvent(CompilePhases(recorded(outer, group)), outer, end)
