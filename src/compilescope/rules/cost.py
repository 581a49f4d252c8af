"""What breaks cost: the time of compiled regions that went by outside compiled graphs.

Only steady state counts: calls during which nothing was compiled. Time outside graphs is charged
to the break that ended the last graph before it. A break before which its frame had no graph is
charged together with the break it resumed after, or else with the region's own time outside graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from compilescope.model.bodies import GraphBreak, GraphTime, HookUnavailable, RegionTime, ToolFault
from compilescope.model.event import Event
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef
from compilescope.rules.sites import Site

_CLOCKS = frozenset({"timed-regions", "timed-graphs", "compile-starts", "timing"})
_NS_PER_MS = 1e6
_MOST_NAMED = 3


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


def coverage(run: Run) -> float | None:
    """Percent of the regions' steady-state time inside compiled graphs; None: not measured."""
    if _clock_failed(run):
        return None
    times = [body for _, body in run.of(RegionTime)]
    return _percent(sum(t.inside_ns for t in times), sum(t.total_ns for t in times))


def region_costs(run: Run) -> list[RegionCost]:
    """Each region's times, most time outside graphs first."""
    if _clock_failed(run):
        return []
    groups: dict[CodeRef, list[RegionTime]] = {}
    for _, body in run.of(RegionTime):
        groups.setdefault(body.region, []).append(body)
    costs = [_region_cost(region, times) for region, times in groups.items()]
    return sorted(costs, key=lambda cost: cost.inside_ms - cost.total_ms)


def lost_by_site(run: Run, sites: Iterable[Site]) -> dict[str, float]:
    """Fingerprint -> milliseconds outside graphs because of that break, in steady state.

    Empty where nothing was timed. A site that is missing was not reached in steady state, or its
    share cannot be told.
    """
    if _clock_failed(run) or not any(True for _ in run.of(RegionTime)):
        return {}
    ledger = _Ledger(run, sites)
    for event, body in run.of(GraphTime):
        owner = ledger.ended_by(event, body)
        if body.after_ns and owner is not None:
            ledger.charge([owner, *ledger.following(owner)], body.after_ns)
    for _, region in run.of(RegionTime):
        ledger.charge(ledger.leading(region.region), region.entry_ns)
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


class _Break(msgspec.Struct, frozen=True):
    fingerprint: str
    event: Event
    body: GraphBreak

    @property
    def line(self) -> int | None:
        site = self.event.site
        return site.line if site is not None else None


class _Ledger:
    """Who is charged for what."""

    def __init__(self, run: Run, sites: Iterable[Site]) -> None:
        owners = {event_id: site.fingerprint for site in sites for event_id in site.because}
        self._breaks = [
            _Break(owners[event.id], event, body)
            for event, body in run.of(GraphBreak)
            if event.id in owners
        ]
        self._by_compile: dict[tuple[object, ...], list[_Break]] = {}
        for found in self._breaks:
            self._by_compile.setdefault(_compilation(found.event), []).append(found)
        self._captured = {event.id: event for event in run.events}
        timed = [(event, body) for event, body in run.of(GraphTime)]
        with_graph = {self.ended_by(event, body) for event, body in timed}
        with_graph |= {
            self._ended_by(event)
            for event in run.events
            if getattr(event.body, "ended_by_break", False)
        }
        self._graphless = [b for b in self._breaks if b.fingerprint not in with_graph]
        self._followers = {name: self._after(name) for name in with_graph if name is not None}
        self.lost_ns: dict[str, float] = {}

    def ended_by(self, event: Event, body: GraphTime) -> str | None:
        """The break that ended this graph."""
        captured = self._captured.get(body.captured or "")
        return self._ended_by(captured if captured is not None else event)

    def _ended_by(self, event: Event) -> str | None:
        """The last break that was reported before the graph's own attempt."""
        found = self._by_compile.get(_compilation(event), [])
        attempt = _attempt(event.compile_id)
        earlier = [b for b in found if _attempt(b.event.compile_id) < attempt]
        return (earlier or found)[-1].fingerprint if found else None

    def following(self, fingerprint: str) -> list[str]:
        """Breaks at the very start of what resumed after this one: they left no graph between."""
        return self._followers.get(fingerprint, [])

    def _after(self, fingerprint: str) -> list[str]:
        reached = {
            (b.event.pid, b.body.frame.file, b.body.frame.function, b.line)
            for b in self._breaks
            if b.fingerprint == fingerprint and b.body.frame is not None
        }
        names: list[str] = []
        growing = True
        while growing:
            growing = False
            for b in self._graphless:
                frame = b.body.frame
                if frame is None or b.fingerprint in names or frame.resumed_at is None:
                    continue
                if (b.event.pid, frame.file, frame.function, frame.resumed_at) in reached:
                    names.append(b.fingerprint)
                    reached.add((b.event.pid, frame.file, frame.function, b.line))
                    growing = True
        return names

    def leading(self, region: CodeRef) -> list[str]:
        """Breaks of a region that no graph of theirs comes before."""
        charged = {name for names in self._followers.values() for name in names}
        return list(
            dict.fromkeys(
                b.fingerprint
                for b in self._graphless
                if b.fingerprint not in charged and _is_within(b, region)
            )
        )

    def charge(self, fingerprints: Sequence[str], ns: int) -> None:
        """What cannot be told apart is shared alike."""
        for name in fingerprints if ns else ():
            self.lost_ns[name] = self.lost_ns.get(name, 0.0) + ns / len(fingerprints)


def _is_within(found: _Break, region: CodeRef) -> bool:
    if found.body.frame == region:
        return True
    place = (region.file, region.function)
    return any((frame.file, frame.function) == place for frame in found.event.stack)


def _compilation(event: Event) -> tuple[object, ...]:
    """The compilation an event belongs to. Attempts at one frame are one compilation."""
    return event.pid, event.epoch, (event.compile_id or "").split("_")[0]


def _attempt(compile_id: str | None) -> int:
    _, _, attempt = (compile_id or "").partition("_")
    return int(attempt) if attempt.isdigit() else 0


def _region_cost(region: CodeRef, times: list[RegionTime]) -> RegionCost:
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
    )


def _percent(inside_ns: int, total_ns: int) -> float | None:
    return round(100 * inside_ns / total_ns, 2) if total_ns else None


def _clock_failed(run: Run) -> bool:
    """A clock that is missing or broke would make graphs look slow or regions empty."""
    return any(body.where in _CLOCKS for _, body in run.of(ToolFault)) or any(
        body.hook in _CLOCKS for _, body in run.of(HookUnavailable)
    )
