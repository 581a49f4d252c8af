"""Two benchmark runs side by side, and the history of all, as documents
(`analysis.benchmark_changes` compares them)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compilescope.knowledge.analysis.benchmark_changes import (
    BenchmarkChange,
    BenchmarkComparison,
    Change,
    MeasuredRow,
    Series,
)
from compilescope.knowledge.analysis.benchmarks import EAGER, Setup, Trial, setup_of
from compilescope.record.benchmark import Benchmark, Interval
from compilescope.record.byte_counts import shown_bytes
from compilescope.report.benchmark_words import (
    TOO_NOISY,
    interval_text,
    ms_cell,
    ms_text,
    ratio_text,
    setup_name,
    speedup_cell,
    varying,
)
from compilescope.report.blocks import (
    Block,
    Document,
    Item,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Trend,
    TrendPoint,
    Words,
    note,
    words,
)
from compilescope.report.places import count
from compilescope.report.render.spans import moment

_RunUrl = Callable[[str], str]
_STYLES: dict[str, Style] = {
    "faster": "good",
    "slower": "bad",
    "no real change": "plain",
    "unknown": "warn",
}
_MOST_NAMES = 12
"""Models that only one run has. Chosen: the rest is counted."""


def benchmark_comparison_document(seen: BenchmarkComparison) -> Document:
    """The verdict, what differs between the machines, then each model."""
    summary: list[Block] = [Paragraph(_verdict(seen))]
    summary += [
        Paragraph(words(Span(sentence, "warn")), hanging="!") for sentence in seen.differences
    ]
    for names, run in ((seen.removed, seen.before), (seen.added, seen.after)):
        if names:
            rest = len(names) - _MOST_NAMES
            more = f" and {rest} more" if rest > 0 else ""
            summary.append(note(f"Only in {run}: {', '.join(names[:_MOST_NAMES])}{more}."))
    parts = [Part("summary", "", tuple(summary))]
    items = _items(seen)
    if items:
        parts.append(Part("benchmarks", "Benchmarks", items, "medians in ms; intervals of 95 %"))
    before, after = (torch or "?" for torch in seen.torch)
    torch = f"torch {before}" if before == after else f"torch {before} -> {after}"
    return Document(f"compilescope compare {seen.before} {seen.after}", torch, tuple(parts))


def _verdict(seen: BenchmarkComparison) -> Words:
    """Of the compiled backends; eager mode is the control."""
    rows = [row for row in seen.benchmarks if row.backend != EAGER] or list(seen.benchmarks)
    if not rows:
        return words(Span("No benchmark is in both runs.", "warn"))
    spans: list[str | Span] = [f"{count(len(rows), 'benchmark')} in both runs: "]
    for number, verdict in enumerate(
        verdict for verdict in _STYLES if any(row.verdict == verdict for row in rows)
    ):
        many = sum(row.verdict == verdict for row in rows)
        told = f"{many} {verdict}" if verdict != "no real change" else f"{many} with {verdict}"
        spans += [", "] if number else []
        spans.append(Span(told, _STYLES[verdict]))
    return words(*spans, ".")


def _items(seen: BenchmarkComparison) -> tuple[Block, ...]:
    groups: dict[Setup, list[BenchmarkChange]] = {}
    for row in seen.benchmarks:
        groups.setdefault(setup_of(row.after), []).append(row)
    differs = varying([Trial(setup, None, ()) for setup in groups])
    return tuple(
        Item(
            str(number),
            words(Span(setup_name(setup, differs), "strong")),
            words(Span(f"batch {setup.batch}", "dim")),
            tuple(_blocks(rows)),
        )
        for number, (setup, rows) in enumerate(groups.items(), 1)
    )


def _blocks(rows: list[BenchmarkChange]) -> list[Block]:
    blocks: list[Block] = [_table(rows)]
    drift = next((row.eager for row in rows if row.by == "speedup"), None)
    if drift is not None:
        blocks.append(
            Paragraph(
                words(
                    f"Eager mode itself changed ({_percent(drift)}), so the machine or torch "
                    "did. The backends are judged by their speed-up over eager mode."
                ),
                hanging="!",
            )
        )
    for row in rows:
        if row.reason:
            blocks.append(_line(row.backend, row.reason))
    for row in rows:
        told = _other_figures(row.before, row.after)
        if told:
            blocks.append(_line(row.backend, ", ".join(told)))
    return blocks


def _line(backend: str, text: str) -> Paragraph:
    return Paragraph(words(Span(backend, "code"), f": {text}"), hanging="-")


def _table(rows: list[BenchmarkChange]) -> Table:
    """Where eager mode changed there is one more column, and the interval that doesn't decide has
    no room."""
    drifted = any(row.by == "speedup" for row in rows)
    drawn = tuple(
        (
            words(Span(row.backend, "code")),
            ms_cell(row.before),
            ms_cell(row.after),
            words(_percent(row.latency, brief=drifted)),
            *([words(_percent(row.speedup))] if drifted else ()),
            words(verdict_span(row.verdict)),
        )
        for row in rows
    )
    relative = ("vs. eager mode",) if drifted else ()
    columns = ("", "before", "after", "change", *relative, "verdict")
    return Table(columns, drawn, tuple(range(1, len(columns) - 1)))


def _percent(change: Change | None, *, brief: bool = False) -> str:
    """Of the latency: `+5.2 % [+2.1, +8.3]` is slower."""
    if change is None:
        return "-"
    if change.too_noisy and change.ci is not None:
        # What the runs say for certain: no figure within is better than the others.
        high, low = (_more(end) for end in change.ci)
        return TOO_NOISY if low < 0 < high else f"{low:+.1f} to {high:+.1f} %"
    value = f"{_more(change.value):+.1f} %"
    if change.ci is None or brief:
        return value
    high, low = (_more(end) for end in change.ci)
    return f"{value} [{low:+.1f}, {high:+.1f}]"


def change_text(row: BenchmarkChange) -> str:
    """By what it is judged: of the latency, or of the speed-up over eager mode."""
    return _percent(row.judged) + (" vs. eager mode" if row.by == "speedup" else "")


def verdict_span(verdict: str) -> Span:
    return Span(verdict, _STYLES[verdict])


def _more(speed: float) -> float:
    """How much longer it takes, in percent, at so many times the speed."""
    return 100 * (1 / speed - 1)


def _other_figures(before: Benchmark, after: Benchmark) -> list[str]:
    """What changed besides the latency. Compile times and memory are single figures: no interval
    says whether they are real."""
    told = [
        f"{label} {show(old)} -> {show(new)}"
        for label, old, new, show in _pairs(before, after)
        if old not in (None, "") and new not in (None, "") and show(old) != show(new)
    ]
    return [*told, "no longer fails"] if before.error and not after.error else told


_Pair = tuple[str, Any, Any, Callable[[Any], str]]


def _pairs(before: Benchmark, after: Benchmark) -> list[_Pair]:
    fields: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("compile time (one measurement)", "compile_seconds", _seconds),
        ("warm compile time (one measurement)", "warm_compile_seconds", _seconds),
        ("peak memory", "peak_bytes", _bytes),
        ("graphs", "graphs", str),
        ("graph breaks", "breaks", str),
        ("recompiles", "recompiles", str),
        ("violations", "violations", str),
        ("KernelDiff", "kerneldiff", str),
    )
    return [(label, getattr(before, of), getattr(after, of), show) for label, of, show in fields]


def _seconds(value: Any) -> str:
    return f"{value:.1f} s"


def _bytes(value: Any) -> str:
    return shown_bytes(int(value))


# Benchmarks over time, for people: the newest figures, whether they changed, and how they went.


def by_setup(series: Iterable[Series]) -> dict[Setup, list[Series]]:
    """In the order in which they come."""
    groups: dict[Setup, list[Series]] = {}
    for each in series:
        groups.setdefault(each.setup, []).append(each)
    return groups


def history_item(setup: Setup, members: list[Series], run_url: _RunUrl) -> Item:
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


def _newest(members: Iterable[Series], run_url: _RunUrl, *, several: bool) -> Table:
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


def _trends(each: Series, run_url: _RunUrl, *, several: bool) -> list[Block]:
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
        if row.latency_ms is not None and not row.noisy_latency
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
    point: MeasuredRow, value: float, text: str, interval: Interval | None, run_url: _RunUrl
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


def _moment(point: MeasuredRow) -> str:
    return moment(point.started_ns / 1e9) or point.run
