"""Causes as a list, one line each: where, what, what it costs, whether there is a fix."""

from __future__ import annotations

from compilescope.findings.finding import Finding
from compilescope.report.blocks import Span, Table, Words, words
from compilescope.report.places import anchor_of, brief_place, count
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading

_ROOM = 54
"""Letters for where and what together, in a line of 80."""
_UNDRAWN = (words(""),) * 5
"""A row that nobody draws, but that is counted."""
_LEAST_VALUE = 12
"""Letters of a value that a recompile names. Chosen: less can't be recognized."""


def causes_table(reading: Reading, first: int) -> Table:
    """From cause number `first`, one line each."""
    found = reading.causes[first - 1 :]
    drawn = found if reading.drawn is None else found[: max(reading.drawn - first + 1, 0)]
    places = [
        brief_place(each.file, each.line, reading.root) if each.file else "unknown"
        for each in drawn
    ]
    room = _ROOM - max(map(len, places), default=0)
    rows = tuple(
        _row(number, finding, at, room)
        for number, (finding, at) in enumerate(zip(drawn, places, strict=True), first)
    )
    rows += (_UNDRAWN,) * (len(found) - len(rows))
    return Table(("", "where", "what", "cost", "fix"), rows, (0, 3), one_line=2)


def _row(number: int, finding: Finding, at: str, room: int) -> tuple[Words, ...]:
    return (
        words(str(number)),
        words(Span(at, "strong", anchor_of(finding))),
        words(_what(finding, room)),
        words(_cost(finding)),
        _fix(finding),
    )


def _cost(finding: Finding) -> str:
    """Time where it is known, else how often."""
    if finding.lost_ms is not None or finding.seconds is not None:
        return duration(finding.cost_seconds * 1e9)
    return count(finding.count, "time")


def _what(finding: Finding, room: int) -> str:
    """Its title for a line that has little room: of a long value the end, which names it best."""
    if finding.kind == "failure":
        return finding.title.replace(" compilation failed: ", " failed: ")
    _, recompiles, value = finding.title.partition(" recompiles: ")
    if not recompiles or len(finding.title) <= room:
        return finding.title
    most = max(room - len("recompiles: …"), _LEAST_VALUE)
    return f"recompiles: {value if len(value) <= most else '…' + value[-most:]}"


def _fix(finding: Finding) -> Words:
    """What `explain` offers for it, in a word."""
    first = finding.advice[0] if finding.advice else None
    if first is not None and first.diff:
        return words(Span("verified" if first.status == "proven" else "yes", "good"))
    if first is not None and first.status == "not tried":
        return words(Span("not tried", "dim"))
    if first is not None or finding.first_step:
        return words(Span("by hand", "dim"))
    return words(Span("none", "dim"))
