"""Figures that were measured, as a table for each thing measured."""

from __future__ import annotations

from compilescope.record.bodies import Measurement
from compilescope.report.blocks import Block, Heading, Table, Words, note, words
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    groups: dict[str, list[Measurement]] = {}
    for _, body in reading.run.of(Measurement):
        groups.setdefault(body.name, []).append(body)
    blocks: list[Block] = []
    for name, members in groups.items():
        rows = tuple(_row(body) for body in members)
        blocks.append(Heading(name))
        blocks.append(Table(("subject", "variant", name, "spread", "samples"), rows, (2, 3, 4)))
        blocks += [note(how) for how in dict.fromkeys(body.how for body in members) if how]
    return blocks


def _row(body: Measurement) -> tuple[Words, ...]:
    spread = f"±{body.spread:.3g}" if body.spread is not None else "-"
    samples = str(body.samples) if body.samples is not None else "-"
    return (
        words(body.subject or "-"),
        words(body.variant or "-"),
        words(f"{body.value:.4g}"),
        words(spread),
        words(samples),
    )


SECTION = Section("measurements", 130, _build, "Measurements", "what was measured")
