"""A sweep for people: how its jobs ended, which causes hit most of them, which fix helps most.

Two sweeps stand side by side: causes that came and went by job, and states that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

import msgspec

from compilescope.knowledge.analysis.sweeps import (
    FAILING,
    CauseOfJob,
    Regressions,
    SameReason,
    StateChange,
    Sweep,
)
from compilescope.record.jobs import JobEnded
from compilescope.report.blocks import (
    Block,
    Document,
    Figure,
    Figures,
    Fold,
    Heading,
    Matrix,
    Measures,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.places import count, first_line, place
from compilescope.report.render.spans import duration

# Chosen: models that a sentence names, and the slowest jobs that are drawn.
_MOST_NAMES = 4
_MOST_SLOW = 8
_MOST_ROWS, _MOST_COLUMNS = 1000, 60
"""A browser gets slow beyond. Chosen, not measured."""
_STATE_WORDS = {
    "failed": "failed",
    "crashed": "crashed",
    "timeout": "ran out of time",
    "memory": "ran out of memory",
    "unbuilt": "could not be built",
    "lost": "lost with the machine",
    "cancelled": "not run to the end",
}


def sweep_blocks(sweep: Sweep, *, full: bool, jobs_at: str = "") -> list[Block]:
    """The whole story; or what a reader needs first. `jobs_at`: where each job has a page."""
    blocks: list[Block] = [Paragraph(verdict(sweep))]
    if not sweep.jobs:
        return blocks
    blocks.append(Figures(tuple(_figures(sweep))))
    blocks += _causes(sweep, jobs_at)
    blocks += _fixes(sweep)
    blocks += _reasons(sweep.reasons, jobs_at)
    blocks += _remarks(sweep)
    blocks += _matrix(sweep, jobs_at)
    blocks += _slowest(sweep.jobs) if full else []
    blocks += _extras(sweep.jobs)
    blocks += _machines(sweep)
    if full:
        blocks.append(_all_jobs(sweep.jobs, jobs_at))
    return blocks


def job_url(jobs_at: str, job: str) -> str:
    """The page of one job."""
    return f"{jobs_at}/{quote(job, safe='', errors='replace')}" if jobs_at else ""


def cause_query(rule: str) -> str:
    """What leads from a page of jobs to one cause: its rule, or its fingerprint."""
    return f"?cause={quote(rule, safe='', errors='replace')}"


def _cause_url(jobs_at: str, rule: str) -> str:
    """The page of all jobs that it hits."""
    return f"{jobs_at}{cause_query(rule)}" if jobs_at else ""


def verdict(sweep: Sweep) -> Words:
    """How the jobs ended, in one sentence."""
    if not sweep.jobs:
        return words(Span("No job of this sweep has ended.", "warn"))
    ok = sweep.states.get("ok", 0)
    rate = "" if sweep.pass_rate is None else f" ({100 * sweep.pass_rate:.1f} % of those that ran)"
    if ok == len(sweep.jobs):
        return words(Span(f"All {ok} jobs ok." if ok > 1 else "The job is ok.", "good"))
    told = [f"{number} {_STATE_WORDS[s]}" for s, number in sweep.states.items() if s != "ok"]
    failing = any(state in sweep.states for state in FAILING)
    sentence = f"{ok} of {count(len(sweep.jobs), 'job')} ok{rate}; {', '.join(told)}."
    return words(Span(sentence, "bad" if failing else "warn"))


def _figures(sweep: Sweep) -> list[Figure]:
    jobs = sweep.jobs
    compiled = sum(bool(job.graphs) for job in jobs)
    spent = sum(job.compile_seconds or 0.0 for job in jobs)
    figures = [
        Figure(str(sweep.clean), "Clean", f"of {compiled} that compiled: no breaks, no recompiles"),
        _sum("Graph breaks", [job.breaks for job in jobs]),
        _sum("Recompiles", [job.recompiles for job in jobs]),
        Figure(duration(spent * 1e9) if spent else "0 s", "Compile time", "all jobs together"),
    ]
    eager = [job.eager for job in jobs]
    return [*figures, _sum("Eager fallbacks", eager)] if any(eager) else figures


def _sum(label: str, numbers: Sequence[int | None]) -> Figure:
    total = sum(number or 0 for number in numbers)
    hit = sum(bool(number) for number in numbers)
    return Figure(
        str(total), label, f"in {count(hit, 'job')}" if hit else "", "warn" if total else "good"
    )


def _causes(sweep: Sweep, jobs_at: str) -> list[Block]:
    if not sweep.causes:
        return []
    rows = tuple(
        (
            words(str(number)),
            words(cause.rule),
            words(first_line(cause.title)),
            words(Span(str(len(cause.models)), url=_cause_url(jobs_at, cause.rule))),
            words(str(cause.findings)),
        )
        for number, cause in enumerate(sweep.causes, 1)
    )
    table = Table(("#", "rule", "cause", "jobs", "places"), rows, (0, 3, 4), one_line=2)
    return [Heading("Causes", "most jobs first"), table]


def _fixes(sweep: Sweep) -> list[Block]:
    if not sweep.fixes:
        return []
    rows = tuple(
        (
            words(fix.title or fix.fix),
            words(str(len(fix.all))),
            words(str(len(fix.some))),
            words(Span(fix.fix, "dim")),
        )
        for fix in sweep.fixes
    )
    table = Table(("fix", "frees", "helps", "id"), rows, (1, 2), one_line=0)
    remark = "frees: jobs where it is advised for every cause; helps: for at least one"
    return [Heading("Fixes", "unverified until compilescope fix has run them"), table, note(remark)]


def _reasons(reasons: Iterable[SameReason], jobs_at: str) -> list[Block]:
    rows = tuple(
        (
            words(Span(each.state, _style(each.state))),
            words(str(len(each.models))),
            words(first_line(each.reason) or _STATE_WORDS[each.state]),
            _job_names(each.models, jobs_at),
        )
        for each in reasons
    )
    table = Table(("state", "jobs", "reason", "which"), rows, (1,))
    return [Heading("Not ok", "the same reason once"), table] if rows else []


def _style(state: str) -> Style:
    return "bad" if state in FAILING else "warn"


def _names(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _job_names(names: Sequence[str], jobs_at: str) -> Words:
    if not jobs_at:
        return words(Span(_names(names), "dim"))
    spans: list[str | Span] = []
    for name in names[:_MOST_NAMES]:
        spans += [", "] if spans else []
        spans.append(Span(name, url=job_url(jobs_at, name)))
    rest = len(names) - _MOST_NAMES
    return words(*spans, f" and {rest} more" if rest > 0 else "")


def _remarks(sweep: Sweep) -> list[Block]:
    """What a reader must know of jobs that are ok, such as that they compiled nothing."""
    groups: dict[str, list[str]] = {}
    for job in sweep.jobs:
        if job.state == "ok" and job.reason:
            groups.setdefault(job.reason, []).append(job.name)
    return [
        Paragraph(
            words(
                Span(f"{count(len(names), 'ok job')}:", "warn"),
                f" {reason} ",
                Span(f"({_names(names)})", "dim"),
            ),
            "!",
        )
        for reason, names in groups.items()
    ]


def _matrix(sweep: Sweep, jobs_at: str) -> list[Block]:
    causes = sweep.causes[:_MOST_COLUMNS]
    rules = [cause.rule for cause in causes]
    rows = []
    for job in sweep.jobs:
        counts = tuple(sum(cause.rule == rule for cause in job.causes) for rule in rules)
        if any(counts):
            rows.append((job.name, counts))
    rows.sort(key=lambda row: -sum(row[1]))
    if not rows:
        return []
    columns = tuple((cause.rule, first_line(cause.title)) for cause in causes)
    hit = len(rows)
    left_out = hit < len(sweep.jobs)
    remark = "number of places" + "; jobs without a cause are left out" * left_out
    blocks: list[Block] = [Heading("Jobs by cause", remark)]
    rows = rows[:_MOST_ROWS]
    matrix = Matrix("job", columns, tuple(rows))
    if jobs_at:
        matrix = msgspec.structs.replace(
            matrix,
            row_urls=tuple(job_url(jobs_at, name) for name, _ in rows),
            column_urls=tuple(_cause_url(jobs_at, rule) for rule in rules),
            cell_queries=tuple(map(cause_query, rules)),
        )
    blocks.append(matrix)
    if hit > _MOST_ROWS or len(sweep.causes) > _MOST_COLUMNS:
        most = f"{_MOST_ROWS} jobs and {_MOST_COLUMNS} causes"
        blocks.append(note(f"Only the first {most} are shown; --json has all."))
    return blocks


def _slowest(jobs: Iterable[JobEnded]) -> list[Block]:
    slow = sorted((job for job in jobs if job.compile_seconds), key=_compile_time, reverse=True)
    rows = tuple(
        (job.name, _compile_time(job), f"{_compile_time(job):.1f} s") for job in slow[:_MOST_SLOW]
    )
    return [Measures("Compile time, slowest first", rows)] if rows else []


def _compile_time(job: JobEnded) -> float:
    return job.compile_seconds or 0.0


def _extras(jobs: Iterable[JobEnded]) -> list[Block]:
    """What was asked for beside the capture: numbers, fixes, speed."""
    asked = [job for job in jobs if job.kerneldiff or job.fixed or job.speedup is not None]
    rows = tuple(
        (
            words(job.name),
            words(Span(job.kerneldiff or "-", _agreement(job.kerneldiff))),
            words(job.fixed or "-"),
            words(f"{job.speedup:.2f}x" if job.speedup is not None else "-"),
        )
        for job in asked
    )
    table = Table(("job", "KernelDiff", "fixed", "speed-up"), rows, (3,), one_line=0)
    return [Heading("Numbers, fixes and speed"), table] if rows else []


def _agreement(verdict: str) -> Style:
    styles: dict[str, Style] = {"pass": "good", "fail": "bad", "unknown": "warn"}
    return styles.get(verdict, "dim")


def _machines(sweep: Sweep) -> list[Block]:
    """By itself where there are several, or one has a problem."""
    used: dict[str, int] = {}
    for job in sweep.jobs:
        used[job.machine] = used.get(job.machine, 0) + 1
    if len(sweep.machines) < 2 and not any(machine.problem for machine in sweep.machines):
        return [note(_one_machine(sweep))] if sweep.machines else []
    rows = tuple(
        (
            words(machine.name),
            words(str(used.get(machine.name, 0))),
            words("-" if machine.cores is None else str(machine.cores)),
            words(", ".join(machine.accelerators) or "-"),
            words(machine.torch or "none"),
            words(Span(machine.problem, "warn")),
        )
        for machine in sweep.machines
    )
    columns = ("machine", "jobs", "cores", "accelerators", "torch", "problem")
    return [Heading("Machines"), Table(columns, rows, (1, 2))]


def _one_machine(sweep: Sweep) -> str:
    machine = sweep.machines[0]
    told = [
        machine.name,
        machine.cpu,
        f"{machine.cores} cores" if machine.cores else "",
        ", ".join(machine.accelerators),
        f"Python {machine.python}" if machine.python else "",
        f"torch {machine.torch}" if machine.torch else "without torch",
    ]
    return f"Machine: {', '.join(filter(None, told))}."


def _all_jobs(jobs: Sequence[JobEnded], jobs_at: str) -> Fold:
    rest = len(jobs) - _MOST_ROWS
    more = [note(f"and {rest} more; see --json")] if rest > 0 else []
    title = words(f"All {count(len(jobs), 'job')}")
    return Fold(title, (jobs_table(jobs[:_MOST_ROWS], jobs_at), *more))


def jobs_table(jobs: Iterable[JobEnded], jobs_at: str = "") -> Table:
    rows = tuple(
        (
            words(Span(job.name, url=job_url(jobs_at, job.name))),
            words(Span(job.state, "good" if job.state == "ok" else _style(job.state))),
            *(_number(value) for value in (job.graphs, job.breaks, job.recompiles)),
            words(f"{_seconds(job.compile_seconds)} / {job.seconds:.1f}"),
        )
        for job in jobs
    )
    columns = ("job", "state", "graphs", "breaks", "recompiles", "compile / all s")
    return Table(columns, rows, (2, 3, 4, 5), one_line=0)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _number(value: int | None) -> Words:
    return words(Span("-", "dim")) if value is None else words(str(value))


def with_parts(document: Document, parts: Iterable[Part]) -> Document:
    """The same with more after its first part, which says how the jobs ended."""
    first, *rest = document.parts
    return msgspec.structs.replace(document, parts=(first, *parts, *rest))


_MOST = 200
"""Chosen: more than people read; the rest is counted."""


def changes_document(seen: Regressions, root: str) -> Document:
    before, after = (torch or "?" for torch in seen.torch)
    torch = f"torch {before}" if before == after else f"torch {before} -> {after}"
    title = f"compilescope compare {seen.before} {seen.after}"
    return Document(title, torch, tuple(changes_parts(seen, root)), root=root)


def changes_parts(seen: Regressions, root: str) -> list[Part]:
    summary: list[Block] = [Paragraph(_changes_verdict(seen))]
    if seen.unknown:
        unknown = count(len(seen.unknown), "job")
        summary.append(
            note(f"Not compared: {unknown} that one of the sweeps did not run to the end.")
        )
    for names, only in ((seen.added, seen.after), (seen.removed, seen.before)):
        if names:
            summary.append(note(f"Only in {only}: {', '.join(names[:20])}{_rest(names)}."))
    parts = [Part("changes", "Changes", tuple(summary), f"since {seen.before}")]
    if seen.states:
        parts.append(Part("states", "State changed", (_states(seen.states),)))
    for title, remark, found in (
        ("New", "not in the earlier sweep", seen.new),
        ("Gone", "not in the later sweep", seen.gone),
    ):
        if found:
            blocks = _changed_causes(found, root)
            parts.append(Part(title.lower(), title, tuple(blocks), remark))
    return parts


def _rest(names: Sequence[str]) -> str:
    return f" and {len(names) - 20} more" if len(names) > 20 else ""


def _changes_verdict(seen: Regressions) -> Words:
    if seen.equal:
        return words(Span(f"Both sweeps have the same causes: {seen.same}.", "good"))
    worse = sum(change.worse for change in seen.states)
    told = [Span(f"{count(len(seen.new), 'new cause')}", "bad" if seen.new else "good")]
    if worse:
        told.append(Span(f"{count(worse, 'job')} no longer ok", "bad"))
    if len(seen.states) > worse:
        told.append(Span(f"{count(len(seen.states) - worse, 'other state')} changed"))
    told.append(Span(f"{len(seen.gone)} no longer present", "good" if seen.gone else "plain"))
    told.append(Span(f"{seen.same} unchanged"))
    spans: list[str | Span] = []
    for number, span in enumerate(told):
        spans += [", "] if number else []
        spans.append(span)
    return words(*spans, ".")


def _states(changes: Sequence[StateChange]) -> Table:
    rows = tuple(
        (
            words(change.job),
            words(change.before),
            words(Span(change.after, "bad" if change.worse else "plain")),
            words(first_line(change.reason)),
        )
        for change in sorted(changes, key=lambda change: not change.worse)
    )
    return Table(("job", "before", "after", "reason"), rows)


def _changed_causes(found: Sequence[CauseOfJob], root: str) -> list[Block]:
    rows = tuple(
        (
            words(each.job),
            words(each.cause.rule),
            words(first_line(each.cause.title)),
            words(place(each.cause.file, each.cause.line, root) if each.cause.file else "-"),
        )
        for each in found[:_MOST]
    )
    table = Table(("job", "rule", "cause", "place"), rows)
    rest = len(found) - _MOST
    return [table, *([note(f"and {rest} more; see --json")] if rest > 0 else [])]
