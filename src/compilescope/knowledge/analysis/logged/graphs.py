"""The graphs of a logged run, each with its reason, and how many there are.

Where an XLA compiler wrote into the log, its graphs are counted; else Dynamo's own. What Dynamo did
in a process (graphs captured, breaks, frames given up) is gathered here only to find out why each
graph was compiled; the findings themselves come from the digest.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from compilescope.knowledge.analysis.dynamo_graphs import compiled_graphs
from compilescope.knowledge.analysis.logged.callers import asked_by, in_module
from compilescope.knowledge.findings.compile_ids import Process, process_of, without_attempt
from compilescope.knowledge.source.spots import Sources
from compilescope.record import bodies
from compilescope.record.bodies import FrameSkipped, GraphCaptured, GraphCompiled
from compilescope.record.event import Event
from compilescope.record.logged import BreakEcho, FallbackOps, ModuleStage
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame

GraphClass = Literal[
    "region",
    "graph-break",
    "override-echo",
    "recompile",
    "cpu-fallback",
    "probe",
    "eager",
    "sync",
    "backward",
    "failed",
    "unknown",
]

MEANINGS: dict[GraphClass, str] = {
    "region": "the one graph that a compiled function needs",
    "graph-break": "the rest of a function after a graph break",
    "override-echo": "an operator that runs alone after a break, through the plugin's override",
    "recompile": "the same code again, for other shapes or values",
    "cpu-fallback": "part of a graph that operators without a lowering split up",
    "probe": "the bridge testing whether an operator has a lowering",
    "eager": "operators outside compiled code, or a value read on the host",
    "sync": "an explicit sync or mark_step",
    "backward": "the backward half of a compiled function",
    "failed": "a compilation that failed",
    "unknown": "the log doesn't say",
}
"""In the order in which a reader wants them."""

REMEDIES: dict[GraphClass, str] = {
    "graph-break": "Remove the break: its cause says how.",
    "override-echo": "Goes away with the break that caused it.",
    "recompile": "Keep shapes and values fixed: pad, or mark what varies as dynamic.",
    "cpu-fallback": "Replace the operators that have no lowering, or move them out of the model.",
    "probe": "Goes away with the operators that have no lowering.",
    "eager": "Move the operators into the compiled function; read values only after the last step.",
    "sync": "One sync per step is enough; the compiled function needs none inside.",
    "failed": "See the error; nothing after it can be trusted.",
}


class Reason(msgspec.Struct, frozen=True):
    """Why a graph exists."""

    kind: GraphClass
    words: str = ""
    """What of the log says so."""
    because: str | None = None
    """Id of the event that led to it: a graph break, most of the time."""


class LoggedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph in the log."""

    event: str
    name: str
    """What the log calls it: a module's name, a hash, a compile id."""
    rank: int
    kind: GraphClass
    words: str
    because: str | None
    stages: tuple[ModuleStage, ...]
    ops: int | None
    place: Frame | None
    """The line of the program that most of it came from, or that asked for it."""
    through: tuple[Frame, ...] = ()
    """Helpers and libraries between that line and torch_xla."""
    error: str = ""
    failed_stage: str = ""
    cut: str = ""


_OVERRIDE = "__torch_function__"
_DYNAMO = (
    *(bodies.GraphCaptured, bodies.GraphBreak, bodies.FrameSkipped, bodies.CompileFailed),
    *(bodies.CompileTime, bodies.Recompile),
)
"""What only its lines tell of."""


class ProcessLog:
    """Dynamo's side of one process: what it captured, where it broke, what it gave up.

    A log may hold a hundred thousand breaks: every question is answered by looking one thing up.
    """

    def __init__(self, events: list[Event]) -> None:
        self.captured: dict[str, tuple[Event, bodies.GraphCaptured]] = {}
        """Graphs of Dynamo's by compile id; the last attempt counts."""
        self._failed: dict[str, bodies.CompileFailed] = {}
        self._overrides: set[tuple[str, str]] = set()
        self._first_at: dict[tuple[str, int], str] = {}
        """The first break whose stack has this line."""
        self._last_in: dict[str | CodeRef | None, str] = {}
        """The last break in this function, in this file, or (None) at all."""
        self._given_up: dict[CodeRef | tuple[str, str], tuple[int, str]] = {}
        """Functions that run eagerly because of a break: which, and how late that was."""
        self.has_fallbacks = False
        self.tells_nothing = True
        """The log has no line of Dynamo's."""
        for number, event in enumerate(events):
            self._take(number, event)

    def _take(self, number: int, event: Event) -> None:
        body = event.body
        self.tells_nothing = self.tells_nothing and not isinstance(body, _DYNAMO)
        if isinstance(body, bodies.GraphCaptured) and body.stage == "dynamo":
            if event.compile_id is not None:
                self.captured[without_attempt(event.compile_id)] = (event, body)
        elif isinstance(body, bodies.GraphBreak):
            self._take_break(event, body)
        elif isinstance(body, bodies.FrameSkipped) and body.because is not None:
            code = body.frame
            self._given_up[code] = (number, body.because)
            self._given_up[(code.file, code.function)] = (number, body.because)
        elif isinstance(body, bodies.CompileFailed) and event.compile_id is not None:
            self._failed[without_attempt(event.compile_id)] = body
        elif isinstance(body, BreakEcho) and body.override is not None:
            self._overrides.add((body.override.file, body.override.function))
        elif isinstance(body, FallbackOps):
            self.has_fallbacks = True

    def _take_break(self, event: Event, body: bodies.GraphBreak) -> None:
        self._last_in[None] = event.id
        if body.frame is not None:
            self._last_in[body.frame] = event.id
        for frame in event.stack:
            self._first_at.setdefault((frame.file, frame.line), event.id)
            self._last_in[frame.file] = event.id

    def failure(self, compile_id: str | None) -> bodies.CompileFailed | None:
        return None if compile_id is None else self._failed.get(without_attempt(compile_id))

    def is_override(self, code: CodeRef) -> bool:
        """Code that every operator of the program runs through, and no part of the program."""
        return code.function == _OVERRIDE or (code.file, code.function) in self._overrides

    def break_at(self, file: str, line: int) -> str | None:
        """The break at which a function stopped on this line, there or in what it called."""
        return self._first_at.get((file, line))

    def break_that_gave_up(self, code: CodeRef | None, stack: tuple[Frame, ...]) -> str | None:
        """The break for which this function, or one that the stack lies in, runs eagerly."""
        found = [self._given_up.get((frame.file, frame.function)) for frame in stack]
        if code is not None:
            found.append(self._given_up.get(code))
        latest = max((each for each in found if each is not None), default=None)
        return latest[1] if latest is not None else None

    @property
    def last_given_up(self) -> str | None:
        """The last break for which any function runs eagerly."""
        return max(self._given_up.values(), default=(0, None))[1]

    def last_break_of(self, region: CodeRef | None) -> str | None:
        """The latest break in a region: in its own function, else in its file."""
        if region is None:
            return self._last_in.get(None)
        return self._last_in.get(region) or self._last_in.get(region.file)


_BRIDGE = "dynamo_bridge.py"
_PROBING = ("partition_fx_graph_for_cpu_fallback", "run_node")
_AUTOGRAD = ("torch/autograd/__init__.py", "torch/autograd/graph.py", "torch/_tensor.py")
_BACKWARD = ("backward", "_engine_run_backward")
_GENERATED = "<eval_with_key>"


def logged_graphs(run: Run, sources: Sources | None = None) -> list[LoggedGraph]:
    """In order of appearance, rank by rank."""
    sources = sources or Sources(run)
    if not (run.count(GraphCompiled) or run.count(GraphCaptured)):
        return []
    processes: dict[Process, list[Event]] = {}
    for event in run.events:
        processes.setdefault(process_of(event), []).append(event)
    by_compiler = any(isinstance(event.body, GraphCompiled) for event in run.events)
    found: list[LoggedGraph] = []
    for events in processes.values():
        reasons = _GraphReasons(ProcessLog(events))
        for event in events:
            body = event.body
            if by_compiler and isinstance(body, GraphCompiled):
                found.append(_compiled(event, body, reasons.of_compiled(event, body), sources))
            elif by_compiler or not isinstance(body, GraphCaptured):
                continue
            elif body.stage == "dynamo":
                found.append(_captured(event, body, reasons.of_captured(event, body)))
    return found


def expected_graphs(run: Run, graphs: list[LoggedGraph]) -> int:
    """As many as there would be without breaks, recompiles and reads: one a compiled function.

    Where nothing was compiled by Dynamo, one for each line that syncs, outside the model.
    """
    regions = _regions(run)
    compiling = {process_of(event) for event, _ in compiled_graphs(run)}
    given_up = {
        (process_of(event), body.frame)
        for event, body in run.of(FrameSkipped)
        if body.cause not in ("harmless", "unexplained")
        and not body.frame.resumed
        and process_of(event) not in compiling
    }
    backward = 1 if any(graph.kind == "backward" for graph in graphs) else 0
    begun = sum(graph.kind == "region" for graph in graphs)
    if regions or given_up:
        # A log may show the first graph of a function whose Dynamo lines it lacks.
        return max(len(regions | given_up), begun) * (1 + backward)
    return begun or len(_step_ends(run, graphs)) or min(1, len(graphs))


def _regions(run: Run) -> set[tuple[Process, CodeRef]]:
    """Functions at which programs entered compiled code. Of parts after a break whose function's
    beginning the record lacks, all that have its name are one."""
    found: set[tuple[Process, CodeRef]] = set()
    parts: dict[tuple[Process, str, str], CodeRef] = {}
    for event, body in compiled_graphs(run):
        region, process = body.region, process_of(event)
        if region is None:
            continue
        if body.frame is not None and body.frame.resumed and body.frame.line == region.line:
            parts.setdefault((process, region.file, region.function), region)
        else:
            found.add((process, region))
    whole = {(process, region.file, region.function) for process, region in found}
    return found | {(key[0], region) for key, region in parts.items() if key not in whole}


def _step_ends(run: Run, graphs: list[LoggedGraph]) -> set[tuple[int, Frame | None]]:
    """The lines that end a step, rank by rank."""
    syncs = {graph.event: graph for graph in graphs if graph.kind == "sync"}
    return {
        (event.rank, syncs[event.id].place)
        for event in run.events
        if event.id in syncs and not in_module(event.stack)
    }


def _compiled(event: Event, body: GraphCompiled, reason: Reason, sources: Sources) -> LoggedGraph:
    whole = [stage.ops for stage in body.stages if stage.ops is not None]
    place, through = _place(event, body, reason, sources)
    return LoggedGraph(
        event=event.id,
        name=body.name or body.hash,
        rank=event.rank,
        kind=reason.kind,
        words=reason.words,
        because=reason.because,
        stages=body.stages,
        ops=whole[0] if whole else None,
        place=place,
        through=through,
        error=body.error,
        failed_stage=body.failed_stage,
        cut=body.cut,
    )


def _captured(event: Event, body: GraphCaptured, reason: Reason) -> LoggedGraph:
    code = body.frame
    place = event.site
    if place is None and code is not None:
        place = Frame(code.file, code.resumed_at or code.line, code.function)
    return LoggedGraph(
        event=event.id,
        name=without_attempt(event.compile_id) if event.compile_id else "",
        rank=event.rank,
        kind=reason.kind,
        words=reason.words,
        because=reason.because,
        stages=(),
        ops=body.ops,
        place=place,
    )


def _place(
    event: Event, body: GraphCompiled, reason: Reason, sources: Sources
) -> tuple[Frame | None, tuple[Frame, ...]]:
    for place in body.places:
        if place.frame.origin in ("user", "library"):
            return place.frame, ()
    # The bridge's own frames say how it came to be compiled, not what it is.
    return asked_by(event.stack, sources, through_helpers=reason.kind == "sync")


# Why each graph was compiled.
#
# An XLA compiler is handed graphs by Dynamo, by a sync, by whoever reads a value, and by the
# bridge between them. torch_xla says which in its own words; tt-xla says nothing, so there the
# order of the log decides: a graph that comes after Dynamo handed one over is that one.


class _GraphReasons:
    """Reasons of one process's graphs, asked for in the order of the log."""

    def __init__(self, process: ProcessLog) -> None:
        self._process = process
        self._used: set[str] = set()
        """Dynamo's graphs that the compiler was already handed."""
        self._begun: set[CodeRef | None] = set()
        """Regions that have their first graph."""
        self._shapes: set[tuple[object, ...]] = set()
        """Where graphs came from so far."""
        self._probed = False
        self._compiled = 0

    def of_captured(self, event: Event, body: GraphCaptured) -> Reason:
        """Of a graph of Dynamo's own, where the log has no compiler's."""
        failure = self._process.failure(event.compile_id)
        if failure is not None:
            return Reason("failed", failure.message.partition("\n")[0])
        return self._by_frame(event.compile_id, body, event)

    def of_compiled(self, event: Event, body: GraphCompiled) -> Reason:
        """Of a graph that an XLA compiler was handed."""
        reason = self._of_compiled(event, body)
        self._shapes.add(_shape(event, body))
        self._compiled += reason.kind not in ("probe", "eager", "sync")
        return reason

    def _of_compiled(self, event: Event, body: GraphCompiled) -> Reason:
        if body.error or body.failed_stage:
            return Reason("failed", body.error or f"{body.failed_stage} was not reached")
        cause = body.cause.lower()
        if body.system == "torch_xla" and body.cut == "head" and not cause:
            return Reason("unknown", "the log begins in the middle of its block")
        if "dynamo" in cause and "compil" in cause:
            return self._by_dynamo(event, body)
        if "processing input graphs" in cause:
            if self._in_pieces():
                return Reason("cpu-fallback", body.cause)
            return self._eager(event, f"{body.cause}: its inputs were computed eagerly")
        if "access" not in cause and ("sync" in cause or "mark_step" in cause):
            # What a function that fell back to eager computes is still pending there.
            return Reason("sync", body.cause, self._process.last_given_up)
        if cause.startswith("torch_xla.compile"):
            return self._by_xla_compile(event, body)
        if cause:
            return self._by_access(event, body)
        return self._by_order(event, body)

    def _by_access(self, event: Event, body: GraphCompiled) -> Reason:
        """Somebody needed a value: the bridge, a fallback within a graph, or the program."""
        if "access" not in body.cause.lower():
            return Reason("unknown", body.cause)
        functions = {frame.function for frame in event.stack if frame.file.endswith(_BRIDGE)}
        if functions.issuperset(_PROBING):
            self._probed = True
            return Reason("probe", "the bridge ran the operator to see where it runs")
        if any(frame.file.startswith(_GENERATED) for frame in event.stack) and self._in_pieces():
            return Reason("cpu-fallback", "an operator between two pieces of a graph needs values")
        return self._eager(event, body.cause)

    def _by_xla_compile(self, event: Event, body: GraphCompiled) -> Reason:
        if "pending" in body.cause:
            return self._eager(event, body.cause)
        if _shape(event, body) in self._shapes and _shape(event, body):
            return Reason("recompile", "another graph from the same line")
        return Reason("region", body.cause)

    def _by_dynamo(self, event: Event, body: GraphCompiled) -> Reason:
        words = f"Dynamo's graph {without_attempt(body.after or '')} was compiled in pieces"
        return self._by_captured(event, body) or Reason("cpu-fallback", words)

    def _by_order(self, event: Event, body: GraphCompiled) -> Reason:
        reason = self._by_captured(event, body)
        if reason is not None:
            return reason
        if _shape(event, body) in self._shapes:
            return Reason("recompile", "another graph from the same lines")
        return self._eager(event, "no Dynamo graph came before it")

    def _by_captured(self, event: Event, body: GraphCompiled) -> Reason | None:
        """By the graph that Dynamo captured before it; None if one was compiled of that already."""
        if _in_backward(event):
            return Reason("backward", "compiled while autograd ran")
        key = None if body.after is None else without_attempt(body.after)
        known = self._process.captured.get(key) if key is not None else None
        if key is None or known is None:
            return self._without_dynamo(event, body)
        if key in self._used:
            return None
        self._used.add(key)
        return self._by_frame(key, known[1], event)

    def _by_frame(self, key: str | None, graph: GraphCaptured, event: Event) -> Reason:
        code, region = graph.frame, graph.region
        if code is not None and self._process.is_override(code):
            because = self._process.break_that_gave_up(region, ())
            because = because or self._process.last_break_of(region)
            return Reason("override-echo", f"Dynamo compiled {code.function}", because)
        if key is not None and without_attempt(key).rpartition("/")[2] not in ("0", ""):
            return Reason("recompile", f"compile id {without_attempt(key)}", None)
        if code is not None and code.resumed_at is not None:
            self._begun.add(region)
            because = self._process.break_at(code.file, code.resumed_at)
            because = because or self._process.last_break_of(region)
            words = f"{code.function} continues at line {code.resumed_at}"
            return Reason("graph-break", words, because)
        if region not in self._begun or region is None:
            self._begun.add(region)
            return Reason("region", f"compile id {key}" if key else "")
        because = self._process.break_that_gave_up(region, event.stack)
        because = because or self._process.last_break_of(region)
        if because is None:
            return Reason("unknown", "a second graph of one function, with no break in the log")
        return Reason("graph-break", "a function called where Dynamo fell back to eager", because)

    def _without_dynamo(self, event: Event, body: GraphCompiled) -> Reason:
        """No Dynamo line tells of it: what is left are the places of the operations."""
        resumed = next(iter(body.resumes), None)
        if resumed is not None and resumed.resumed_at is not None:
            because = self._process.break_at(resumed.file, resumed.resumed_at)
            words = f"{resumed.function} continues at line {resumed.resumed_at}"
            return Reason("graph-break", words, because)
        dynamo = "dynamo" in body.cause.lower()
        if not self._compiled and (dynamo or self._process.tells_nothing):
            return Reason("region", "the first compiled graph in the log")
        if dynamo and self._in_pieces():
            return Reason("cpu-fallback", "operators without a lowering split the graph")
        if _shape(event, body) in self._shapes and _shape(event, body):
            return Reason("recompile", "another graph from the same lines")
        if self._process.tells_nothing:
            return Reason("unknown", "the log has no Dynamo lines")
        if body.after is not None:
            return Reason("unknown", f"the log lacks Dynamo's graph {without_attempt(body.after)}")
        return Reason("unknown", "no Dynamo line comes before it in the log")

    def _eager(self, event: Event, words: str) -> Reason:
        return Reason("eager", words, self._process.break_that_gave_up(None, event.stack))

    def _in_pieces(self) -> bool:
        return self._probed or self._process.has_fallbacks


def _in_backward(event: Event) -> bool:
    return any(
        frame.function in _BACKWARD and frame.file.endswith(_AUTOGRAD) for frame in event.stack
    )


def _shape(event: Event, body: GraphCompiled) -> tuple[object, ...]:
    """Where a graph came from; empty where the log does not tell."""
    if body.places:
        return tuple((place.frame.file, place.frame.line) for place in body.places)
    site = event.site
    return ((site.file, site.line),) if site is not None else ()


# How many graphs a run has, and how many would do: the one rule behind every view that says so.


class GraphCount(msgspec.Struct, frozen=True):
    """The number of graphs, as it is and as it should be."""

    graphs: int
    expected: int


def graph_count(run: Run, sources: Sources | None = None) -> GraphCount:
    """Of a capture as of a log: those of the last compiler that tells of its graphs."""
    if not run.count(GraphCompiled):
        graphs = len(compiled_graphs(run))
        expected = expected_graphs(run, [])
        if expected or not graphs:
            return GraphCount(graphs, expected)
    return count_of(run, logged_graphs(run, sources))


def count_of(run: Run, graphs: list[LoggedGraph]) -> GraphCount:
    return GraphCount(len(graphs), expected_graphs(run, graphs))
