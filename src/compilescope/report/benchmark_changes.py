"""Two benchmark runs side by side, as a document (`analysis.benchmark_changes` compares them)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compilescope.analysis.benchmark_changes import BenchmarkChange, BenchmarkComparison, Change
from compilescope.analysis.benchmarks import EAGER, Setup, Trial, setup_of
from compilescope.model.benchmarked import Benchmark
from compilescope.model.byte_counts import shown_bytes
from compilescope.report.benchmark_words import ms_cell, setup_name, varying
from compilescope.report.blocks import (
    Block,
    Document,
    Item,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.places import count

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
