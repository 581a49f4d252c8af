"""What each line of a file lost: the causes on it, how often, and their cost.

The gutter of a source view. Only what the record says: a line without an entry may have lost
nothing, or nothing that was recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.knowledge.findings.finding import Finding, is_own
from compilescope.knowledge.findings.recompiles import recompile_findings
from compilescope.record.bodies import GraphCaptured
from compilescope.record.graph import Graph, Node, decode_graph
from compilescope.record.run import Run
from compilescope.record.stack import Frame

Stripe = Literal["graph", "eager", "both"]
"""How a line ran: captured in a graph, eagerly, or one in some calls and the other in others."""
_MOST_GRAPH_TEXT = 16_000_000
"""Characters of recorded graphs that are read for the lines in them. Chosen: it bounds the time
that a report takes; the lines of later graphs have no such amount."""


class LineAmount(msgspec.Struct, frozen=True):
    """A sum; where causes overlap in a way that is not recorded, no more than its lower bound."""

    value: float = 0
    at_least: bool = False


_NOTHING = LineAmount()


class LineLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What one line lost."""

    line: int
    causes: tuple[Finding, ...] = ()
    """Breaks, recompiles and failures on it, costliest first."""
    eager: tuple[EagerFinding, ...] = ()
    """Functions that begin on it and run eagerly, entirely or from a break on."""
    breaks: int = 0
    """Reports of graph breaks."""
    recompiles: LineAmount = _NOTHING
    """Recompiles for which a guard made on this line failed."""
    failures: int = 0
    compile_seconds: LineAmount | None = None
    """Compile time of its recompiles and of tracing thrown away; None where it is not known."""
    lost_ms: float | None = None
    """Time outside compiled graphs, in a timed run."""
    kernel_ms: float | None = None
    """Of a step, in the kernels that compute it, in a profiled run."""
    kernels: int = 0

    @property
    def cost_seconds(self) -> float:
        spent = self.compile_seconds.value if self.compile_seconds is not None else 0.0
        return spent + (self.lost_ms or 0.0) / 1e3


class FileLoss(msgspec.Struct, frozen=True, kw_only=True):
    """A file that lost something."""

    file: str
    own: bool
    lines: tuple[LineLoss, ...]
    """By number."""

    @property
    def cost_seconds(self) -> float:
        return sum([line.cost_seconds for line in self.lines])


def file_losses(digest: Digest) -> list[FileLoss]:
    """The user's own files first, costliest first, then by how many lines lost something."""
    causes: dict[str, dict[int, list[Finding]]] = {}
    eager: dict[str, dict[int, list[EagerFinding]]] = {}
    for finding in _causes(digest):
        if finding.file and finding.line > 0:
            causes.setdefault(finding.file, {}).setdefault(finding.line, []).append(finding)
    for frame in digest.eager_frames:
        if frame.file and frame.line > 0:
            eager.setdefault(frame.file, {}).setdefault(frame.line, []).append(frame)
    files = []
    for file in dict.fromkeys((*causes, *eager)):
        lines = _lines(causes.get(file, {}), eager.get(file, {}))
        files.append(FileLoss(file=file, own=is_own(file), lines=lines))
    return sorted(files, key=lambda each: (not each.own, -each.cost_seconds, -len(each.lines)))


def costliest_files(digest: Digest, most: int) -> set[str]:
    """Those that come first in `file_losses`."""
    losing = (*_causes(digest), *digest.eager_frames)
    files = {each.file for each in losing if each.file and each.line > 0}
    if len(files) <= most:
        return files  # Whatever each of their lines cost.
    return {loss.file for loss in file_losses(digest)[:most]}


def with_kernels(
    losses: list[FileLoss], kernels: dict[str, dict[int, tuple[float, int]]]
) -> list[FileLoss]:
    """With the time and number of the kernels of each line; own files that lost nothing else are
    the last of all own ones."""
    known = {loss.file: loss for loss in losses}
    added = [
        FileLoss(file=file, own=True, lines=())
        for file in kernels
        if file not in known and is_own(file)
    ]
    own = [loss for loss in losses if loss.own]
    other = [loss for loss in losses if not loss.own]
    return [_with_kernels(loss, kernels.get(loss.file, {})) for loss in (*own, *added, *other)]


def _with_kernels(loss: FileLoss, kernels: dict[int, tuple[float, int]]) -> FileLoss:
    lines = {line.line: line for line in loss.lines}
    for number, (ms, count) in kernels.items():
        line = lines.get(number, LineLoss(line=number))
        lines[number] = msgspec.structs.replace(line, kernel_ms=ms, kernels=count)
    ordered = tuple(lines[number] for number in sorted(lines))
    return msgspec.structs.replace(loss, lines=ordered)


def _causes(digest: Digest) -> Iterator[Finding]:
    """Each at its own line: `findings` makes one of a value that several lines look at."""
    yield from digest.failures
    yield from digest.sites
    for frame in digest.recompiles:
        yield from recompile_findings(frame, digest.root)


def _lines(
    causes: dict[int, list[Finding]], eager: dict[int, list[EagerFinding]]
) -> tuple[LineLoss, ...]:
    return tuple(
        _line(number, causes.get(number, []), eager.get(number, []))
        for number in sorted({*causes, *eager})
    )


def _line(number: int, found: list[Finding], eager: list[EagerFinding]) -> LineLoss:
    if len(found) == 1:
        return _line_of_one(number, found[0], tuple(eager))
    by_kind: dict[str, list[Finding]] = {}
    for each in found:
        by_kind.setdefault(each.kind, []).append(each)
    breaks = by_kind.get("break", [])
    recompiles = _frames(by_kind.get("recompile", []))
    lost = [each.lost_ms for each in found if each.lost_ms is not None]
    return LineLoss(
        line=number,
        causes=tuple(sorted(found, key=_dearest_first) if len(found) > 1 else found),
        eager=tuple(eager),
        breaks=sum([each.count for each in breaks]),
        recompiles=_sum([_recompiles(frame) for frame in recompiles]),
        failures=sum([each.count for each in by_kind.get("failure", ())]),
        compile_seconds=_compile_seconds(breaks, recompiles),
        lost_ms=sum(lost) if lost else None,
    )


def _line_of_one(number: int, cause: Finding, eager: tuple[EagerFinding, ...]) -> LineLoss:
    """With one cause, as nearly all lines that lost anything: there is nothing to add up."""
    timed = cause.kind in ("break", "recompile") and cause.seconds is not None
    return LineLoss(
        line=number,
        causes=(cause,),
        eager=eager,
        breaks=cause.count if cause.kind == "break" else 0,
        recompiles=LineAmount(cause.count) if cause.kind == "recompile" else _NOTHING,
        failures=cause.count if cause.kind == "failure" else 0,
        compile_seconds=LineAmount(cause.seconds or 0.0) if timed else None,
        lost_ms=cause.lost_ms,
    )


def _dearest_first(finding: Finding) -> float:
    return -finding.cost_seconds


def _frames(found: list[Finding]) -> list[list[Finding]]:
    """Guards that may have failed in the same recompiles, together: a line of generated code has
    thousands of them."""
    if not found:
        return []
    recompiles = _recompiles_of(found)
    if len(recompiles) < 2:
        return [found]  # Of one function, as on nearly all lines.
    heads: dict[str, str] = {}
    """By an event, another of its group; the head of a group is its own."""

    def head_of(event: str) -> str:
        while (above := heads.setdefault(event, event)) != event:
            heads[event] = event = heads[above]  # The next one has half the way.
        return event

    for events in recompiles:
        for event in events:
            heads[head_of(event)] = head_of(events[0])
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        name = head_of(finding.because[0]) if finding.because else ""
        groups.setdefault(name, []).append(finding)
    return list(groups.values())


def _recompiles_of(found: Iterable[Finding]) -> Collection[tuple[str, ...]]:
    """Guards of one function share theirs, which may be thousands."""
    return {id(each.because): each.because for each in found}.values()


def _recompiles(frame: list[Finding]) -> LineAmount:
    """Guards that failed together are one recompile; which did is known only where all did."""
    most = max(each.count for each in frame)
    if len(frame) == 1:
        return LineAmount(most)
    events = {event for because in _recompiles_of(frame) for event in because}
    return LineAmount(most, most < len(events))


def _compile_seconds(breaks: list[Finding], recompiles: list[list[Finding]]) -> LineAmount | None:
    known = [LineAmount(each.seconds) for each in breaks if each.seconds is not None]
    for frame in recompiles:
        seconds = [each.seconds for each in frame if each.seconds is not None]
        if seconds:
            known.append(LineAmount(max(seconds), _recompiles(frame).at_least))
    return _sum(known) if known else None


def _sum(parts: list[LineAmount]) -> LineAmount:
    if len(parts) == 1:
        return parts[0]
    return LineAmount(sum(part.value for part in parts), any(part.at_least for part in parts))


def captured_lines(run: Run) -> dict[str, set[int]]:
    """File -> the lines whose operations Dynamo captured in some graph, as far as graphs were
    recorded."""
    found: dict[str, set[int]] = {}
    room = _MOST_GRAPH_TEXT
    caught = (body for _, body in run.of(GraphCaptured) if body.stage == "dynamo")
    for name in dict.fromkeys(body.graph for body in caught if body.graph):
        room -= run.artifacts.size(name)
        graph = _graph(run, name) if room > 0 else None
        if graph is None:
            continue
        for node in graph.nodes:
            if node.frame is None or not node.op.startswith("call_"):
                continue
            for frame in (node.frame, *_stack(graph, node)):
                found.setdefault(frame.file, set()).add(frame.line)
    return found


def stripes(
    eager: Iterable[EagerFinding], captured: set[int], spans: Iterable[tuple[int, int]]
) -> dict[int, Stripe]:
    """Line -> how it ran, for the lines of one file of which that is known.

    `spans` are the file's functions. What a function defines within it runs on its own.
    """
    known: dict[int, Stripe] = dict.fromkeys(captured, "graph")
    functions = sorted(spans)
    for frame in eager:
        if frame.rest_only:
            continue  # Where the rest begins is not recorded.
        for first, last in (span for span in functions if span[0] == frame.line):
            inner = {n for a, b in functions if first < a and b <= last for n in range(a, b + 1)}
            body = set(range(first, last + 1)) - inner
            both = frame.cause == "recompile-limit" or bool(body & captured)
            known.update(dict.fromkeys(body, "both" if both else "eager"))
    return known


def _stack(graph: Graph, node: Node) -> tuple[Frame, ...]:
    known = node.stack is not None and 0 <= node.stack < len(graph.stacks)
    return graph.stacks[node.stack] if known and node.stack is not None else ()


def _graph(run: Run, name: str) -> Graph | None:
    text = run.artifacts.get(name)
    try:
        return decode_graph(text) if text else None
    except msgspec.DecodeError:
        return None
