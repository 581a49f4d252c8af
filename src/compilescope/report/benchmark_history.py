"""Benchmarks over time, for people: the newest figures, whether they changed, and how they went."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compilescope.analysis.benchmark_history import Measured, Series
from compilescope.analysis.benchmarks import EAGER, Setup
from compilescope.model.benchmarked import Interval
from compilescope.report.benchmark_changes import change_text, verdict_span
from compilescope.report.benchmark_words import interval_text, ms_text, ratio_text, speedup_cell
from compilescope.report.blocks import (
    Block,
    Item,
    Paragraph,
    Span,
    Table,
    Trend,
    TrendPoint,
    Words,
    note,
    words,
)
from compilescope.report.places import count
from compilescope.report.render.spans import moment

RunUrl = Callable[[str], str]


def by_setup(series: Iterable[Series]) -> dict[Setup, list[Series]]:
    """In the order in which they come."""
    groups: dict[Setup, list[Series]] = {}
    for each in series:
        groups.setdefault(each.setup, []).append(each)
    return groups


def history_item(setup: Setup, members: list[Series], run_url: RunUrl) -> Item:
    """One model in one setup, on some backends."""
    told = [setup.mode, setup.device, setup.dtype, f"batch {setup.batch}"]
    told += ["small"] if setup.small else []
    several = len({each.hardware for each in members}) > 1
    blocks: list[Block] = [_newest(members, run_url, several=several)]
    blocks += _remarks(members, several=several)
    for each in members:
        blocks += _trends(each, run_url, several=several)
    right = words(Span(", ".join(told), "dim"))
    return Item("", words(Span(setup.model, "strong")), right, tuple(blocks))


def _newest(members: Iterable[Series], run_url: RunUrl, *, several: bool) -> Table:
    rows = []
    for each in members:
        last = each.points[-1]
        row = last.row
        failed = bool(row.error) and row.latency_ms is None
        latency = Span("failed", "bad") if failed else Span(f"{ms_text(row)} {interval_text(row)}")
        rows.append(
            (
                words(Span(_name(each), "code")),
                *([words(_machine(each))] if several else []),
                words(latency),
                speedup_cell(row, in_words=False),
                *_changed(each),
                words(Span(_moment(last), url=run_url(last.run))),
                words(str(len(each.points))),
            )
        )
    machine = ("machine",) if several else ()
    columns = ("backend", *machine, "ms", "speed-up", "change", "verdict", "measured", "runs")
    return Table(columns, tuple(rows), (len(columns) - 1,))


def _changed(each: Series) -> tuple[Words, Words]:
    """Since the run before it on the same machine."""
    if each.change is not None:
        return words(change_text(each.change)), words(verdict_span(each.change.verdict))
    if each.hardware is None and len(each.points) > 1:
        return words("-"), words(Span("unknown machine", "warn"))
    return words("-"), words(Span("first on this machine", "dim"))


def _remarks(members: list[Series], *, several: bool) -> list[Block]:
    found: list[Block] = []
    if several:
        apart = "Measured on different machines, which are never compared with each other."
        found.append(Paragraph(words(Span(apart, "warn")), "!"))
    reasons: dict[str, list[str]] = {}
    for each in members:
        if each.change is not None and each.change.reason:
            reasons.setdefault(each.change.reason, []).append(_name(each))
    for reason, names in reasons.items():
        found.append(Paragraph(words(Span(", ".join(names), "code"), f": {reason}."), "-"))
    torches = [
        list(dict.fromkeys(p.machine.torch for p in each.points[-2:] if p.machine is not None))
        for each in members
    ]
    changed = {tuple(each) for each in torches if len(each) > 1}
    found += [
        note(f"torch changed from {old} to {new} in between.") for old, new in sorted(changed)
    ]
    return found


def _trends(each: Series, run_url: RunUrl, *, several: bool) -> list[Block]:
    """A single point is no trend: the table has it."""
    title = _name(each) + (f" on {_machine(each)}" if several else "")
    latency = [
        _point(
            point,
            row.latency_ms,
            f"{ms_text(row)} ms {interval_text(row)}".rstrip(),
            row.latency_ci_ms,
            run_url,
        )
        for point in each.points
        for row in (point.row,)
        if row.latency_ms is not None
    ]
    speed = [
        _point(
            point,
            row.speedup,
            ratio_text(row.speedup, *row.speedup_ci) if row.speedup_ci else f"{row.speedup:.2f}x",
            row.speedup_ci,
            run_url,
        )
        for point in each.points
        for row in (point.row,)
        if row.speedup is not None and each.backend != EAGER
    ]
    both = (
        (f"{title}: latency, ms (lower is better)", latency),
        (f"{title}: speed-up over eager mode (higher is better)", speed),
    )
    return [Trend(name, tuple(points)) for name, points in both if len(points) > 1]


def _point(
    point: Measured, value: float, text: str, interval: Interval | None, run_url: RunUrl
) -> TrendPoint:
    low, high = interval or (None, None)
    return TrendPoint(_moment(point), value, text, low, high, run_url(point.run))


def _name(each: Series) -> str:
    return f"{each.backend} ({each.compile_mode})" if each.compile_mode else each.backend


def _machine(each: Series) -> str:
    if each.hardware is None:
        return "an unknown machine"
    cpu, cores, threads, accelerators = each.hardware
    told = [", ".join(accelerators)] if accelerators else []
    told += [cpu] if cpu else []
    told += [count(cores, "core")] if cores is not None else []
    told += [count(threads, "thread")] if threads is not None and threads != cores else []
    return ", ".join(told)


def _moment(point: Measured) -> str:
    return moment(point.started_ns / 1e9) or point.run
