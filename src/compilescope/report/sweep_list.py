"""Sweeps in a table: how many jobs each had, and how many of them were ok."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compilescope.analysis.sweeps import Sweep, sweep_of, torch_of
from compilescope.model.run import Run
from compilescope.report.blocks import Span, Style, Table, Words, words
from compilescope.report.moments import moment

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
