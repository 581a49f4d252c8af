"""Jobs of a sweep: all of them, or those that one cause hits; and a single one.

A single job is shown by what the sweep itself recorded of it.

Sweeps are a table too: how many jobs each had, and how many of them were ok.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compilescope.knowledge.analysis.sweeps import Sweep, SweepCause, sweep_of, torch_of
from compilescope.record.jobs import JobCause, JobEnded
from compilescope.record.run import Run
from compilescope.report.blocks import (
    Block,
    Document,
    Excerpt,
    Facts,
    Item,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.places import count, first_line, place
from compilescope.report.render.spans import moment
from compilescope.report.sweeps import cause_query, job_url, jobs_table

Url = Callable[[str], str]


def sweeps_table(runs: Sequence[Run], run_url: Url, jobs_url: Url) -> Table:
    """In the order in which they come."""
    rows = tuple(_row(run, sweep_of(run), run_url, jobs_url) for run in runs)
    columns = ("sweep", "when", "jobs", "ok", "clean", "breaks", "recompiles", "torch", "command")
    return Table(columns, rows, (2, 3, 4, 5, 6))


def _row(run: Run, sweep: Sweep, run_url: Url, jobs_url: Url) -> tuple[Words, ...]:
    name, started = run.header.run, run.header.started_ns / 1e9
    when = moment(started)
    return (
        words(Span(name, url=run_url(name))),
        words(Span(when, "dim")),
        words(Span(str(len(sweep.jobs)), url=jobs_url(name))),
        _rate(sweep),
        words(str(sweep.clean)),
        words(str(sum(job.breaks or 0 for job in sweep.jobs))),
        words(str(sum(job.recompiles or 0 for job in sweep.jobs))),
        words(torch_of(sweep) or "-"),
        words(Span(" ".join(run.header.command), "dim")),
    )


def _rate(sweep: Sweep) -> Words:
    if sweep.pass_rate is None:
        return words(Span("-", "dim"))
    style: Style = "good" if sweep.pass_rate == 1 else "bad"
    return words(Span(f"{100 * sweep.pass_rate:.1f} %", style))


_MOST = 1000
"""Chosen: more than people read; the rest is counted."""


def jobs_blocks(jobs: Sequence[JobEnded], jobs_at: str) -> list[Block]:
    rest = len(jobs) - _MOST
    more = [note(f"and {rest} more; see --json")] if rest > 0 else []
    return [jobs_table(jobs[:_MOST], jobs_at), *more]


def hit_blocks(cause: SweepCause, jobs: Sequence[JobEnded], root: str, jobs_at: str) -> list[Block]:
    """The jobs that a cause hits, with its places in each."""
    found = [(job, each) for job in jobs for each in job.causes if each.rule == cause.rule]
    names = {name: number for number, name in enumerate(cause.models)}
    found.sort(key=lambda pair: names.get(pair[0].name, len(names)))
    rows = tuple(
        (
            words(Span(job.name, url=_cell_url(jobs_at, job.name, each))),
            words(place(each.file, each.line, root) if each.file else "-"),
            words(Span(each.source.strip() or first_line(each.title), "code")),
            words(str(each.count)),
        )
        for job, each in found[:_MOST]
    )
    told = f"{count(len(cause.models), 'job')}, {count(cause.findings, 'place')}."
    blocks: list[Block] = [Paragraph(words(Span(first_line(cause.title), "strong"), f" in {told}"))]
    if cause.fix:
        blocks.append(Paragraph(words(Span(cause.fix_title or cause.fix)), "Try:"))
    blocks.append(Table(("job", "place", "line", "times"), rows, (3,)))
    return blocks


def _cell_url(jobs_at: str, job: str, cause: JobCause) -> str:
    return job_url(jobs_at, job) + cause_query(cause.fingerprint or cause.rule)


def job_document(job: JobEnded, root: str, why_not: str) -> Document:
    """A job whose own run is not there, by what the sweep has of it."""
    facts: list[tuple[str, Words]] = [
        ("state", words(Span(job.state, "good" if job.state == "ok" else "bad"))),
        *([("reason", words(job.reason))] if job.reason else []),
        ("took", words(f"{job.seconds:.1f} s")),
        *_figures(job),
        *([("machine", words(job.machine))] if job.machine else []),
    ]
    parts = [Part("summary", "", (Facts(tuple(facts)), note(why_not)))]
    if job.causes:
        items = tuple(_item(n, cause, root) for n, cause in enumerate(job.causes, 1))
        parts.append(Part("causes", "Causes", items))
    torch = f"torch {job.torch}" if job.torch else ""
    return Document(job.name, torch, tuple(parts), root=root)


def _figures(job: JobEnded) -> list[tuple[str, Words]]:
    known = {
        "graphs": job.graphs,
        "graph breaks": job.breaks,
        "recompiles": job.recompiles,
        "eager fallbacks": job.eager,
        "failures": job.failures,
    }
    return [(label, words(str(value))) for label, value in known.items() if value is not None]


def _item(number: int, cause: JobCause, root: str) -> Item:
    blocks: list[Block] = [Excerpt(cause.source)] if cause.source.strip() else []
    blocks.append(Paragraph(words(Span(cause.title, "strong"))))
    if cause.message and cause.message != cause.title:
        blocks.append(Paragraph(prose(first_line(cause.message))))
    if cause.fix:
        blocks.append(Paragraph(words(Span(cause.fix_title or cause.fix)), "Try:"))
    at = place(cause.file, cause.line, root) if cause.file else "unknown place"
    left = words(Span(at, "strong"), f" in {cause.function}" if cause.function else "")
    right = words(Span(cause.rule, "bad" if cause.level == "error" else "warn"))
    anchor = cause.fingerprint if cause.fingerprint.isalnum() else ""
    return Item(str(number), left, right, tuple(blocks), anchor, (f"kind:{cause.kind}",))
