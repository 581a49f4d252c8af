"""What the jobs of a sweep come to together, and what changed since an earlier sweep.

Their states, their causes by model, and the fix that would free most models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from compilescope.base.patterns import late
from compilescope.record.benchmark import Machine
from compilescope.record.jobs import JobCause, JobEnded, JobState
from compilescope.record.run import Run

STATES: tuple[JobState, ...] = (
    *("ok", "failed", "crashed", "timeout", "memory"),
    *("unbuilt", "lost", "cancelled"),
)
FAILING: tuple[JobState, ...] = ("failed", "crashed", "timeout", "memory")
"""The program itself did not end as it should."""
UNKNOWN: tuple[JobState, ...] = ("unbuilt", "lost", "cancelled")
"""The program was not tried, or not to its end: nothing is known of it."""
# What differs between programs that failed for the same reason.
_PASSING = late(r"0x[0-9a-fA-F]+|\b\d+(?:\.\d+)?\b|'[^']*'|\"[^\"]*\"")


class SweepCause(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that fired in some jobs."""

    rule: str
    kind: str
    title: str
    models: tuple[str, ...]
    """Names of the jobs it fired in, most findings first."""
    findings: int
    """Over all jobs; a line that several models share counts for each."""
    fix: str = ""
    """The fix that is advised most often for it; empty: none."""
    fix_title: str = ""


class SweepFix(msgspec.Struct, frozen=True, kw_only=True):
    """A fix, and the models that it would help."""

    fix: str
    title: str
    some: tuple[str, ...]
    """Models where it is the advice for some cause."""
    all: tuple[str, ...]
    """Models where it is the advice for every cause: it would free them."""


class SameReason(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that ended alike, for the same reason."""

    state: JobState
    reason: str
    models: tuple[str, ...]


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep as every view shows it."""

    run: str
    jobs: tuple[JobEnded, ...]
    machines: tuple[Machine, ...]
    states: dict[str, int]
    """Those that occur."""
    pass_rate: float | None
    """Share of ok jobs among those that were tried to their end; None where there is none."""
    clean: int
    """Jobs that are ok, compiled something and have no cause."""
    causes: tuple[SweepCause, ...]
    """Those that hit most models first."""
    fixes: tuple[SweepFix, ...]
    """Those that free most models first."""
    reasons: tuple[SameReason, ...]
    """Of the jobs that are not ok."""


class CauseOfJob(msgspec.Struct, frozen=True, kw_only=True):
    """A cause and the job that has it."""

    job: str
    cause: JobCause


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A job that ended otherwise than before."""

    job: str
    before: JobState
    after: JobState
    reason: str = ""

    @property
    def worse(self) -> bool:
        return self.before == "ok"


class Regressions(msgspec.Struct, frozen=True, kw_only=True):
    """Two sweeps compared by job, kind and fingerprint."""

    before: str
    after: str
    torch: tuple[str, str]
    new: tuple[CauseOfJob, ...]
    gone: tuple[CauseOfJob, ...]
    same: int
    states: tuple[StateChange, ...]
    """Jobs in both whose state changed."""
    added: tuple[str, ...]
    """Jobs that only the later sweep has; their causes are not counted as new."""
    removed: tuple[str, ...]
    """Jobs that only the earlier sweep has."""
    unknown: tuple[str, ...]
    """Jobs in both that one of the sweeps did not try to the end: their causes are not compared."""

    @property
    def equal(self) -> bool:
        return not (self.new or self.gone or self.states or self.added or self.removed)


def is_sweep(run: Run) -> bool:
    """Also one that was killed before any job was recorded."""
    if run.count(JobEnded):
        return True
    return run.header.command[:1] == ("sweep",) and run.count(Machine) > 0


def sweep_of(run: Run) -> Sweep:
    jobs = tuple(body for _, body in run.of(JobEnded))
    states = Counter(job.state for job in jobs)
    tried = sum(states[state] for state in ("ok", *FAILING))
    return Sweep(
        run=run.header.run,
        jobs=jobs,
        machines=tuple({body.name: body for _, body in run.of(Machine)}.values()),
        states={state: states[state] for state in STATES if states[state]},
        pass_rate=states["ok"] / tried if tried else None,
        clean=sum(job.state == "ok" and bool(job.graphs) and not job.causes for job in jobs),
        causes=tuple(_causes(jobs)),
        fixes=tuple(_fixes(jobs)),
        reasons=tuple(_reasons(jobs)),
    )


def _causes(jobs: Iterable[JobEnded]) -> list[SweepCause]:
    by_rule: dict[str, list[tuple[str, JobCause]]] = {}
    for job in jobs:
        for cause in job.causes:
            by_rule.setdefault(cause.rule, []).append((job.name, cause))
    found = [_cause(rule, members) for rule, members in by_rule.items()]
    return sorted(found, key=lambda each: (-len(each.models), -each.findings, each.rule))


def _cause(rule: str, members: list[tuple[str, JobCause]]) -> SweepCause:
    models = Counter(name for name, _ in members)
    titles = Counter(cause.title for _, cause in members)
    fixes = Counter((cause.fix, cause.fix_title) for _, cause in members if cause.fix)
    fix, fix_title = fixes.most_common(1)[0][0] if fixes else ("", "")
    kind = members[0][1].kind
    return SweepCause(
        rule=rule,
        kind=kind,
        title=_title(rule, kind, titles),
        models=tuple(name for name, _ in models.most_common()),
        findings=len(members),
        fix=fix,
        fix_title=fix_title,
    )


def _title(rule: str, kind: str, titles: Counter[str]) -> str:
    """A break's is PyTorch's own name for it; others name a function, which says nothing of the
    next model's."""
    if len(titles) == 1 or kind == "break":
        return titles.most_common(1)[0][0]
    return rule.partition("/")[2].replace("-", " ") or rule


def _fixes(jobs: Iterable[JobEnded]) -> list[SweepFix]:
    titles: dict[str, str] = {}
    some: dict[str, list[str]] = {}
    free: dict[str, list[str]] = {}
    for job in jobs:
        # What follows from another break goes away with it.
        roots = [cause for cause in job.causes if cause.level != "note"]
        advised = {cause.fix for cause in roots}
        for cause in roots:
            if cause.fix:
                titles.setdefault(cause.fix, cause.fix_title)
        for fix in sorted(advised - {""}):
            some.setdefault(fix, []).append(job.name)
            if advised == {fix} and job.state == "ok":
                free.setdefault(fix, []).append(job.name)
    found = [
        SweepFix(fix=fix, title=titles[fix], some=tuple(names), all=tuple(free.get(fix, ())))
        for fix, names in some.items()
    ]
    return sorted(found, key=lambda each: (-len(each.all), -len(each.some), each.fix))


def _reasons(jobs: Iterable[JobEnded]) -> list[SameReason]:
    groups: dict[tuple[JobState, str], list[JobEnded]] = {}
    for job in jobs:
        if job.state != "ok":
            # Names and numbers differ from model to model; the reason is the same without them.
            alike = _PASSING.sub("…", job.reason.replace(job.name, "…"))
            groups.setdefault((job.state, alike), []).append(job)
    found = [
        SameReason(
            state=state, reason=members[0].reason, models=tuple(each.name for each in members)
        )
        for (state, _), members in groups.items()
    ]
    return sorted(found, key=lambda each: (STATES.index(each.state), -len(each.models)))


def regressions(before: Sweep, after: Sweep) -> Regressions:
    old = {job.name: job for job in before.jobs}
    new = {job.name: job for job in after.jobs}
    both = [name for name in new if name in old]
    unknown = [n for n in both if old[n].state in UNKNOWN or new[n].state in UNKNOWN]
    compared = [name for name in both if name not in set(unknown)]
    had = dict(_keyed(old[name] for name in compared))
    has = dict(_keyed(new[name] for name in compared))
    return Regressions(
        before=before.run,
        after=after.run,
        torch=(torch_of(before), torch_of(after)),
        new=tuple(each for key, each in has.items() if key not in had),
        gone=tuple(each for key, each in had.items() if key not in has),
        same=sum(key in had for key in has),
        states=tuple(_changed(old, new, both)),
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        unknown=tuple(unknown),
    )


def _keyed(jobs: Iterable[JobEnded]) -> Iterator[tuple[tuple[str, str, str], CauseOfJob]]:
    for job in jobs:
        for cause in job.causes:
            yield (job.name, cause.kind, cause.fingerprint), CauseOfJob(job=job.name, cause=cause)


def _changed(
    old: dict[str, JobEnded], new: dict[str, JobEnded], both: Iterable[str]
) -> Iterator[StateChange]:
    for name in both:
        if old[name].state != new[name].state:
            reason = new[name].reason
            yield StateChange(
                job=name, before=old[name].state, after=new[name].state, reason=reason
            )


def torch_of(sweep: Sweep) -> str:
    """The version that most jobs ran with; empty where none is known."""
    versions = Counter(job.torch for job in sweep.jobs if job.torch)
    versions = versions or Counter(each.torch for each in sweep.machines if each.torch)
    return versions.most_common(1)[0][0] if versions else ""
