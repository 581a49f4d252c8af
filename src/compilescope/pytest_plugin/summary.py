"""The section "compilescope" of pytest's terminal summary."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compilescope.errors import ToolError
from compilescope.model.header import RunHeader
from compilescope.model.run import Run, read_run
from compilescope.pytest_plugin.message import drawn
from compilescope.pytest_plugin.session import unusual_home
from compilescope.pytest_plugin.tally import Tally, tallies
from compilescope.report.blocks import Block, Paragraph, Span, Style, Table, Words, note, words
from compilescope.report.places import count, place
from compilescope.report.section import Reading
from compilescope.report.sections import health
from compilescope.rules.digest import Digest
from compilescope.rules.findings import Finding, findings

if TYPE_CHECKING:
    from compilescope.pytest_plugin.check import Checked

_MOST_TESTS = 10
_MOST_CAUSES = 5
_NOTHING = (
    Paragraph(words(Span("Nothing was compiled: no test imported torch.", "warn"))),
    Paragraph(words(Span("Nothing was compiled in these tests.", "warn"))),
)
_COLUMNS = ("failures", "breaks", "eager", "recompiles", "graphs")


def write_summary(
    reporter: pytest.TerminalReporter,
    folder: Path,
    header: RunHeader,
    checked: Checked | None,
    *,
    fault: str = "",
) -> None:
    reporter.write_sep("=", "compilescope")
    verbosity = reporter.config.option.verbose
    blocks: list[Block] = []
    if fault:
        blocks.append(Paragraph(words(Span("Recording did not start", "bad"), f": {fault}")))
    try:
        blocks += summary_blocks(read_run(folder, header=header), verbosity)
    except ToolError as error:
        blocks.append(Paragraph(words(Span(error.message, "bad"))))
    if checked is not None:
        blocks += checked.blocks if verbosity >= 0 else [Paragraph(words(checked.reason))]
    if len(blocks) > 1 and verbosity >= 0:
        blocks.append(note(""))
    if blocks[0] not in _NOTHING:
        blocks.append(_how_to_see_more(header, unusual_home(folder, header)))
    # pytest's own writer knows the terminal; what is written to it is plain text or has colours.
    screen = reporter._tw
    reporter.write_line(drawn(blocks, width=screen.fullwidth, colour=screen.hasmarkup))


def summary_blocks(run: Run, verbosity: int) -> list[Block]:
    """The verdict, what to know of the record, the tests that lost something, and to what."""
    reading = Reading(run)
    if reading.digest.torch is None:
        return [_NOTHING[0]]
    notes = health.SECTION.build(reading)
    tests = tallies(run)
    if not tests:
        return [_NOTHING[1], *notes]
    losing = [tally for tally in tests if tally.lost]
    blocks: list[Block] = [Paragraph(_verdict(reading.digest, len(tests), len(losing))), *notes]
    if losing and verbosity >= 0:
        most = len(losing) if verbosity > 0 else _MOST_TESTS
        blocks += [_tests(losing[:most]), *_more(len(losing) - most, "test")]
        found = findings(reading.digest)
        most = len(found) if verbosity > 0 else _MOST_CAUSES
        blocks += [_causes(found[:most], reading), *_more(len(found) - most, "cause")]
    return blocks


def _verdict(seen: Digest, tests: int, losing: int) -> Words:
    compiling = f"{count(tests, 'test')} that compiled code"
    if not losing:
        graphs = count(seen.graphs, "graph")
        return words(Span(f"{compiling}: {graphs}, no graph breaks or recompiles.", "good"))
    least = "at least " if seen.hidden_breaks_possible else ""
    recompiled = sum(frame.count for frame in seen.recompiles)
    lost = (
        (len(seen.failures), count(len(seen.failures), "failed compilation")),
        (len(seen.sites), least + count(len(seen.sites), "graph break")),
        (
            len(seen.eager_frames),
            count(len(seen.eager_frames), "function") + " that fell back to eager",
        ),
        (recompiled, count(recompiled, "recompile")),
    )
    said = ", ".join(text for number, text in lost if number)
    style: Style = "bad" if seen.failures else "warn"
    return words(Span(f"In {losing} of {compiling}: {said}.", style))


def _tests(losing: list[Tally]) -> Table:
    # A column that is empty throughout says nothing.
    columns = [name for name in _COLUMNS if any(getattr(tally, name) for tally in losing)]
    rows = tuple(
        (*(_number(getattr(tally, name)) for name in columns), _name(tally)) for tally in losing
    )
    return Table((*columns, "test"), rows, numeric=tuple(range(len(columns))))


def _causes(found: list[Finding], reading: Reading) -> Table:
    rows = []
    for finding in found:
        events = (reading.events_by_id.get(event_id) for event_id in finding.because)
        tests = {event.test for event in events if event is not None}
        at = Span(place(finding.file, finding.line, reading.root), "strong")
        rows.append((words(str(len(tests))), words(at, f" {finding.title}")))
    return Table(("tests", "cause"), tuple(rows), numeric=(0,))


def _more(number: int, what: str) -> list[Block]:
    if number <= 0:
        return []
    return [Paragraph(words(Span(f"  and {count(number, 'more ' + what)}; -v lists all", "dim")))]


def _number(value: int) -> Words:
    return words(str(value)) if value else words(Span("-", "dim"))


def _name(tally: Tally) -> Words:
    return words(tally.test) if tally.test else words(Span("outside any test", "dim"))


def _how_to_see_more(header: RunHeader, home: Path | None) -> Paragraph:
    short = header.run.split("-", 1)[0]
    where = f" --dir {shlex.quote(str(home))}" if home else ""
    return Paragraph(
        words(
            Span(f"Run {header.run}: ", "dim"),
            Span(f"compilescope show {short}{where}", "code"),
            Span(" or ", "dim"),
            Span(f"compilescope report {short}{where} --open", "code"),
        )
    )
