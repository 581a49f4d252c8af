"""The digest: everything a view needs of a Run, counted honestly. Its JSON is `show --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.knowledge.analysis.benchmarks import benchmarks
from compilescope.knowledge.analysis.cache_lookups import Bypass, bypasses, cache_lookups
from compilescope.knowledge.analysis.check_results import (
    CheckResult,
    checked_constraints,
    checked_numbers,
    unplaced_violations,
)
from compilescope.knowledge.analysis.cost import (
    RegionCost,
    coverage,
    lost_by_site,
    no_coverage,
    region_costs,
)
from compilescope.knowledge.analysis.logged.device_breaks import device_sites
from compilescope.knowledge.analysis.logged.graphs import graph_count
from compilescope.knowledge.analysis.program_end import ProgramEnd, how_it_ended, without_torch
from compilescope.knowledge.findings.breaks import BreakFinding, break_sites
from compilescope.knowledge.findings.calls import with_calls
from compilescope.knowledge.findings.compile_ids import (
    CalledRegion,
    called_regions,
    retrace_seconds,
)
from compilescope.knowledge.findings.eager import (
    EagerFinding,
    UnexplainedSkip,
    eager_frames,
    unexplained_skips,
)
from compilescope.knowledge.findings.failures import FailureFinding, failures
from compilescope.knowledge.findings.recompiles import RecompiledFrame, recompiled_frames
from compilescope.knowledge.source.spots import Sources
from compilescope.record import bodies
from compilescope.record.run import Run
from compilescope.record.uncollected import uncollected

if TYPE_CHECKING:
    from compilescope.knowledge.findings.differences import DifferenceFinding
    from compilescope.knowledge.findings.violations import ViolationFinding


class CacheCount(msgspec.Struct, frozen=True):
    """How one of PyTorch's on-disk caches fared."""

    hits: int
    misses: int
    bypasses: int
    reasons: tuple[Bypass, ...] = ()
    """Why it was bypassed, and where."""


class MissingHook(msgspec.Struct, frozen=True):
    """What this torch did not let us see."""

    hook: str
    target: str
    loses: str


class Fault(msgspec.Struct, frozen=True):
    """A failure of ours inside the program."""

    where: str
    error: str


class RecordedProcess(msgspec.Struct, frozen=True):
    """One process of the program."""

    pid: int
    rank: int
    events: int
    ended: bool | None
    """None where a forked child may have left without an end mark."""


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """One run in numbers and lists."""

    run: str
    command: tuple[str, ...]
    root: str
    torch: str | None
    exit_status: int | None
    signal: int | None
    ended: ProgramEnd
    """How the program ended, in words."""
    graphs: int
    """Graphs that Dynamo handed to a backend; of a log in which an XLA compiler tells of its own,
    those."""
    regions: int
    """As many graphs were hoped for: one for each function at which the program entered compiled
    code."""
    graph_ops: int
    break_events: int
    events: int
    unread: int
    unread_files: tuple[str, ...]
    """Event files that could not be read, each with the reason."""
    tool_faults: int
    cut_short: bool
    cut_short_reason: str | None
    live: bool
    coverage: float | None
    """Percent of the compiled regions' steady-state time spent inside compiled graphs."""
    no_coverage: str
    """Why a timed run has no such figure; empty where it has one, or nothing was timed."""
    region_costs: tuple[RegionCost, ...]
    """Where the time of each compiled region went, in a timed run."""
    compile_seconds: float
    """Wall time of all compilations, summed over threads and processes."""
    phases_seconds: dict[str, float]
    sites: tuple[BreakFinding, ...]
    hidden_breaks_possible: bool
    """Frames were given up at a break: the sites are "at least these"."""
    eager_frames: tuple[EagerFinding, ...]
    unexplained_skips: tuple[UnexplainedSkip, ...]
    recompiles: tuple[RecompiledFrame, ...]
    called_regions: tuple[CalledRegion, ...]
    """Whether compiling came to an end; empty where nobody counted calls."""
    failures: tuple[FailureFinding, ...]
    caches: dict[str, CacheCount]
    cudagraph_skips: dict[str, int]
    """Reason -> how often."""
    guards: int
    kernels: int
    stances: tuple[str, ...]
    unavailable: tuple[MissingHook, ...]
    faults: tuple[Fault, ...]
    unknown_events: int
    processes: tuple[RecordedProcess, ...]
    benchmarks: tuple[bodies.Benchmark, ...] = ()
    """Of `compilescope bench`: models on backends."""
    jobs: tuple[bodies.JobEnded, ...] = ()
    """How each job ended, in the run of a sweep: its numbers are the sums over them."""
    constraints: CheckResult = CheckResult("unchecked")
    """Were all graphs checked against a device, and does it take them?"""
    violations: tuple[ViolationFinding, ...] = ()
    unplaced_violations: int = 0
    """What a device does not take, or may not: each place once."""
    numbers: CheckResult = CheckResult("unchecked")
    """Were values compared with a reference, and do they agree?"""
    differences: tuple[DifferenceFinding, ...] = ()
    """Values that differ, then those of which it could not be told."""
    profiles: tuple[dict[str, Any], ...] = ()
    """Of a profiled run: where the time of a step goes, a process each."""
    no_torch: str = ""
    """Where `torch` is None: that no process imported it, or why that is not known."""

    @property
    def only_compares(self) -> bool:
        """Numbers were compared, and nobody watched what was compiled."""
        seen = (self.graphs, self.sites, self.eager_frames, self.recompiles, self.failures)
        return self.numbers.state != "unchecked" and not any((*seen, self.benchmarks, self.jobs))


_Lost = tuple[list[BreakFinding], list[RecompiledFrame], list[FailureFinding]]


def _in_words(lost: _Lost, sources: Sources, explained: bool) -> _Lost:
    # A run that loses nothing needs no rules.
    from compilescope.knowledge.rules.causes.explanations import (
        explained_failures,
        explained_recompiles,
        explained_sites,
        sites_with_roots,
    )

    sites, frames, failed = lost
    if not explained:
        return sites_with_roots(sites, sources), frames, failed
    return (
        explained_sites(sites, sources),
        explained_recompiles(frames, sources),
        explained_failures(failed, sources),
    )


def _ranked(sites: list[BreakFinding]) -> list[BreakFinding]:
    from compilescope.knowledge.rules.causes.explanations import ranked

    return ranked(sites)


@uncollected()
def digest(run: Run, *, explained: bool = True) -> Digest:
    """Not `explained`: in its full order, and no cause has a category, a reason or remedies, nor
    the stretch of source that is meant. `partial_digest` explains some of them."""
    header = run.header
    jobs = tuple(body for _, body in run.of(bodies.JobEnded))
    eager = tuple(eager_frames(run))
    sources = Sources(run)
    graphs = [body for _, body in run.of(bodies.GraphCaptured) if body.stage == "dynamo"]
    counted = graph_count(run, sources)
    lost = break_sites(run), with_calls(run, recompiled_frames(run)), failures(run)
    found, frames, failed = _in_words(lost, sources, explained) if any(lost) else lost
    sites = found + device_sites(run, sources)
    compile_ns = sum(body.duration_ns for _, body in run.of(bodies.CompileTime))
    cut_short = run.cut_short
    rows = tuple(benchmarks(run))
    return Digest(
        run=header.run,
        command=header.command,
        root=header.root,
        torch=run.torch_version or next((job.torch for job in jobs if job.torch), None),
        exit_status=header.exit_status,
        signal=header.signal,
        ended=how_it_ended(run),
        graphs=counted.graphs + sum(job.graphs or 0 for job in jobs),
        regions=counted.expected,
        graph_ops=sum(body.ops or 0 for body in graphs),
        break_events=sum(site.count for site in sites),
        events=len(run.events),
        unread=run.unread,
        unread_files=run.unread_files,
        tool_faults=run.count(bodies.ToolFault),
        cut_short=cut_short is not None,
        cut_short_reason=cut_short,
        live=run.live,
        coverage=coverage(run),
        no_coverage=no_coverage(run),
        region_costs=tuple(region_costs(run)),
        compile_seconds=round(compile_ns / 1e9 + sum(j.compile_seconds or 0 for j in jobs), 3),
        phases_seconds=_phases(run),
        sites=tuple(_ranked(_with_losses(run, sites)) if sites else ()),
        hidden_breaks_possible=any(frame.may_hide_breaks for frame in eager),
        eager_frames=eager,
        unexplained_skips=tuple(unexplained_skips(run)),
        recompiles=tuple(frames),
        called_regions=tuple(called_regions(run)),
        failures=tuple(failed),
        caches=_caches(run),
        cudagraph_skips=_cudagraph_skips(run),
        guards=sum(body.count for _, body in run.of(bodies.GuardSet)),
        kernels=sum(len(body.kernels) for _, body in run.of(bodies.KernelEmitted)),
        stances=tuple(
            dict.fromkeys(
                body.stance for _, body in run.of(bodies.StanceChanged) if body.stance != "default"
            )
        ),
        unavailable=tuple(
            dict.fromkeys(
                MissingHook(body.hook, body.target, body.loses)
                for _, body in run.of(bodies.HookUnavailable)
            )
        ),
        faults=tuple(
            dict.fromkeys(Fault(body.where, body.error) for _, body in run.of(bodies.ToolFault))
        ),
        unknown_events=run.count(bodies.Unknown),
        processes=tuple(_processes(run)),
        benchmarks=rows,
        jobs=jobs,
        constraints=checked_constraints(run, rows),
        violations=_violations(run),
        unplaced_violations=unplaced_violations(run, rows),
        numbers=checked_numbers(run, rows, jobs),
        differences=_differences(run),
        profiles=_profiles(run),
        no_torch=without_torch(run),
    )


def _profiles(run: Run) -> tuple[dict[str, Any], ...]:
    if not run.count(bodies.StepsProfiled):
        return ()
    from compilescope.knowledge.analysis.step_causes import steps_json

    return tuple(steps_json(run))


def _violations(run: Run) -> tuple[ViolationFinding, ...]:
    if not run.count(bodies.Violation):
        return ()  # As in most runs: what makes them is not imported.
    from compilescope.knowledge.findings.violations import each_place_once, violations

    return tuple(each_place_once(violations(run)))


def _differences(run: Run) -> tuple[DifferenceFinding, ...]:
    if not run.count(bodies.TensorDiff):
        return ()
    from compilescope.knowledge.findings.differences import differences

    return tuple(differences(run))


def _with_losses(run: Run, sites: list[BreakFinding]) -> list[BreakFinding]:
    lost = lost_by_site(run, sites)
    spent = retrace_seconds(run)
    if not (lost or spent):
        return sites
    return [
        msgspec.structs.replace(
            site,
            lost_ms=lost.get(site.fingerprint),
            seconds=round(sum(known), 4)
            if (known := [spent[event] for event in site.because if event in spent])
            else None,
        )
        for site in sites
    ]


def _phases(run: Run) -> dict[str, float]:
    """Cumulative seconds by PyTorch's own phase names. Phases nest, so they do not add up."""
    total: dict[str, int] = {}
    for _, body in run.of(bodies.CompileTime):
        for name, microseconds in body.phases_us.items():
            total[name] = total.get(name, 0) + microseconds
    return {name: round(us / 1e6, 4) for name, us in sorted(total.items()) if us}


def _caches(run: Run) -> dict[str, CacheCount]:
    counts: dict[str, dict[str, int]] = {}
    for _, body in run.of(bodies.CacheAccess):
        counts.setdefault(body.cache, {"hit": 0, "miss": 0, "bypass": 0})[body.outcome] += 1
    reasons: dict[str, tuple[Bypass, ...]] = {}
    if any(c["bypass"] for c in counts.values()):
        reasons = bypasses(cache_lookups(run))
    return {
        name: CacheCount(c["hit"], c["miss"], c["bypass"], reasons.get(name, ()))
        for name, c in counts.items()
    }


def _cudagraph_skips(run: Run) -> dict[str, int]:
    counts: dict[str, int] = {}
    for _, body in run.of(bodies.CudagraphSkip):
        counts[body.reason] = counts.get(body.reason, 0) + 1
    return counts


def _processes(run: Run) -> list[RecordedProcess]:
    ended = {event.pid for event, _ in run.of(bodies.ProcessEnded)}
    events: dict[int, int] = {}
    ranks: dict[int, int] = {}
    for event in run.events:
        events[event.pid] = events.get(event.pid, 0) + 1
        ranks[event.pid] = event.rank
    return [
        RecordedProcess(
            pid=event.pid,
            rank=ranks[event.pid],
            events=events[event.pid],
            ended=True if event.pid in ended else (None if body.forked else False),
        )
        for event, body in run.of(bodies.ProcessStarted)
    ]
