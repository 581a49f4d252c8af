"""Why each graph was compiled.

An XLA compiler is handed graphs by Dynamo, by a sync, by whoever reads a value, and by the bridge
between them. torch_xla says which in its own words; tt-xla says nothing, so there the order of the
log decides: a graph that comes after Dynamo handed one over is that one.
"""

from __future__ import annotations

from compilescope.analysis.logged.graph import Reason
from compilescope.analysis.logged.process import ProcessLog
from compilescope.findings.compile_ids import without_attempt
from compilescope.model import bodies
from compilescope.model.event import Event
from compilescope.model.logged import GraphCompiled
from compilescope.model.stack import CodeRef

_BRIDGE = "dynamo_bridge.py"
_PROBING = ("partition_fx_graph_for_cpu_fallback", "run_node")
_AUTOGRAD = ("torch/autograd/__init__.py", "torch/autograd/graph.py", "torch/_tensor.py")
_BACKWARD = ("backward", "_engine_run_backward")
_GENERATED = "<eval_with_key>"


class GraphReasons:
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

    def of_captured(self, event: Event, body: bodies.GraphCaptured) -> Reason:
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
        if _in_backward(event):
            return Reason("backward", "compiled while autograd ran")
        key = None if body.after is None else without_attempt(body.after)
        known = self._process.captured.get(key) if key is not None else None
        if key is None or known is None:
            return self._without_dynamo(event, body)
        if key in self._used:
            return Reason("cpu-fallback", f"Dynamo's graph {key} was compiled in pieces")
        self._used.add(key)
        return self._by_frame(key, known[1], event)

    def _by_order(self, event: Event, body: GraphCompiled) -> Reason:
        if _in_backward(event):
            return Reason("backward", "compiled while autograd ran")
        key = None if body.after is None else without_attempt(body.after)
        known = self._process.captured.get(key) if key is not None else None
        if key is None or known is None:
            return self._without_dynamo(event, body)
        if key not in self._used:
            self._used.add(key)
            return self._by_frame(key, known[1], event)
        if _shape(event, body) in self._shapes:
            return Reason("recompile", "another graph from the same lines")
        return self._eager(event, "no Dynamo graph came before it")

    def _by_frame(self, key: str | None, graph: bodies.GraphCaptured, event: Event) -> Reason:
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
        """The log lacks Dynamo's lines: what is left are the places of the operations."""
        resumed = next(iter(body.resumes), None)
        if resumed is not None and resumed.resumed_at is not None:
            because = self._process.break_at(resumed.file, resumed.resumed_at)
            words = f"{resumed.function} continues at line {resumed.resumed_at}"
            return Reason("graph-break", words, because)
        dynamo = "dynamo" in body.cause.lower()
        if not self._compiled:
            return Reason("region", "the first compiled graph in the log")
        if dynamo and self._in_pieces():
            return Reason("cpu-fallback", "operators without a lowering split the graph")
        if _shape(event, body) in self._shapes and _shape(event, body):
            return Reason("recompile", "another graph from the same lines")
        return Reason("unknown", "the log has no Dynamo lines")

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
