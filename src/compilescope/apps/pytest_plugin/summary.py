"""What the pytest plugin says: the section "compilescope" of the terminal summary, the words of a
test that is not within its limits, and `--compilescope-check`, the whole session held against
its project's limits and baseline.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from compilescope.apps.pytest_plugin.marker import TestLimits
from compilescope.base.errors import ToolError
from compilescope.base.project import read_project
from compilescope.base.settings import DEFAULT_DIR, in_github_actions
from compilescope.base.texts import without_commands
from compilescope.change.fixes.advice import advised
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.dynamo_graphs import captured_graphs
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.baseline import FILE_NAME, Baseline, read_baseline
from compilescope.knowledge.analysis.gate.terms import each_once
from compilescope.knowledge.analysis.gate.verdict import (
    GateCheck,
    GateLimits,
    Judgement,
    complete,
    judge,
    project_limits,
)
from compilescope.knowledge.findings.breaks import break_sites
from compilescope.knowledge.findings.eager import eager_frames
from compilescope.knowledge.findings.failures import failures
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import recompiled_frames
from compilescope.record.bodies import CompileTime, GraphCaptured, ProcessStarted
from compilescope.record.event import Event
from compilescope.record.header import RunHeader
from compilescope.record.run import Run, read_run
from compilescope.report.blocks import (
    Block,
    Document,
    Heading,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.document import record_of
from compilescope.report.finding import finding_item
from compilescope.report.gate import GateTerms, gate_document
from compilescope.report.places import count, first_line, place
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from compilescope.report.sections import health

_MOST_TESTS = 10
"""Chosen: what is read at a glance; `-v` lists them all."""
_MOST_CAUSES = 5
"""Chosen: what is read at a glance; -v shows all."""
_NOTHING = (
    Paragraph(words(Span("Nothing was compiled: no test imported torch.", "warn"))),
    Paragraph(words(Span("Nothing was compiled in these tests.", "warn"))),
)
_COLUMNS = ("failures", "breaks", "eager", "recompiles", "graphs")


class TestTally(msgspec.Struct, frozen=True, kw_only=True):
    """One test that compiled something, or tried to."""

    test: str | None
    """Its node id; None for what was compiled outside the tests, such as during collection."""
    failures: int
    breaks: int
    eager: int
    recompiles: int
    graphs: int
    compile_s: float

    @property
    def lost(self) -> bool:
        return bool(self.failures or self.breaks or self.eager or self.recompiles)


def write_summary(
    reporter: pytest.TerminalReporter,
    folder: Path,
    header: RunHeader,
    checked: GateResult | None,
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
    recompiled = sum(frame.avoidable for frame in seen.recompiles)
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


def _tests(losing: list[TestTally]) -> Table:
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


def _name(tally: TestTally) -> Words:
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


def unusual_home(folder: Path, header: RunHeader) -> Path | None:
    """Where the run lives, if commands have to be told so."""
    home = folder.parent
    return None if home == Path(header.cwd) / DEFAULT_DIR else home


def tallies(run: Run) -> list[TestTally]:
    """Most costly first: failures, then what runs outside graphs, then what is compiled again."""
    groups: dict[tuple[str | None, int], list[Event]] = {}
    parents = {event.pid: body.parent_pid for event, body in run.of(ProcessStarted) if body.forked}
    for event in run.events:
        groups.setdefault((event.test, _origin(event.pid, parents)), []).append(event)
    # Grouped in one pass: a run may have thousands of tests.
    found = [
        _tally(test, Run(run.header, events, run.artifacts)) for (test, _), events in groups.items()
    ]
    # Several workers may run the same test, as under `--dist each`, and lose the same.
    rounded = {(tally.test, *_rank(tally)): tally for tally in reversed(found)}
    told = [tally for tally in rounded.values() if tally.lost or tally.graphs]
    return sorted(told, key=lambda t: (*(-n for n in _rank(t)), -t.compile_s, t.test or ""))


def _origin(pid: int, parents: dict[int, int]) -> int:
    """The process that runs the test: a child that it forked does so on its behalf."""
    seen = {pid}
    while pid in parents and parents[pid] not in seen:
        pid = parents[pid]
        seen.add(pid)
    return pid


def _rank(tally: TestTally) -> tuple[int, ...]:
    return tally.failures, tally.breaks + tally.eager, tally.breaks, tally.recompiles, tally.graphs


def _tally(test: str | None, run: Run) -> TestTally:
    graphs = sum(body.stage == "dynamo" for _, body in run.of(GraphCaptured))
    return TestTally(
        test=test,
        failures=len(failures(run)),
        breaks=len(break_sites(run)),
        eager=len(eager_frames(run)),
        recompiles=sum(frame.avoidable for frame in recompiled_frames(run)),
        graphs=graphs,
        compile_s=sum(body.duration_ns for _, body in run.of(CompileTime)) / 1e9,
    )


_MOST_IN_MESSAGE = 8
"""Chosen: a failure of a test stays about a screen; the rest is counted."""
_WIDTH = 80
"""Columns. Chosen: what a terminal has at least, and a log of CI shows."""


def shortfall(run: Run, wanted: TestLimits) -> str:
    """The failure's text; empty where the test is within its limits."""
    seen = advised(run, digest(run))
    judged = judge(seen, wanted.limits, own=wanted.own)
    failed = [check for check in judged.checks if check.outcome == "fail"]
    if failed:
        # One line, for pytest's short summary shows no more.
        exceeded = "; ".join(check.message for check in failed)
        return f"{exceeded}\n{drawn(_cause_blocks(failed, run, seen))}"
    unsure = {check.name: check.message for check in judged.unsure}
    # Functions that ran eagerly, as where torch.compile is switched off, put no limit to the test.
    if not (seen.graphs or seen.sites or seen.failures):
        unsure["compiled"] = _nothing(seen, wanted)
        if wanted.allow_nothing:
            del unsure["compiled"]
    return drawn([Paragraph(words(f"Inconclusive: {reason}")) for reason in unsure.values()])


def _nothing(seen: Digest, wanted: TestLimits) -> str:
    text = "nothing was compiled in this test, so there is nothing to check against its limits."
    for frame in seen.eager_frames[:1]:
        text += f" {frame.function} ran eagerly: {first_line(frame.reason)}."
    if not wanted.fresh:
        text += " With fresh=False, code that an earlier test compiled is not compiled again."
    return f"{text} If that is expected, use compile_limits(..., allow_nothing=True)."


def _cause_blocks(failed: Iterable[GateCheck], run: Run, seen: Digest) -> list[Block]:
    """What counts against the limits that were exceeded, each cause once."""
    failed = list(failed)
    causes = each_once(f for check in failed for f in check.findings or _behind(check, seen))
    blocks: list[Block] = []
    if any(check.name == "graphs" for check in failed):
        blocks.append(_graphs(run, seen.root))
    shown = enumerate(causes[:_MOST_IN_MESSAGE], 1)
    blocks += [finding_item(number, cause, seen.root) for number, cause in shown]
    if len(causes) > _MOST_IN_MESSAGE:
        blocks += [note(""), note(f"and {count(len(causes) - _MOST_IN_MESSAGE, 'more cause')}")]
    return blocks


def _behind(check: GateCheck, seen: Digest) -> list[Finding]:
    """What made the number so high, for limits that no finding is counted against."""
    kinds = {"graphs": ("break", "recompile"), "coverage": ("break", "eager")}
    return [finding for finding in findings(seen) if finding.kind in kinds.get(check.name, ())]


def _graphs(run: Run, root: str) -> Paragraph:
    """Which functions the graphs are of, most graphs first."""
    numbers: dict[str, int] = {}
    for graph in captured_graphs(run):
        name = f"{graph.function} ({place(graph.file, graph.line, root)})"
        numbers[name] = numbers.get(name, 0) + 1
    ranked = sorted(numbers.items(), key=lambda pair: -pair[1])
    listed = ", ".join(f"{number} from {name}" for name, number in ranked[:_MOST_IN_MESSAGE])
    more = len(ranked) - _MOST_IN_MESSAGE
    rest = f" and more from {count(more, 'other function')}" if more > 0 else ""
    return Paragraph(words(f"Graphs: {listed}{rest}."))


def drawn(blocks: Iterable[Block], *, width: int = _WIDTH, colour: bool = False) -> str:
    """Blocks alone, without the title of a report."""
    document = Document("", "", (Part("pytest", "", tuple(blocks)),))
    text = to_text(document, width=width, colour=colour).removeprefix("\n\n").rstrip("\n")
    return without_commands(text) if in_github_actions() else text


@dataclass(frozen=True)
class Gate:
    """What a project asks of its tests."""

    limits: GateLimits
    own: bool
    baseline: Baseline | None
    baseline_file: Path | None
    project: Path | None
    """The pyproject.toml that the limits stand in."""

    @property
    def timed(self) -> bool:
        return self.limits.coverage is not None


@dataclass(frozen=True)
class GateResult:
    """What came of it."""

    passed: bool
    reason: str
    """In one line, and why."""
    blocks: tuple[Block, ...] = ()


def read_gate(root: Path) -> Gate:
    """ToolError where pyproject.toml or the baseline makes no sense."""
    project = read_project(root)
    file = project.baseline
    if file is None and (root / FILE_NAME).is_file():
        file = root / FILE_NAME
    baseline = read_baseline(file) if file is not None else None
    limits = project_limits(project)
    return Gate(
        limits=complete(limits, with_baseline=baseline is not None),
        own=bool(project.own),
        baseline=baseline,
        baseline_file=file,
        project=project.file if limits.given else None,
    )


def check_run(reading: Reading, gate: Gate, home: Path | None) -> GateResult:
    """`home` is where the run lives, unless that is the usual place."""
    accepted = gate.baseline.findings if gate.baseline is not None else None
    judged = judge(reading.digest, gate.limits, baseline=accepted, own=gate.own)
    again = ["compilescope", "check", "--run", reading.digest.run]
    if home is not None:
        again += ["--dir", str(home)]
    terms = GateTerms(
        own=gate.own,
        baseline=str(gate.baseline_file or ""),
        baseline_torch=gate.baseline.torch if gate.baseline is not None else None,
        project=str(gate.project or ""),
        accept=shlex.join([*again, "--update-baseline"]),
    )
    document = gate_document(judged, terms, root=reading.root, record=record_of(reading))
    blocks: list[Block] = [Heading("Check")]
    for part in document.parts:
        blocks += [Heading(part.title, part.note)] if part.title else []
        blocks += part.blocks
    return GateResult(judged.outcome == "pass", _reason(judged), tuple(blocks))


def _reason(judged: Judgement) -> str:
    outcome = {"pass": "passed", "fail": "failed", "unknown": "inconclusive"}[judged.outcome]
    told = [check for check in judged.checks if check.outcome == judged.outcome]
    if judged.outcome == "unknown":
        told = list(judged.unsure)
    return f"Check {outcome}: {'; '.join(check.message for check in told)}."
