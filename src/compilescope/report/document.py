"""A report put together: the sections that have something to say, in their order."""

from __future__ import annotations

from typing import Any

import msgspec

from compilescope.base.plugins import discover
from compilescope.knowledge.analysis.dynamo_graphs import devices
from compilescope.knowledge.analysis.gate.doubts import doubts
from compilescope.knowledge.analysis.partial_digest import is_long
from compilescope.record.bodies import (
    Benchmark,
    ChangeOutcome,
    CheckOutcome,
    DiffOutcome,
    FixAttempt,
    FixOutcome,
    JobEnded,
    Machine,
    Measurement,
    MinifyOutcome,
    StepsProfiled,
    TensorDiff,
    TuneOutcome,
    Violation,
)
from compilescope.record.run import Run
from compilescope.record.uncollected import uncollected
from compilescope.report import sections
from compilescope.report.blocks import Document, Heading, Part, ShownRun
from compilescope.report.links import with_lines
from compilescope.report.program_state import ended_style
from compilescope.report.repeats import without_repeats
from compilescope.report.section import Reading, Section, bounded

ABOUT: dict[str, tuple[type[Any], ...]] = {
    "benchmarks": (Benchmark, Machine),
    "diffs": (TensorDiff, DiffOutcome),
    "fixes": (FixAttempt, FixOutcome),
    "gate": (CheckOutcome,),
    "measurements": (Measurement,),
    "repro": (MinifyOutcome,),
    "step": (StepsProfiled,),
    "sweep": (JobEnded, Machine),
    "tuning": (TuneOutcome,),
    "verification": (ChangeOutcome,),
    "violations": (Violation,),
}
"""Modules of sections about events that few runs have: without one of them there is nothing to say,
and the module is not imported."""


def all_sections(run: Run | None = None) -> list[Section]:
    """In their order; of those that `ABOUT` names, only what this run has events for."""
    silent = {
        name
        for name, kinds in ABOUT.items()
        if run is not None and not any(run.count(kind) for kind in kinds)
    }
    found = discover(sections, "SECTION", Section, without=silent)
    return sorted(found, key=lambda section: section.order)


@uncollected()
def report_document(reading: Reading, only: str = "") -> Document:
    """The whole story, or what a user sees first; or the section with the id `only`, alone."""
    parts = []
    for section in all_sections(reading.run):
        if (only and section.id != only) or not (reading.full or section.in_summary):
            continue
        blocks = tuple(section.build(reading))
        if is_long(reading.run):
            blocks = bounded(reading, blocks)
        if blocks:
            parts.append(Part(section.id, section.title, blocks, section.note))
    if not reading.full:
        parts = _asked_first(parts)
    seen = reading.digest
    record = record_of(reading)
    command = " ".join(seen.command)
    torch = f"torch {seen.torch}" if seen.torch else ""
    drawn = Document(
        title=f"compilescope {seen.run}",
        subtitle=" · ".join(text for text in (command, torch, *record.devices) if text),
        parts=tuple(with_lines(parts)),
        findings=tuple(reading.findings),
        root=seen.root,
        record=record,
        site=reading.pages.site if reading.pages else "",
    )
    return without_repeats(drawn, by_entry=reading.page)


def _asked_first(parts: list[Part]) -> list[Part]:
    """Who profiles a program asks where the time of a step goes: that comes before where to start
    with what was compiled."""
    ids = [part.id for part in parts]
    if ids[:1] != ["summary"] or "step" not in ids:
        return parts
    summary, step = parts[0], parts[ids.index("step")]
    start = next((n for n, b in enumerate(summary.blocks) if isinstance(b, Heading)), None)
    if start is None:
        return parts
    first = msgspec.structs.replace(summary, blocks=summary.blocks[:start])
    rest = Part("start", "", summary.blocks[start:])
    return [first, step, rest, *(part for part in parts[1:] if part is not step)]


def record_of(reading: Reading) -> ShownRun:
    seen = reading.digest
    return ShownRun(
        run=seen.run,
        command=seen.command,
        cwd=reading.run.header.cwd,
        torch=seen.torch,
        exit_status=seen.exit_status,
        signal=seen.signal,
        ended=seen.ended.text,
        ended_style=ended_style(seen.ended),
        devices=devices(reading.run),
        doubts=tuple(doubts(seen)),
    )
