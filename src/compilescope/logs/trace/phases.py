"""The chromium events of a trace: begins and ends of phases, joined into `CompilePhases`.

They are half of a trace's records, so they are read with as little as possible: name, time, and
the one or two things that torch notes of a phase. Each compilation becomes one event.
"""

from __future__ import annotations

import msgspec

from compilescope.model.bodies import CompilePhases, Phase

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


_decode = msgspec.json.Decoder(_Event).decode


class _Seen:
    __slots__ = ("compile_id", "depth", "detail", "end_us", "name", "start_us", "unended")

    def __init__(self, name: str, start_us: float, depth: int, compile_id: str | None) -> None:
        self.name = name
        self.start_us = start_us
        self.depth = depth
        self.compile_id = compile_id
        self.detail = ""
        self.end_us: float | None = None
        self.unended = False


class Written(msgspec.Struct):
    """An event that is ready."""

    body: CompilePhases
    compile_id: str | None
    time_ns: int


class Phases:
    """The phases of one process that have begun and are not written yet."""

    def __init__(self) -> None:
        self._stack: list[_Seen] = []
        self._kept: list[_Seen] = []
        self._last_us = 0.0
        self.other = 0
        """Events that neither begin nor end a phase."""
        self.last_ts = 0.0

    def add(self, payload: bytes) -> list[Written]:
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

    def finish(self) -> list[Written]:
        """Phases without an end are told as far as they are known."""
        for phase in self._stack:
            phase.end_us, phase.unended = self._last_us, True
        self._stack = []
        return self._take()

    def _begin(self, event: _Event) -> None:
        noted = event.args.compile_id if event.args else None
        # torch writes the absence of an id as a word.
        compile_id = None if noted == "None" else noted
        phase = _Seen(event.name, event.ts, len(self._stack), compile_id)
        self._stack.append(phase)
        self._kept.append(phase)
        self._last_us = event.ts

    def _end(self, event: _Event) -> list[Written]:
        stack = self._stack
        if not any(phase.name == event.name for phase in stack):
            return []  # Its beginning is not in this log.
        self._last_us = event.ts
        while stack[-1].name != event.name:
            # An error took it past its end, which is no later than that of what encloses it.
            inner = stack.pop()
            inner.end_us, inner.unended = event.ts, True
        phase = stack.pop()
        phase.end_us = event.ts
        noted = event.args
        if noted is not None and (noted.cache_state or noted.kernel_name):
            detail = f"cache {noted.cache_state}" if noted.cache_state else ""
            detail = f"kernel {noted.kernel_name}" if noted.kernel_name else detail
            phase.detail = detail[:_LONGEST_DETAIL]
        if not stack or len(self._kept) >= _MOST_KEPT:
            return self._take()
        return []

    def _take(self) -> list[Written]:
        done = [phase for phase in self._kept if phase.end_us is not None]
        self._kept = [phase for phase in self._kept if phase.end_us is None]
        return [_written(outer, group) for outer, group in _by_compilation(done)]


def _written(outer: str | None, group: list[_Seen]) -> Written:
    end = max(phase.end_us or 0.0 for phase in group)
    phases = tuple(
        Phase(
            phase.name,
            int(phase.start_us * 1000),
            max(int(((phase.end_us or 0.0) - phase.start_us) * 1000), 0),
            phase.depth,
            None if phase.compile_id == outer else phase.compile_id,
            phase.detail,
            not phase.unended,
        )
        for phase in group
    )
    return Written(CompilePhases(phases), outer, int(end * 1000))


def _by_compilation(phases: list[_Seen]) -> list[tuple[str | None, list[_Seen]]]:
    """Each outermost compilation alone; what lies outside any, together."""
    groups: list[tuple[str | None, list[_Seen]]] = []
    for phase in phases:
        outer, group = groups[-1] if groups else (None, [])
        if not groups or (phase.depth == 0 and (outer or phase.compile_id)):
            groups.append((phase.compile_id, [phase]))
            continue
        group.append(phase)
        if outer is None and phase.compile_id is not None:
            groups[-1] = (phase.compile_id, group)
    return groups
