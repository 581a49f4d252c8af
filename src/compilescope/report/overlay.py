"""Several runs over each other: their figures in one table, and how each went from its start on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.figures import RunFigures, figures
from compilescope.knowledge.analysis.run_curves import (
    CurvePoint,
    compile_curve,
    memory_curve,
    step_curve,
)
from compilescope.knowledge.analysis.run_status import program_of
from compilescope.record.byte_counts import shown_bytes
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from compilescope.report.blocks import (
    Block,
    Curve,
    Curves,
    Document,
    Part,
    Span,
    Table,
    TrendPoint,
    Words,
    note,
    words,
)
from compilescope.report.comparison import ComparedRun
from compilescope.report.places import first_few, without_middle
from compilescope.report.render.spans import duration, moment

MOST_RUNS = 8
"""Chosen: more lines nobody tells apart."""
_LONGEST = 40
"""Letters of a program's arguments. Chosen: a row of the table stays one line."""
_Url = Callable[[str], str]
_Curve = Callable[[Run], list[CurvePoint]]


class _Measure(NamedTuple):
    """What is drawn over time."""

    id: str
    title: str
    remark: str
    curve: _Curve
    shown: Callable[[float], str]
    none: str
    """Why a run may have none."""


def _seconds(value: float) -> str:
    return duration(value * 1e9) if value else "0 s"


def _bytes(value: float) -> str:
    return shown_bytes(int(value))


_MEASURES = (
    _Measure(
        "steps",
        "Step time",
        "From one call of a compiled function to its next, over the time of each run",
        step_curve,
        _seconds,
        "the compiled function was called too seldom, or compiled again all the time",
    ),
    _Measure(
        "compiling",
        "Compile time",
        "Spent up to each moment",
        compile_curve,
        _seconds,
        "nothing was compiled",
    ),
    _Measure(
        "memory",
        "Memory",
        "The most that a process had taken by each moment",
        memory_curve,
        _bytes,
        "an earlier version recorded them, or a log tells of them",
    ),
)


def overlay_document(runs: Sequence[ComparedRun], run_url: _Url) -> Document:
    if not 2 <= len(runs) <= MOST_RUNS:
        raise ToolError(f"Two to {MOST_RUNS} runs can be laid over each other.")
    parts = [Part("figures", "Figures", (_table(runs, run_url),))]
    parts += [_part(measure, runs, run_url) for measure in _MEASURES]
    return Document("Runs over each other", "", tuple(parts))


def _table(runs: Sequence[ComparedRun], run_url: _Url) -> Table:
    seen = [figures(each.run) for each in runs]
    columns: dict[str, Sequence[float | None]] = {
        "breaks": [each.breaks for each in seen],
        "recompiles": [each.recompiles for each in seen],
        "eager": [each.eager for each in seen],
        "compile time": [each.compile_seconds for each in seen],
        "step": [each.step_seconds for each in seen],
        "memory": [each.peak_bytes for each in seen],
    }
    rows = []
    for number, (each, found) in enumerate(zip(runs, seen, strict=True)):
        header = each.run.header
        cells = [
            _cell(values[number], text, values)
            for values, text in zip(columns.values(), _texts(found), strict=True)
        ]
        name = Span(each.name, url=run_url(header.run))
        when = moment(header.started_ns / 1e9)
        rows.append((words(name), words(_asked(header)), words(when or "-"), *cells))
    return Table(("run", "program", "when", *columns), tuple(rows), tuple(range(3, 9)))


def _asked(header: RunHeader) -> str:
    """A program and its arguments, by which runs of one program are told apart."""
    name = program_of(header)
    if " " in name:  # It says itself what it was asked about.
        return name
    return f"{name} {without_middle(' '.join(header.command[1:]), _LONGEST)}".rstrip()


def _texts(found: RunFigures) -> list[str]:
    where = " on the GPU" if found.on_device else ""
    return [
        *(str(each) for each in (found.breaks, found.recompiles, found.eager)),
        _seconds(found.compile_seconds),
        "-" if found.step_seconds is None else _seconds(found.step_seconds),
        "-" if found.peak_bytes is None else f"{shown_bytes(found.peak_bytes)}{where}",
    ]


def _cell(value: float | None, text: str, values: Sequence[float | None]) -> Words:
    """The least of them stands out, where they differ."""
    known = [each for each in values if each is not None]
    best = len(known) > 1 and value == min(known) < max(known)
    return words(Span(text, "good" if best else "dim" if value is None else "plain"))


def _part(measure: _Measure, runs: Sequence[ComparedRun], run_url: _Url) -> Part:
    drawn: list[Curve] = []
    missing: list[str] = []
    for number, each in enumerate(runs):
        points = measure.curve(each.run)
        if points:
            drawn.append(_curve(each, number, points, measure, run_url))
        else:
            missing.append(each.name)
    blocks: list[Block] = [Curves(measure.remark, tuple(drawn))] if drawn else []
    blocks += _missing(measure, missing)
    return Part(measure.id, measure.title, tuple(blocks))


def _curve(
    each: ComparedRun,
    number: int,
    points: Sequence[CurvePoint],
    measure: _Measure,
    run_url: _Url,
) -> Curve:
    return Curve(
        f"{each.name} {_asked(each.run.header)}",
        tuple(
            TrendPoint(_seconds(point.at), point.value, measure.shown(point.value))
            for point in points
        ),
        tuple(point.at for point in points),
        number,
        run_url(each.run.header.run),
    )


def _missing(measure: _Measure, names: Sequence[str]) -> Iterator[Block]:
    if names:
        yield note(f"No line for {first_few(list(names))}: {measure.none}.")
