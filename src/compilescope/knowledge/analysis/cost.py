"""What breaks cost: the time of compiled regions that went by outside compiled graphs.

Where the process used a GPU it is the GPU's time: kernels outside graphs, and waiting for the host.
Only steady state counts: calls during which nothing was compiled. Time outside graphs is charged
to the break that ended the last graph before it. A break before which its frame had no graph is
charged together with the break it resumed after, or else with the region's own time outside graphs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Literal

import msgspec

from compilescope.base.texts import whole_number
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.record.bodies import GraphBreak, GraphTime, HookUnavailable, RegionTime, ToolFault
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef

_CLOCKS = frozenset({"timed-regions", "timed-graphs", "compile-starts", "timing"})
_NS_PER_MS = 1e6
Clock = Literal["host", "gpu"]
# Chosen: a sentence with three names can still be read.
_MOST_NAMED = 3
_MOST_STEPS = 1_000_000
"""From a break to one that shares its time; about one for each break, in programs. Chosen: a bound
for records that no program would write."""


class RegionCost(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of one compiled region went, over all its calls, processes and threads."""

    file: str
    line: int
    function: str
    calls: int
    """In steady state."""
    total_ms: float
    inside_ms: float
    coverage: float | None
    """Percent of the time that was inside compiled graphs; None without a steady-state call."""
    warmup_calls: int
    warmup_ms: float
    clock: Clock
    """Whose times `total_ms` and `inside_ms` are."""


def coverage(run: Run) -> float | None:
    """Percent of the regions' steady-state time inside compiled graphs; None: not measured."""
    if _clock_failed(run):
        return None
    times = _region_times(run)
    return _percent(sum(t.inside_ns for t in times), sum(t.total_ns for t in times))


def is_by_device(run: Run) -> bool:
    """Are these the GPU's times? They are if all calls were timed by it."""
    timed = [body for _, body in run.of(RegionTime) if body.calls]
    known = all(body.device_total_ns is not None for body in timed)
    return known and any(body.device_total_ns for _, body in run.of(RegionTime))


def _region_times(run: Run) -> list[RegionTime]:
    """By the clock that counts."""
    times = [body for _, body in run.of(RegionTime)]
    return [_by_device(body) for body in times] if is_by_device(run) else times


def _by_device(body: RegionTime) -> RegionTime:
    return msgspec.structs.replace(
        body,
        total_ns=body.device_total_ns or 0,
        inside_ns=body.device_inside_ns or 0,
        entry_ns=body.device_entry_ns or 0,
    )


def region_costs(run: Run) -> list[RegionCost]:
    """Each region's times, most time outside graphs first."""
    if _clock_failed(run):
        return []
    groups: dict[CodeRef, list[RegionTime]] = {}
    for body in _region_times(run):
        groups.setdefault(body.region, []).append(body)
    clock: Clock = "gpu" if is_by_device(run) else "host"
    costs = [_region_cost(region, times, clock) for region, times in groups.items()]
    return sorted(costs, key=lambda cost: cost.inside_ms - cost.total_ms)


def lost_by_site(run: Run, sites: Iterable[BreakFinding]) -> dict[str, float]:
    """Fingerprint -> milliseconds outside graphs because of that break, in steady state.

    Empty where nothing was timed, or too much shares too many times. A site that is missing was not
    reached in steady state, or its share cannot be told.
    """
    if _clock_failed(run) or not any(True for _ in run.of(RegionTime)):
        return {}
    ledger = _CostShares(run, sites)
    if not ledger.charge_all():
        return {}
    return {name: round(ns / _NS_PER_MS, 3) for name, ns in ledger.lost_ns.items()}


def no_coverage(run: Run) -> str:
    """Why calls were timed and there is no figure of them; empty where there is one."""
    if coverage(run) is not None:
        return ""
    if _clock_failed(run):
        return "unknown: one of compilescope's timers failed, or this torch lacks the hook it needs"
    calls: dict[str, int] = {}
    for _, body in run.of(RegionTime):
        calls[body.region.function] = calls.get(body.region.function, 0) + body.warmup_calls
    whole = sum(calls.values())
    if not whole:
        return "none: no timed call finished" if calls else ""
    named = [f"{number} of {name}" for name, number in calls.items() if number]
    more = f" and {len(named) - _MOST_NAMED} more functions" if len(named) > _MOST_NAMED else ""
    warm = f" ({', '.join(named[:_MOST_NAMED])}{more})" if len(named) > 1 else ""
    of = f" of {next(iter(calls))}" if len(named) == 1 else ""
    every = f"the only call{of}" if whole == 1 else f"all {whole} calls{of}{warm}"
    return f"none: {every} compiled something, so none was timed"


_Place = tuple[int, str, str, int | None]
"""Process, file, function, line: where a frame stopped, or where another resumed."""
_Function = tuple[str, str]


class _Break(msgspec.Struct, frozen=True):
    fingerprint: str
    event: Event
    body: GraphBreak

    @property
    def stopped_at(self) -> _Place | None:
        site = self.event.site
        return self._at(site.line if site is not None else None)

    @property
    def resumed_at(self) -> _Place | None:
        """Where its frame began; None for one that is no rest of a function."""
        frame = self.body.frame
        return self._at(frame.resumed_at) if frame and frame.resumed_at is not None else None

    def _at(self, line: int | None) -> _Place | None:
        frame = self.body.frame
        return (self.event.pid, frame.file, frame.function, line) if frame is not None else None


class _Attempts:
    """The breaks of one compilation, found by the attempt that met them."""

    def __init__(self, breaks: Sequence[_Break]) -> None:
        self._breaks = breaks
        latest: dict[int, int] = {}
        for number, found in enumerate(breaks):
            latest[_attempt(found.event.compile_id)] = number
        self._attempts = sorted(latest)
        self._latest = list(accumulate((latest[each] for each in self._attempts), max))

    def before(self, attempt: int) -> _Break:
        """The last that was reported before this attempt, else the last of all."""
        number = bisect_left(self._attempts, attempt)
        return self._breaks[self._latest[number - 1] if number else -1]


class _Graphless:
    """Breaks before which their frame had no graph, by where they are reached from."""

    def __init__(self, breaks: Iterable[_Break]) -> None:
        self._after: dict[_Place, dict[tuple[str, _Place | None], None]] = {}
        self._of_frame: dict[CodeRef | None, dict[str, None]] = {}
        self._under: dict[_Function, dict[str, None]] = {}
        for found in breaks:
            name = found.fingerprint
            self._of_frame.setdefault(found.body.frame, {})[name] = None
            for function in {(frame.file, frame.function) for frame in found.event.stack}:
                self._under.setdefault(function, {})[name] = None
            if found.resumed_at is not None:
                step = (name, found.stopped_at)
                self._after.setdefault(found.resumed_at, {})[step] = None

    def after(self, places: Iterable[_Place]) -> Iterator[str]:
        """Breaks at the very start of what resumed there, and of what resumed after those.

        One that several ways lead to is named by each.
        """
        reached = set(places)
        waiting = list(reached)
        while waiting:
            for name, stopped in self._after.get(waiting.pop(), ()):
                yield name
                if stopped is not None and stopped not in reached:
                    reached.add(stopped)
                    waiting.append(stopped)

    def within(self, region: CodeRef) -> Iterator[str]:
        """Breaks of a region's own frame, and of what it calls."""
        yield from self._of_frame.get(region, ())
        yield from self._under.get((region.file, region.function), ())


class _CostShares:
    """Who is charged for what."""

    def __init__(self, run: Run, sites: Iterable[BreakFinding]) -> None:
        self._run = run
        owners = {event_id: site.fingerprint for site in sites for event_id in site.because}
        breaks = [
            _Break(owners[event.id], event, body)
            for event, body in run.of(GraphBreak)
            if event.id in owners
        ]
        by_compile: dict[tuple[object, ...], list[_Break]] = {}
        self._stopped: dict[str, dict[_Place, None]] = {}
        for found in breaks:
            by_compile.setdefault(_compilation(found.event), []).append(found)
            if found.stopped_at is not None:
                self._stopped.setdefault(found.fingerprint, {})[found.stopped_at] = None
        self._by_compile = {key: _Attempts(members) for key, members in by_compile.items()}
        self._captured = {event.id: event for event in run.events}
        self._with_graph = dict.fromkeys(
            name for name in self._ends_of_graphs() if name is not None
        )
        self._graphless = _Graphless(b for b in breaks if b.fingerprint not in self._with_graph)
        self._steps_left = _MOST_STEPS
        self.lost_ns: dict[str, float] = {}

    def _ends_of_graphs(self) -> Iterator[str | None]:
        for event, body in self._run.of(GraphTime):
            yield self._ended_by(event, body)
        for event in self._run.events:
            if getattr(event.body, "ended_by_break", False):
                yield self._ended_by(event)

    def _ended_by(self, event: Event, time: GraphTime | None = None) -> str | None:
        """The break that ended this graph: the last one before the graph's own attempt."""
        if time is not None:
            event = self._captured.get(time.captured or "", event)
        found = self._by_compile.get(_compilation(event))
        return found.before(_attempt(event.compile_id)).fingerprint if found else None

    def charge_all(self) -> bool:
        """False where it would take too long: each break may share the time of every other."""
        by_device = is_by_device(self._run)
        after_ns: dict[str, int] = {}
        for event, time in self._run.of(GraphTime):
            owner = self._ended_by(event, time)
            if owner is not None:
                lost = (time.device_after_ns or 0) if by_device else time.after_ns
                after_ns[owner] = after_ns.get(owner, 0) + lost
        followed: set[str] = set()
        for owner in self._with_graph:
            following = self._counted(self._graphless.after(self._stopped.get(owner, ())))
            followed |= following.keys()
            self._charge([owner, *following], after_ns.get(owner, 0))
        entry_ns: dict[CodeRef, int] = {}
        for region in _region_times(self._run):
            entry_ns[region.region] = entry_ns.get(region.region, 0) + region.entry_ns
        for code, ns in entry_ns.items():
            leading = self._counted(self._graphless.within(code))
            self._charge([name for name in leading if name not in followed], ns)
        return self._steps_left > 0

    def _counted(self, names: Iterator[str]) -> dict[str, None]:
        """Each once, as long as there are steps left to take."""
        found: dict[str, None] = {}
        for name in islice(names, self._steps_left):
            found[name] = None
            self._steps_left -= 1
        return found

    def _charge(self, fingerprints: Sequence[str], ns: int) -> None:
        """What cannot be told apart is shared alike."""
        for name in fingerprints if ns else ():
            self.lost_ns[name] = self.lost_ns.get(name, 0.0) + ns / len(fingerprints)


def _compilation(event: Event) -> tuple[object, ...]:
    """The compilation an event belongs to. Attempts at one frame are one compilation."""
    return event.pid, event.epoch, (event.compile_id or "").split("_")[0]


def _attempt(compile_id: str | None) -> int:
    _, _, attempt = (compile_id or "").partition("_")
    return whole_number(attempt) or 0


def _region_cost(region: CodeRef, times: list[RegionTime], clock: Clock) -> RegionCost:
    total, inside = sum(t.total_ns for t in times), sum(t.inside_ns for t in times)
    return RegionCost(
        file=region.file,
        line=region.line,
        function=region.function,
        calls=sum(t.calls for t in times),
        total_ms=round(total / _NS_PER_MS, 3),
        inside_ms=round(inside / _NS_PER_MS, 3),
        coverage=_percent(inside, total),
        warmup_calls=sum(t.warmup_calls for t in times),
        warmup_ms=round(sum(t.warmup_ns for t in times) / _NS_PER_MS, 3),
        clock=clock,
    )


def _percent(inside_ns: int, total_ns: int) -> float | None:
    return round(100 * inside_ns / total_ns, 2) if total_ns else None


def _clock_failed(run: Run) -> bool:
    """A clock that is missing or broke would make graphs look slow or regions empty."""
    return any(body.where in _CLOCKS for _, body in run.of(ToolFault)) or any(
        body.hook in _CLOCKS for _, body in run.of(HookUnavailable)
    )
